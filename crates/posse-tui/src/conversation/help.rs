//! What can be pressed and typed, in words.

use super::ConversationKeys;
use super::key_actions::KeyedAction;

/// Keys that belong together.
enum HelpKeys {
    /// Those that nobody can change.
    Fixed(&'static str),
    /// Those of actions.
    Of(&'static [KeyedAction]),
}

use HelpKeys::{Fixed, Of};

/// What can be pressed, each with what it does.
const KEYS: &[(HelpKeys, &str)] = &[
    (Fixed("Enter"), "send; joins the run at its next step"),
    (Of(&[KeyedAction::Newline]), "new line"),
    (Of(&[KeyedAction::Later]), "send after the run"),
    (
        Fixed("Up"),
        "earlier prompts; takes back the last one that waits",
    ),
    (Of(&[KeyedAction::History]), "search earlier prompts"),
    (Fixed("Esc"), "interrupt the run; twice: return to a prompt"),
    (Fixed("Ctrl-C"), "clear the draft, interrupt; twice: leave"),
    (Of(&[KeyedAction::Mode]), "next permission mode"),
    (
        Of(&[KeyedAction::Yes, KeyedAction::No, KeyedAction::Always]),
        "answer the question: yes, no, always",
    ),
    (
        Of(&[KeyedAction::Answer]),
        "open the question, then the next one",
    ),
    (Of(&AGENTS), "show the main agent, or another one"),
    (Of(&[KeyedAction::Board]), "the board of everybody"),
    (
        Of(&[KeyedAction::Transcript]),
        "the whole transcript, with search",
    ),
    (
        Fixed("! # / @"),
        "shell, memory note, command, file or agent",
    ),
    (
        Fixed("Tab"),
        "complete the name of a command, file or agent",
    ),
    (
        Of(&[KeyedAction::Background]),
        "with no draft: wait no longer for sub-agents",
    ),
    (
        Of(&[KeyedAction::StopAll]),
        "twice: stop all that is in the background",
    ),
    (
        Of(&[KeyedAction::Image]),
        "put in the image of the clipboard",
    ),
    (Of(&[KeyedAction::Editor]), "write in your editor"),
    (Of(&[KeyedAction::Suspend]), "suspend"),
    (Of(&[KeyedAction::Keys]), "these keys"),
];

/// The agents that have a key.
const AGENTS: [KeyedAction; 10] = [
    KeyedAction::Agent(0),
    KeyedAction::Agent(1),
    KeyedAction::Agent(2),
    KeyedAction::Agent(3),
    KeyedAction::Agent(4),
    KeyedAction::Agent(5),
    KeyedAction::Agent(6),
    KeyedAction::Agent(7),
    KeyedAction::Agent(8),
    KeyedAction::Agent(9),
];

/// Returns all keys as they hold, each with what it does. What has no key is left out.
pub(crate) fn keys(table: &ConversationKeys) -> Vec<(String, &'static str)> {
    let rows = KEYS.iter().map(|(keys, about)| match keys {
        Fixed(keys) => ((*keys).to_owned(), *about),
        Of(actions) => (listed(table, actions), *about),
    });
    rows.filter(|(keys, _)| !keys.is_empty()).collect()
}

/// Returns the chords of actions: `Alt-Y Alt-N Alt-A`, and `Alt-0 … Alt-9` for many.
fn listed(table: &ConversationKeys, actions: &[KeyedAction]) -> String {
    if let [action] = actions {
        return table.0.listed(*action);
    }
    let chords = |table: &ConversationKeys| -> Vec<String> {
        let first = |action: &KeyedAction| table.0.first(*action);
        actions.iter().filter_map(first).collect()
    };
    let shown = chords(table);
    match &shown[..] {
        [first, .., last] if shown.len() > 3 && shown == chords(&ConversationKeys::default()) => {
            format!("{first} … {last}")
        }
        _ => shown.join(" "),
    }
}

/// The commands, each with what it does.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("help", "show all keys and commands"),
    ("model", "show the model, or choose another: /model NAME"),
    ("effort", "choose how hard the model thinks: /effort NAME"),
    (
        "mode",
        "show the permission mode, or choose another: /mode plan",
    ),
    ("clear", "begin a new session"),
    (
        "compact",
        "summarise the conversation: /compact [what to keep]",
    ),
    ("interrupt", "interrupt the run"),
    ("later", "send a prompt after the run: /later TEXT"),
    ("unqueue", "take back the last prompt that waits"),
    ("continue", "continue a run that was paused or cut off"),
    ("cost", "show what the session has cost"),
    ("context", "show how full the context is"),
    ("resume", "continue another session: /resume [ID]"),
    ("thinking", "print what the model thought last"),
    ("history", "search earlier prompts: /history [WORDS]"),
    (
        "rewind",
        "return to before a prompt, in a new session: /rewind [1 for the newest]",
    ),
    (
        "agents",
        "list the agents of the session; /agent NAME shows one",
    ),
    ("agent", "show another agent: /agent NAME, /agent main"),
    ("tasks", "list the tasks of the session"),
    (
        "board",
        "show everybody at work: agents, tasks, mail, costs, questions",
    ),
    ("transcript", "show the whole transcript, with search"),
    (
        "stop",
        "stop an agent or a command in the background: /stop NAME, /stop all",
    ),
    (
        "answer",
        "answer the question that is shown, or open it: /answer [y]",
    ),
    ("skip", "show the next question"),
    (
        "memory",
        "list the memory files; keep a note for later sessions: /memory TEXT",
    ),
    (
        "init",
        "have AGENTS.md written, or improved: /init [improve]",
    ),
    ("permissions", "list the permission rules in force"),
    (
        "config",
        "list the settings files in force, and what each sets",
    ),
    (
        "mcp",
        "list the MCP servers, and whether they are connected",
    ),
    ("doctor", "check what posse needs on this machine"),
    ("shell", "run a command yourself: /shell COMMAND"),
    (
        "bg",
        "wait no longer for sub-agents: they go on in the background",
    ),
    ("btw", "ask something on the side: /btw QUESTION"),
    (
        "image",
        "put in the image of the clipboard, or of a file: /image [FILE]",
    ),
    ("editor", "write the prompt in your editor"),
    ("suspend", "give the terminal to the shell; fg comes back"),
    ("export", "write the conversation to a file: /export FILE"),
    ("quit", "leave"),
];
