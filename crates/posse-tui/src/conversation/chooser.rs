//! A list in place of the prompt, from which the person chooses by typing a part of it.

use std::collections::HashSet;

use crossterm::event::{KeyCode, KeyEvent};

use super::{Conversation, Effect, Request};
use crate::picker::{Picker, PickerItem, PickerStep};

/// A list from which the person chooses.
pub(super) struct Chooser {
    pub(super) picker: Picker,
    purpose: Purpose,
}

/// What the choice is for.
enum Purpose {
    /// The session continues before the chosen prompt.
    Rewind,
    /// The chosen prompt becomes the draft.
    History(Vec<String>),
}

/// Number of characters of a prompt that are shown and searched.
const WORDS: usize = 1000;

/// Offers the prompts of the directory, newest first; `part` is searched for.
pub(super) fn history(it: &mut Conversation, part: &str) {
    let mut known = HashSet::new();
    let prompts: Vec<String> = it
        .history
        .entries()
        .rev()
        .filter(|prompt| known.insert(*prompt))
        .map(str::to_owned)
        .collect();
    if prompts.is_empty() {
        it.notice = Some("there are no earlier prompts in this directory".to_owned());
        return;
    }
    let items = prompts.iter().map(|prompt| PickerItem {
        words: prompt.chars().take(WORDS).collect(),
        about: String::new(),
    });
    let mut picker = Picker::new("Earlier prompts of this directory", items.collect());
    picker.search(part);
    it.menu = None;
    it.chooser = Some(Chooser {
        picker,
        purpose: Purpose::History(prompts),
    });
}

/// Offers the person's prompts, newest first, to return to.
pub(super) fn rewind(it: &mut Conversation, prompts: Vec<PickerItem>) {
    if prompts.is_empty() {
        it.notice = Some("there is no prompt to return to yet".to_owned());
        return;
    }
    let title = match &it.others.working()[..] {
        [] => "Return to before which prompt? Files stay as they are".to_owned(),
        others => format!(
            "Return to before which prompt? Files stay as they are; this stops {}",
            others.join(", ")
        ),
    };
    it.menu = None;
    it.chooser = Some(Chooser {
        picker: Picker::new(&title, prompts),
        purpose: Purpose::Rewind,
    });
}

/// Handles a key while a list is open. The one that opens the earlier prompts goes on to older ones.
pub(super) fn pressed(it: &mut Conversation, key: KeyEvent, opens_history: bool) -> Vec<Effect> {
    let Some(chooser) = &mut it.chooser else {
        return Vec::new();
    };
    let key = match opens_history {
        true => KeyEvent::from(KeyCode::Down),
        false => key,
    };
    let step = chooser.picker.key(key);
    if step == PickerStep::Stay {
        return Vec::new();
    }
    let chooser = it.chooser.take();
    match (step, chooser.map(|chooser| chooser.purpose)) {
        (PickerStep::Chosen(at), Some(Purpose::Rewind)) => {
            vec![Effect::Ask(Request::Rewind(at + 1))]
        }
        (PickerStep::Chosen(at), Some(Purpose::History(prompts))) => {
            if let Some(prompt) = prompts.get(at) {
                // As if Up had led there: the draft is beyond the newest prompt.
                let draft = it.history.go_to(prompt, it.draft.draft());
                if let Some(draft) = draft {
                    it.draft.restore(&draft);
                }
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}
