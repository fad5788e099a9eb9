//! Tests of taming: all of Unicode, and payloads written to a terminal emulator.

use std::num::NonZeroU16;

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::{escaped, is_zero_width, one_line, tame};
use crate::text::without_escapes;

/// Counts everything that a terminal was asked to do beside showing characters.
#[derive(Default)]
struct Requests(Vec<String>);

impl vt100::Callbacks for Requests {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".into());
    }
    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("visual bell".into());
    }
    fn resize(&mut self, _: &mut vt100::Screen, size: (u16, u16)) {
        self.0.push(format!("resize {size:?}"));
    }
    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.0.push(format!("icon {name:?}"));
    }
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(format!("title {title:?}"));
    }
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.0.push(format!("copy {data:?}"));
    }
    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("paste".into());
    }
    fn unhandled_char(&mut self, _: &mut vt100::Screen, character: char) {
        // The emulator names this one because it also stands for invalid bytes.
        if character != '\u{fffd}' {
            self.0.push(format!("character {character:?}"));
        }
    }
    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.0.push(format!("control {byte}"));
    }
    fn unhandled_escape(&mut self, _: &mut vt100::Screen, _: Option<u8>, _: Option<u8>, byte: u8) {
        self.0.push(format!("escape {byte}"));
    }
    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        _: &[&[u16]],
        last: char,
    ) {
        self.0.push(format!("csi {last}"));
    }
    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parts: &[&[u8]]) {
        self.0.push(format!("osc {parts:?}"));
    }
}

/// Asserts that nothing in the text is obeyed and that it is bounded as promised.
fn check(text: &str) {
    for shown in [tame(text), tame(&without_escapes(text))] {
        let is_safe = |character: char| character == '\n' || !character.is_control();
        assert!(shown.chars().all(is_safe), "{text:?} → {shown:?}");
        assert!(!shown.contains(is_directional), "{text:?} → {shown:?}");
        assert!(
            shown.graphemes(true).all(|grapheme| grapheme.len() <= 32),
            "{text:?}"
        );
        let longest_run = shown
            .split(|character| !is_zero_width(character))
            .map(|run| run.chars().count())
            .max();
        assert!(longest_run <= Some(4), "{text:?} → {shown:?}");
        assert_eq!(tame(&shown), shown, "taming twice changes {text:?}");
        assert!(!one_line(text).contains('\n'));
    }
}

fn is_directional(character: char) -> bool {
    "\u{61c}\u{200e}\u{200f}\u{feff}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
     \u{2066}\u{2067}\u{2068}\u{2069}"
        .contains(character)
}

/// Writes tamed texts to one terminal and asserts that only cells and the caret change.
fn check_terminal<'a>(texts: impl IntoIterator<Item = &'a str>) {
    let size = |count| NonZeroU16::new(count).unwrap();
    let mut parser = vt100::Parser::new_with_callbacks(size(4), size(80), 0, Requests::default());
    let modes = |screen: &vt100::Screen| {
        (
            screen.input_mode_formatted(),
            screen.attributes_formatted(),
            (screen.hide_cursor(), screen.alternate_screen()),
            format!("{:?} {:?}", screen.cursor_style(), screen.size()),
        )
    };
    let before = modes(parser.screen());
    for text in texts {
        parser.process(b"\r\nbefore");
        parser.process(one_line(text).as_bytes());
        assert_eq!(parser.callbacks().0, Vec::<String>::new(), "{text:?}");
    }
    assert_eq!(modes(parser.screen()), before);
}

/// What a hostile reply, file or command may try.
pub(crate) const PAYLOADS: &[&str] = &[
    "\u{1b}",
    "\u{1b}[",
    "\u{1b}[2J",
    "\u{1b}[3J",
    "\u{1b}[H",
    "\u{1b}[1;1H",
    "\u{1b}[31m",
    "\u{1b}[0m",
    "\u{1b}[38;2;1;2;3m",
    "\u{1b}[8m",
    "\u{1b}[5A",
    "\u{1b}[5B",
    "\u{1b}[5D",
    "\u{1b}[2K",
    "\u{1b}[5L",
    "\u{1b}[5M",
    "\u{1b}[5P",
    "\u{1b}[5S",
    "\u{1b}[5T",
    "\u{1b}[5X",
    "\u{1b}[2;5r",
    "\u{1b}[s",
    "\u{1b}[u",
    "\u{1b}[6n",
    "\u{1b}[5n",
    "\u{1b}[c",
    "\u{1b}[>c",
    "\u{1b}[=c",
    "\u{1b}[>q",
    "\u{1b}[?6n",
    "\u{1b}[?25l",
    "\u{1b}[?25h",
    "\u{1b}[?1049h",
    "\u{1b}[?47h",
    "\u{1b}[?1000h",
    "\u{1b}[?1003h",
    "\u{1b}[?1004h",
    "\u{1b}[?1006h",
    "\u{1b}[?2004h",
    "\u{1b}[?2026h",
    "\u{1b}[?7l",
    "\u{1b}[?1h",
    "\u{1b}[?5h",
    "\u{1b}[4h",
    "\u{1b}[20h",
    "\u{1b}[>4;2m",
    "\u{1b}[>1u",
    "\u{1b}[<u",
    "\u{1b}[2 q",
    "\u{1b}[!p",
    "\u{1b}[8;9;9t",
    "\u{1b}[21t",
    "\u{1b}[18t",
    "\u{1b}[5i",
    "\u{1b}[4i",
    "\u{1b}[?1;2c",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]1;icon\u{7}",
    "\u{1b}]2;title\u{1b}\\",
    "\u{1b}]8;;http://evil.example\u{7}click\u{1b}]8;;\u{7}",
    "\u{1b}]9;note\u{7}",
    "\u{1b}]52;c;aGk=\u{7}",
    "\u{1b}]52;c;?\u{7}",
    "\u{1b}]777;notify;a;b\u{7}",
    "\u{1b}]1337;File=inline=1:AAAA\u{7}",
    "\u{1b}]10;?\u{7}",
    "\u{1b}]11;?\u{1b}\\",
    "\u{1b}]4;1;rgb:0/0/0\u{7}",
    "\u{1b}]133;A\u{7}",
    "\u{1b}]50;font\u{7}",
    "\u{1b}]0;open",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}P$qm\u{1b}\\",
    "\u{1b}Pq#0;2;0;0;0\u{1b}\\",
    "\u{1b}Ptmux;\u{1b}\u{1b}]52;c;aGk=\u{7}\u{1b}\\",
    "\u{1b}_Ga=T;AAAA\u{1b}\\",
    "\u{1b}^private\u{1b}\\",
    "\u{1b}Xstart\u{1b}\\",
    "\u{1b}c",
    "\u{1b}7",
    "\u{1b}8",
    "\u{1b}D",
    "\u{1b}E",
    "\u{1b}M",
    "\u{1b}H",
    "\u{1b}Z",
    "\u{1b}=",
    "\u{1b}>",
    "\u{1b}g",
    "\u{1b}(0lqqk",
    "\u{1b})B",
    "\u{1b}*0",
    "\u{1b}%G",
    "\u{1b}#8",
    "\u{1b} F",
    "\u{1b}N",
    "\u{1b}O",
    "\u{1b}n",
    "\u{1b}o",
    "\u{1b}k title\u{1b}\\",
    "\u{9b}2J",
    "\u{9b}?25l",
    "\u{9b}6n",
    "\u{9d}0;title\u{9c}",
    "\u{9d}52;c;aGk=\u{7}",
    "\u{90}q\u{9c}",
    "\u{9f}G\u{9c}",
    "\u{9e}p\u{9c}",
    "\u{98}s\u{9c}",
    "\u{84}",
    "\u{85}",
    "\u{88}",
    "\u{8d}",
    "\u{8e}",
    "\u{8f}",
    "\u{9a}",
    "\u{9c}",
    "\u{7}",
    "\u{8}\u{8}\u{8}hidden",
    "real\rfake",
    "\u{b}",
    "\u{c}",
    "\u{e}",
    "\u{f}",
    "\u{5}",
    "\u{0}",
    "\u{11}\u{13}",
    "\u{18}",
    "\u{1a}",
    "\u{7f}",
    "\t",
    "\u{202e}txt.exe",
    "\u{2066}a\u{2069}",
    "\u{200f}",
    "\u{feff}",
    "\u{2028}",
    "\u{2029}",
    "\u{1b}\u{1b}[31m",
    "\u{1b}[\u{1b}[31m",
    "\u{1b}]\u{1b}]0;x\u{7}",
    "\u{1b}[31\nm",
    "\u{1b}]0;\u{1b}[31m\u{7}",
    "\u{9b}\u{1b}[31m",
    "[31m",
    "\r\n\u{1b}[A",
];

#[test]
fn payloads_are_not_obeyed() {
    assert!(PAYLOADS.len() >= 80);
    for payload in PAYLOADS {
        check(payload);
        let repeated = format!("words {payload} words {payload}");
        check_terminal([payload, &*without_escapes(payload), &*repeated]);
    }
}

#[test]
fn every_character_is_harmless() {
    let all: Vec<char> = (0..=0x10_ffff).filter_map(char::from_u32).collect();
    for character in &all {
        let mut bytes = [0; 4];
        let shown = tame(character.encode_utf8(&mut bytes));
        let is_safe = |character: char| character == '\n' || !character.is_control();
        assert!(shown.chars().all(is_safe), "{character:?}");
        assert!(!shown.contains(is_directional), "{character:?}");
        let escaped = escaped(&character.to_string());
        let is_safe = |character: char| character == '\t' || is_safe(character);
        assert!(escaped.chars().all(is_safe), "{character:?}");
        assert!(!escaped.contains(is_directional), "{character:?}");
    }
    let chunks: Vec<String> = all.chunks(60).map(|chunk| chunk.iter().collect()).collect();
    check_terminal(chunks.iter().map(String::as_str));
}

#[test]
fn spells_expands_and_drops() {
    for (text, expected) in [
        ("plain\ntext", "plain\ntext"),
        ("\u{1b}[31m", "\\u{1b}[31m"),
        ("a\r\nb\rc", "a\nb\\u{d}c"),
        ("\ta\tb\n\tc", "    a   b\n    c"),
        ("日\tx", "日  x"),
        ("\u{202e}x", "\\u{202e}x"),
        ("e\u{301}", "e\u{301}"),
        ("👨\u{200d}👩\u{200d}👧", "👨\u{200d}👩\u{200d}👧"),
        ("مرحبا", "مرحبا"),
    ] {
        assert_eq!(tame(text), expected, "{text:?}");
    }
    let stacked = format!("a{}b", "\u{301}".repeat(50));
    assert_eq!(tame(&stacked), format!("a{}b", "\u{301}".repeat(4)));
    assert_eq!(one_line("a\r\nb\nc"), "a b c");
    assert!(matches!(tame("plain"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn long_graphemes_do_not_swallow_what_follows() {
    let family = "👩\u{200d}".repeat(20);
    assert!(tame(&format!("{family}end")).ends_with("end"));
    let prepended = "\u{600}".repeat(40);
    assert!(tame(&format!("{prepended}abc")).ends_with("bc"));
}

proptest! {
    #[test]
    fn any_text_is_harmless(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn clusters_are_bounded(text in "[a\u{301}\u{200d}👩\u{1f3fb}\u{600}\u{1f1e6}\u{94d}क\u{fe0f}\u{200b}\t\r\n\u{1b}]{0,60}") {
        check(&text);
    }
}
