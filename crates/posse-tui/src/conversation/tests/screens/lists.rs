//! Lists in place of the prompt.

use super::*;
use crate::picker::PickerItem;

#[test]
fn rewind() {
    check("rewind", |talk| {
        let item = |(words, about): (&str, &str)| PickerItem {
            words: words.into(),
            about: about.into(),
        };
        let prompts = [
            ("now write the guide", "  2m"),
            ("mend the lexer, and say what was wrong with it", "  9m"),
            ("look at the project", "  1h"),
        ];
        talk.input(Input::Prompts(prompts.map(item).into()));
        talk.types("le");
        talk.press("Backspace Backspace Down");
    });
}

#[test]
fn earlier_prompts() {
    check("earlier_prompts", |talk| {
        talk.says("mend the lexer");
        talk.says("write\nthe guide");
        talk.press("Ctrl-r");
        talk.types("the");
        talk.press("Ctrl-r");
    });
}
