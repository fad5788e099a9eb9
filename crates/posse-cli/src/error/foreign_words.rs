//! Flags and commands of other agents' programs, with what posse has instead.

/// Flags that posse does not have.
const FLAGS: [(&str, &str); 25] = [
    (
        "--agent",
        "--agents defines agent types, and `posse agents list` shows them",
    ),
    (
        "--append-system-prompt-file",
        "--append-system-prompt \"$(cat FILE)\"",
    ),
    (
        "--approval-mode",
        "--permission-mode, and --on-question wait or deny",
    ),
    (
        "--ask-for-approval",
        "--permission-mode, and --on-question wait or deny",
    ),
    (
        "--cd",
        "run posse in that directory; --add-dir adds another",
    ),
    (
        "--cwd",
        "run posse in that directory; --add-dir adds another",
    ),
    (
        "--dangerously-bypass-approvals-and-sandbox",
        "--permission-mode bypassPermissions, and POSSE_SANDBOX=off",
    ),
    ("--debug", "--verbose, and `posse doctor`"),
    (
        "--disable-slash-commands",
        "--disallowedTools Skill takes the skills from the model",
    ),
    (
        "--full-auto",
        "--permission-mode acceptEdits; commands run in a sandbox (`posse help security`)",
    ),
    (
        "--ide",
        "posse does not connect to an editor; `posse mcp serve` lets an editor run agents",
    ),
    (
        "--image",
        "name the file in the prompt, or put it into a conversation with /image",
    ),
    ("--json", "--output-format stream-json"),
    (
        "--mcp-debug",
        "`posse mcp check` says what is wrong with a server",
    ),
    (
        "--no-session-persistence",
        "--store sqlite:PATH keeps the session elsewhere",
    ),
    (
        "--oss",
        "--provider openai --base-url http://127.0.0.1:11434/v1",
    ),
    ("--output-schema", "--json-schema"),
    (
        "--plugin-dir",
        "agents, skills and hooks are files in .posse/ or posse's home",
    ),
    ("--prompt", "posse -p \"what to do\""),
    (
        "--replay-user-messages",
        "prompts are always repeated with --output-format stream-json",
    ),
    (
        "--sandbox",
        "\"sandbox\" in settings.json, or POSSE_SANDBOX=off (`posse help security`)",
    ),
    ("--system-prompt-file", "--system-prompt \"$(cat FILE)\""),
    ("--teammate-mode", "--team-backend"),
    (
        "--worktree",
        "`isolation: worktree` in an agent type gives each agent a worktree (`posse help agents`)",
    ),
    ("--yolo", "--permission-mode bypassPermissions"),
];

/// Commands that posse does not have.
const COMMANDS: [(&str, &str); 7] = [
    ("chat", "`posse` alone opens a conversation"),
    ("config", "`posse doctor --files` lists the settings files"),
    ("exec", "`posse -p \"what to do\"` runs a prompt"),
    (
        "init",
        "/init in a conversation, which `posse` opens, writes AGENTS.md",
    ),
    (
        "login",
        "`posse` alone asks for a key; `posse mcp login` signs in to a server",
    ),
    ("resume", "`posse -r` shows the sessions to continue"),
    ("run", "`posse -p \"what to do\"` runs a prompt"),
];

/// Returns what posse has in place of a flag.
pub(super) fn instead_of_flag(flag: &str) -> Option<&'static str> {
    find(&FLAGS, flag.split('=').next().unwrap_or(flag))
}

/// Returns what posse has in place of a command.
pub(super) fn instead_of_command(word: &str) -> Option<&'static str> {
    find(&COMMANDS, word)
}

fn find(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    let mut found = table.iter().filter(|(name, _)| *name == word);
    found.next().map(|(_, instead)| *instead)
}
