//! Five stories of the terminal, each a recording in `docs/stories`.

use std::fs;
use std::process::Command;

use crate::binary::Project;
use crate::conversation_rules::IDLE;
use crate::story::{Home, SIZE, Story};
use crate::terminal::Terminal;

/// What the foot of the screen has.
const FOOT: &str = "? keys";

/// Allows what the stories run.
const PYTHON: &str = r#""Bash(python3 *)""#;

/// Returns true once a draft with these words is kept.
fn is_draft_kept(home: &Home, words: &str) -> bool {
    let files = fs::read_dir(home.path().join(".posse/drafts"));
    let files = files.into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    texts.collect::<String>().contains(words)
}

/// Returns true while a process waits to give the terminal back.
fn is_guarded(terminal: &Terminal<'_>) -> bool {
    let path = terminal.tmux.run(&["display-message", "-p", "#{pane_tty}"]);
    let arguments = format!("posse-terminal {}", path.trim());
    let found = Command::new("pgrep").args(["-f", &arguments]).output();
    !found.unwrap().stdout.is_empty()
}

/// Begins a story in which `posse` is started as every day.
fn conversation<'a>(named: (&str, &str), terminal: &'a Terminal<'a>, home: &'a Home) -> Story<'a> {
    let mut story = Story::begin(named, terminal, home);
    story.step("A conversation", &["posse", "Enter"], FOOT);
    story
}

/// Lets a command of a story go on.
fn let_go(project: &Project, name: &str) {
    fs::write(project.file(name), "").unwrap();
}

#[test]
fn first_start() {
    let home = Home::new();
    let project = home.project("notes", &[], "");
    let terminal = Terminal::shell(&project, SIZE, &["ANTHROPIC_BASE_URL"]);
    let title = "The first start, without a key";
    let mut story = Story::begin(("first-start", title), &terminal, &home);
    story.step("posse has no key yet", &["posse", "Enter"], "1, 2 or q:");
    story.step("The scripted model answers", &["2", "Enter"], FOOT);
    let keys = [
        "What does **greet** do?",
        "C-j",
        "```python",
        "C-j",
        "def greet(name):",
        "C-j",
        "    return f\"Hello, {name}!\"",
        "C-j",
        "```",
    ];
    story.step("A first question, with code", &keys, "Hello");
    let words = "You said: What does greet do?";
    story.step("The answer, with Markdown and code", &["Enter"], words);
    story.step("All keys", &["?"], "Alt-Q");
    story.step("The prompt again", &["Escape"], IDLE);
    let words = "continue with: posse --resume ";
    story.step("Leaving", &["C-d"], words);
    story.end();
}

/// A function that is wrong, and its test, which waits until the story goes on.
const SHOP: &[(&str, &str)] = &[
    (
        "prices.py",
        "\"\"\"Prices of the shop.\"\"\"\n\n\ndef total(prices, discount):\n    \
         \"\"\"Returns the sum of the prices, less the discount.\"\"\"\n    \
         return sum(prices) + discount\n",
    ),
    (
        "test_prices.py",
        "import os, sys, time\nfrom prices import total\n\
         while not os.path.exists('go'):\n    time.sleep(0.02)\n\
         sum = total([10, 5], 3)\nprint(f'total([10, 5], 3) is {sum}, not 12')\nsys.exit(sum != 12)\n",
    ),
];

const CORRECTS: &str = r#"
[[rule]]
when.user = "empty list"
reply = [{ text = "An empty list is next: `total([], 0)` must be `0`." }]
[[rule]]
when.turn = 3
reply = [{ text = "`total` subtracts the discount now." }]
[[rule]]
when.turn = 2
reply = [
  { text = "The discount is added, where it should be subtracted." },
  { tool = "Edit", input = { file_path = "prices.py", old_string = "sum(prices) + discount", new_string = "sum(prices) - discount" } },
]
[[rule]]
reply = [
  { text = "I read the function and run its test." },
  { tool = "Read", input = { file_path = "prices.py" } },
  { tool = "Bash", input = { command = "python3 test_prices.py" } },
]
"#;

#[test]
fn questions() {
    let home = Home::new();
    home.allow(PYTHON);
    let project = home.project("shop", SHOP, CORRECTS);
    let terminal = Terminal::shell(&project, SIZE, &[]);
    let title = "A question appears while a prompt is typed";
    let mut story = conversation(("questions", title), &terminal, &home);
    let keys = ["The total is too high. Please correct it.", "Enter"];
    story.step("The agent runs a test", &keys, "┄ $ python3");
    story.step("The next prompt is typed", &["then add a test"], "a test");
    let_go(&project, "go");
    let says = "The agent asks: what was typed stays where it is";
    story.keep(says, &[], "Alt-Y yes");
    let says = "Letters go to the prompt, not to the question";
    story.step(says, &[" for an empty list"], "empty list");
    terminal.waits("answered", || {
        terminal.types(&["M-y"]);
        let text = fs::read_to_string(project.file("prices.py")).unwrap();
        text.contains("- discount")
    });
    story.keep("Alt-Y: the change is made and shown", &["M-y"], IDLE);
    story.step("The prompt is sent", &["Enter"], "must be 0");
    story.step("Leaving", &["C-d"], "continue with: ");
    story.end();
}

/// Checks that take their time.
const CHECKS: &[(&str, &str)] = &[(
    "check.py",
    "import os, time\nfor file in ['lexer.py', 'parser.py']:\n    \
     print(f'{file}: ok', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.02)\n\
     print('printer.py:12: error: no such name: indnet')\n\
     print('printer.py:40: style: line too long')\n",
)];

const STEERED: &str = r#"
[[rule]]
when.user = "changelog"
reply = [{ text = "The entry:\n\n> Fixed: a misspelt name in the printer." }]
[[rule]]
when.user = "style"
reply = [{ text = "One error is left: `indnet` in printer.py:12 should be `indent`. I leave the style alone." }]
[[rule]]
reply = [
  { text = "I run the checks." },
  { tool = "Bash", input = { command = "python3 check.py" } },
]
"#;

#[test]
fn steering() {
    let home = Home::new();
    home.allow(PYTHON);
    let project = home.project("parser", CHECKS, STEERED);
    let terminal = Terminal::shell(&project, SIZE, &[]);
    let title = "A run is steered, and the next one is queued";
    let mut story = conversation(("steering", title), &terminal, &home);
    let keys = ["Run the checks and tell me what is wrong.", "Enter"];
    story.step("A command runs, with live output", &keys, "parser.py: ok");
    let keys = ["Never mind the style.", "Enter"];
    story.step(
        "Enter: this joins the run at its next step",
        &keys,
        "1 queued",
    );
    let keys = ["Then write a changelog entry.", "M-q"];
    story.step(
        "Alt-Q: this waits for the end of the run",
        &keys,
        "2 queued",
    );
    let_go(&project, "go");
    story.keep("Both arrive, in order", &[], "misspelt name");
    story.step("Leaving", &["C-d"], "continue with: ");
    story.end();
}

/// A test and a review that take their time.
const MEMBERS: &[(&str, &str)] = &[
    (
        "test_lexer.py",
        "import os, time\nprint('12 tests', flush=True)\n\
         while not os.path.exists('go'):\n    time.sleep(0.02)\nprint('12 passed')\n",
    ),
    ("lint.sh", "echo lexer.py: no problems\n"),
];

const TEAM: &str = r#"
[[rule]]
when = { agent = "re:tester", tool = "re:." }
reply = [{ text = "All 12 tests pass." }]
[[rule]]
when = { agent = "re:tester" }
reply = [{ text = "I run the tests." }, { tool = "Bash", input = { command = "python3 test_lexer.py" } }]
[[rule]]
when = { agent = "re:reviewer", tool = "re:." }
reply = [{ text = "`tokens` drops the places of words: messages cannot name a column." }]
[[rule]]
when = { agent = "re:reviewer" }
reply = [{ text = "I run the linter." }, { tool = "Bash", input = { command = "sh lint.sh" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "TeamCreate", input = { team_name = "lexer", description = "Make the lexer ready." } }]
[[rule]]
when.turn = 2
reply = [{ tool = "Agent", input = { description = "run the tests", prompt = "Run all tests of the lexer.", name = "tester", team_name = "lexer" } }]
[[rule]]
when.turn = 3
reply = [{ tool = "Agent", input = { description = "review the lexer", prompt = "Review the lexer.", name = "reviewer", team_name = "lexer" } }]
[[rule]]
when.turn = 4
reply = [{ text = "The tester runs the tests, and the reviewer looks at the code." }]
[[rule]]
when.user = "12 tests"
reply = [{ text = "The tests pass; what is left is the remark of the reviewer." }]
[[rule]]
reply = [{ text = "The reviewer has a remark. I wait for the tests." }]
"#;

#[test]
fn team() {
    let home = Home::new();
    home.allow(PYTHON);
    let project = home.project("lexer", MEMBERS, TEAM);
    let terminal = Terminal::shell(&project, SIZE, &[]);
    let title = "A team: its questions, its board, and one of its members";
    let mut story = conversation(("team", title), &terminal, &home);
    let keys = ["Have a team test and review the lexer.", "Enter"];
    story.step("Two work, and one of them asks", &keys, "Alt-Y yes");
    story.step("Ctrl-\\: the board", &["C-\\"], "NEEDS YOU 1");
    story.step("All questions", &["5"], "[5]questions (1)");
    terminal.waits("answered", || {
        terminal.types(&["M-y"]);
        terminal.screen().contains("no question waits")
    });
    // A press too many leaves a notice, which the next key removes.
    terminal.types(&["5"]);
    story.keep("Alt-Y: it is answered", &["M-y"], "no question waits");
    story.step("Everybody", &["1", "Home"], "WORKING");
    let words = "a question needs no answer any more";
    story.step("The board is left", &["q"], words);
    story.step("Alt-1: a look at the tester", &["M-1"], "talking to tester");
    let_go(&project, "go");
    story.keep("It is done", &[], "All 12 tests pass.");
    story.step(
        "Alt-0: the main agent again",
        &["M-0"],
        "remark of the reviewer",
    );
    story.step("Leaving", &["C-d"], "continue with: ");
    story.end();
}

const CRASHED: &str = r#"
[[rule]]
when.user = "changelog"
reply = [{ text = "The entry:\n\n> Fixed: a misspelt name in the printer." }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It was interrupted." }]
[[rule]]
reply = [
  { text = "I run the checks." },
  { tool = "Bash", input = { command = "python3 check.py" } },
]
"#;

#[test]
fn crash() {
    let home = Home::new();
    home.allow(PYTHON);
    let project = home.project("printer", CHECKS, CRASHED);
    let terminal = Terminal::shell(&project, SIZE, &[]);
    let title = "posse is killed in the middle of a run";
    let mut story = conversation(("crash", title), &terminal, &home);
    let keys = ["Run the checks and tell me what is wrong.", "Enter"];
    story.step("A command runs", &keys, "parser.py: ok");
    let words = "and write a changelog entry";
    story.step("The next prompt is typed", &[words], words);
    terminal.waits("kept", || is_draft_kept(&home, words));
    terminal.kills("-KILL");
    terminal.waits("given back", || !is_guarded(&terminal));
    story.keep("kill -9: the shell has the terminal again", &[], "Killed");
    story.step("The shell works as before", &["clear", "Enter"], "$");
    let_go(&project, "go");
    story.step("posse -c continues", &["posse -c", "Enter"], words);
    story.step("The prompt is sent", &["Enter"], "misspelt name");
    story.step("Leaving", &["C-d"], "continue with: ");
    story.end();
}
