//! The worktrees screen of `posse board` in a real terminal, with real git.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::terminal::Terminal;
use crate::worktrees::repository;

/// A main agent that starts another in a worktree, which writes a file and then asks a person.
const WRITES: &str = r#"
[[rule]]
when = { agent = "re:^/main/dev-", turn = 1 }
reply = [{ tool = "Write", input = { file_path = "sum.rs", content = "fn sum() {\n    1 + 1\n}\n" } }]
[[rule]]
when = { agent = "re:^/main/dev-", turn = 2 }
reply = [{ tool = "Bash", input = { command = "make docs" } }]
[[rule]]
when = { agent = "re:^/main/dev-" }
reply = [{ text = "I see it." }]
[[rule]]
when = { user = "begin", turn = 1 }
reply = [{ tool = "Agent", input = { description = "sums", prompt = "Work.", name = "dev", isolation = "worktree", run_in_background = true } }]
[[rule]]
reply = [{ text = "So it is." }]
"#;

// proves UI-19 (part: a terminal)
#[test]
fn a_person_reviews_a_worktree_and_the_agent_is_told() {
    let project = repository("board-review");
    let server = crate::crash::serve(WRITES);
    let editor = project.file("../editor");
    std::fs::write(&editor, "#!/bin/sh\necho '// mine' >>\"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let more = format!(
        "more='ANTHROPIC_BASE_URL={} EDITOR={}'",
        server.url(),
        editor.display()
    );
    let run = "posse 'begin it' --permission-mode acceptEdits; echo code $?";
    let first = Terminal::with(&project, (120, 40), &format!("{more}\n{run}"));
    first.sees("make docs");
    let lines = format!("{more}\nposse board; echo code $?");
    let board = Terminal::beside(&project, "tmux2", &lines);
    board.sees("Enter open");

    // What git says comes by itself.
    board.types(&["6"]);
    let screen = board.sees("1 file +3 −0");
    assert!(
        screen.contains("● dev") && screen.contains("on posse/"),
        "{screen}"
    );
    board.types(&["Enter"]);
    board.sees("sum.rs  new, 3 lines");
    board.types(&["n", "j", "c"]);
    board.sees("sum.rs:2:");
    board.types(&["use checked_add", "Enter"]);
    let screen = board.sees("▌ use checked_add");
    assert!(screen.contains("1 comment not sent"), "{screen}");
    // The person's editor has the terminal, and what it did is read.
    board.types(&["e"]);
    board.sees("4 +// mine");
    board.types(&["q"]);
    board.sees("throw away 1 comment that is not sent?");
    board.types(&["n", "s"]);
    board.sees("told dev");

    board.types(&["5"]);
    board.sees("make docs");
    let told = || {
        let requests = server.requests();
        let of_dev = requests.iter().filter(|it| {
            it.header("x-posse-agent")
                .is_some_and(|at| at.starts_with("/main/dev-"))
        });
        let bodies = of_dev.map(|it| String::from_utf8_lossy(&it.body).into_owned());
        bodies.last().unwrap_or_default()
    };
    board.waits("told", || {
        board.types(&["M-y"]);
        told().contains("use checked_add")
    });
    let words = "sum.rs:2\\n> +    1 + 1\\nuse checked_add";
    assert!(told().contains(words), "{}", told());

    // Its agent has ended: the worktree can be discarded.
    let worktrees = || {
        let home = project.file("../home/worktrees");
        let roots = std::fs::read_dir(home).into_iter().flatten().flatten();
        let all = roots.flat_map(|root| std::fs::read_dir(root.path()).into_iter().flatten());
        let all = all.flatten().map(|entry| entry.path());
        let all: Vec<PathBuf> = all.filter(|path| path.join("sum.rs").exists()).collect();
        all
    };
    board.types(&["6", "q"]);
    board.sees("○ dev");
    assert_eq!(worktrees().len(), 1);
    board.types(&["x"]);
    let screen = board.sees("discard dev's worktree with 1 uncommitted file (sum.rs)?");
    assert!(screen.contains("any other key no"), "{screen}");
    board.waits("discarded", || {
        board.types(&["y"]);
        worktrees().is_empty()
    });
    board.sees("no agent has a worktree");
    board.types(&["q"]);
    board.sees("code 0");
    first.types(&["C-d"]);
    first.sees("code 0");
}
