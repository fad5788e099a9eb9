//! What can be pressed and typed, in words.

/// All keys, each with what it does: for the help.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; joins the run at its next step"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Alt-Q", "send after the run"),
    ("Up", "earlier prompts; takes back the last one that waits"),
    ("Ctrl-R", "search earlier prompts"),
    ("Esc", "interrupt the run; twice: return to a prompt"),
    ("Ctrl-C", "clear the draft, interrupt; twice: leave"),
    ("Shift-Tab", "next permission mode"),
    ("Alt-Y Alt-N Alt-A", "answer the question: yes, no, always"),
    (
        "Tab",
        "open the question, then the next one; complete a name",
    ),
    ("Alt-0 … Alt-9", "show the main agent, or another one"),
    ("Ctrl-\\", "the board of everybody"),
    ("Ctrl-O", "the whole transcript, with search"),
    ("! # / @", "shell, memory note, command, file or agent"),
    ("Ctrl-B", "with no draft: wait no longer for sub-agents"),
    ("Alt-X", "twice: stop all that is in the background"),
    ("Ctrl-V", "put in the image of the clipboard"),
    ("Ctrl-G", "write in your editor"),
    ("Ctrl-Z", "suspend"),
    ("?", "these keys"),
];

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
        "list the agents of the session; Alt-1 … Alt-9 show one",
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
