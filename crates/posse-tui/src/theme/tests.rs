//! What themes promise: contrast, one colour for each name, and nothing but colour.

use super::*;

const BLACK: [u8; 3] = [0; 3];
const WHITE: [u8; 3] = [255; 3];

/// Returns red, green and blue.
fn channels(color: Color) -> [u8; 3] {
    match color {
        Color::Rgb(red, green, blue) => [red, green, blue],
        other => panic!("{other:?} differs from terminal to terminal"),
    }
}

/// Returns the luminance of a colour as WCAG 2 defines it.
fn luminance(color: [u8; 3]) -> f64 {
    let linear = color.map(|channel| {
        let value = f64::from(channel) / 255.0;
        match value <= 0.040_45 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        }
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

#[test]
fn every_role_can_be_read_on_the_background_it_is_made_for() {
    // Beside black and white, the greys that terminals have for them.
    let made_for = [
        ("dark", BLACK, 4.5),
        ("dark", [0x28; 3], 4.5),
        ("dark", [0x40; 3], 3.0),
        ("light", WHITE, 4.5),
        ("light", [0xee; 3], 4.5),
        ("light", [0xd0; 3], 3.0),
    ];
    for (name, background, least) in made_for {
        let theme = Theme::named(name).unwrap();
        for role in ColorRole::ALL {
            let found = contrast(channels(theme.color(role)), background);
            let role = role.name();
            assert!(found >= least, "{name} {role} on {background:?}: {found}");
        }
    }
}

#[test]
fn the_built_in_themes_are_the_same_with_256_colours() {
    for name in ["dark", "light"] {
        let theme = Theme::named(name).unwrap();
        let fewer = theme.at_depth(ColorDepth::Indexed);
        for role in ColorRole::ALL {
            let Color::Indexed(number) = fewer.color(role) else {
                panic!("{name} {}", role.name());
            };
            let shown = depth::value(number);
            assert_eq!(shown, channels(theme.color(role)), "{}", role.name());
        }
        assert_eq!(theme.at_depth(ColorDepth::True), theme);
    }
    for theme in [Theme::ansi(), Theme::mono()] {
        assert_eq!(theme.at_depth(ColorDepth::Sixteen), theme);
    }
}

#[test]
fn sixteen_colours_keep_the_hue() {
    let nearest = |text: &str| ColorDepth::Sixteen.nearest(color_of(text).unwrap());
    assert_eq!(nearest("#ff8787"), Color::LightRed);
    assert_eq!(nearest("#af0000"), Color::Red);
    assert_eq!(nearest("#005f00"), Color::Green);
    assert_eq!(nearest("#ffd75f"), Color::LightYellow);
    assert_eq!(nearest("#5fd7ff"), Color::LightCyan);
    assert_eq!(nearest("#870087"), Color::Magenta);
    assert_eq!(nearest("#a8a8a8"), Color::Gray);
    assert_eq!(nearest("#000000"), Color::Black);
    assert_eq!(nearest("#ffffff"), Color::White);
    assert_eq!(nearest("bright-red"), Color::LightRed);
    for number in 0..=255 {
        let color = ColorDepth::Sixteen.nearest(Color::Indexed(number));
        assert!(!matches!(color, Color::Indexed(_) | Color::Rgb(..)));
    }
}

#[test]
fn variables_tell_the_depth() {
    let check = |colorterm, term, expected| {
        assert_eq!(ColorDepth::told(colorterm, term), expected);
    };
    check(Some("truecolor"), Some("xterm"), ColorDepth::True);
    check(Some("24bit"), None, ColorDepth::True);
    check(None, Some("xterm-direct"), ColorDepth::True);
    check(None, Some("tmux-256color"), ColorDepth::Indexed);
    check(
        Some("yes"),
        Some("screen.xterm-256color"),
        ColorDepth::Indexed,
    );
    check(None, Some("linux"), ColorDepth::Sixteen);
    check(None, None, ColorDepth::Sixteen);
}

#[test]
fn roles_have_names_and_colours_of_their_own() {
    for (at, role) in ColorRole::ALL.into_iter().enumerate() {
        assert_eq!(role as usize, at);
        assert_eq!(ColorRole::named(role.name()), Some(role));
        assert_eq!(ColorRole::of(role.color()), Some(role));
    }
    assert_eq!(ColorRole::named("Accent"), None);
    assert_eq!(ColorRole::of(Color::Cyan), None);
    assert_eq!(ColorRole::of(Color::Indexed(FIRST - 1)), None);
    assert_eq!(ColorRole::of(Color::Indexed(255)), None);
    for name in Theme::BUILT_IN {
        assert!(Theme::named(name).is_some(), "{name}");
    }
    assert_eq!(Theme::named("Dark"), None);
}

#[test]
fn colours_as_people_write_them() {
    assert_eq!(color_of("#5fD7ff"), Some(Color::Rgb(0x5f, 0xd7, 0xff)));
    assert_eq!(color_of("red"), Some(Color::Red));
    assert_eq!(color_of("bright-white"), Some(Color::White));
    assert_eq!(color_of("default"), Some(Color::Reset));
    for wrong in ["", "#", "#fff", "#+12345", "#12345g", "Red", "beige"] {
        assert_eq!(color_of(wrong), None, "{wrong}");
    }
}

// A theme changes colours and nothing else: quiet text and hits are seen without them.
#[test]
fn dim_and_reversed_text_have_roles() {
    let dim = Style::new().dim();
    let (ansi, mono) = (Theme::ansi(), Theme::mono());
    let dark = Theme::named("dark").unwrap();
    let quiet = Style::new().fg(dark.color(ColorRole::Quiet));
    assert_eq!(ansi.drawn(dim), dim.fg(Color::Reset));
    assert_eq!(mono.drawn(dim), dim.fg(Color::Reset));
    assert_eq!(dark.drawn(dim), quiet);
    let comment = ColorRole::Comment.style().dim();
    assert_eq!(ansi.drawn(comment), dim.fg(Color::Reset));
    assert_eq!(dark.drawn(comment).fg, Some(dark.color(ColorRole::Comment)));
    assert_eq!(dark.drawn(comment).add_modifier, Modifier::empty());
    let code = ColorRole::Code.style().dim();
    assert_eq!(ansi.drawn(code), dim.fg(Color::Cyan));
    let hit = ColorRole::Code.style().reversed();
    assert_eq!(ansi.drawn(hit), Style::new().fg(Color::Cyan).reversed());
    let selection = Style::new().fg(dark.color(ColorRole::Selection)).reversed();
    assert_eq!(dark.drawn(hit), selection);
    assert_eq!(mono.drawn(hit), Style::new().fg(Color::Reset).reversed());
    let mut own = Theme::mono();
    own.set(ColorRole::Comment, Color::Red);
    assert_eq!(own.drawn(comment), Style::new().fg(Color::Red));
    assert_eq!(own.drawn(dim), dim.fg(Color::Reset));
}
