//! The order of rules and modes.

mod own_commands;
mod tricks;
mod worktree;

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::super::{RuleList, Source};
use super::*;

/// CPU time of this thread: judging must be cheap, and a busy machine does not make it dear.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

const WORKSPACE_ROOT: &str = "/w";

fn workspace() -> Workspace {
    Workspace {
        cwd: WORKSPACE_ROOT.into(),
        roots: vec![WORKSPACE_ROOT.into()],
        spill: "/spill".into(),
        home: Some("/h".into()),
        mirror: None,
        notes: None,
    }
}

fn policy(deny: &[&str], ask: &[&str], allow: &[&str]) -> Policy {
    let source = Source {
        name: "test".into(),
        root: "/w".into(),
        cwd: "/w".into(),
        home: Some("/h".into()),
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let mut policy = Policy::default();
    policy
        .add(
            &source,
            &RuleList {
                deny: texts(deny),
                ask: texts(ask),
                allow: texts(allow),
            },
        )
        .unwrap();
    policy
}

/// A tool and what it is about to do, in short: `Read /w/a`, `Bash ls`, `WebFetch host`, `Agent scout`.
fn call(text: &str) -> (String, Intent) {
    let (tool, rest) = text.split_once(' ').unwrap_or((text, ""));
    let paths = || vec![PathBuf::from(rest)];
    let (read_only, subject) = match tool {
        "Read" | "Grep" | "Glob" => (true, Subject::Reads(paths())),
        "Edit" | "Write" => (false, Subject::Edits(paths())),
        "Bash" => (false, Subject::runs(rest)),
        "WebFetch" => (
            true,
            Subject::Fetches {
                host: rest.to_owned(),
            },
        ),
        "Connect" => {
            let (host, port) = rest.rsplit_once(' ').unwrap();
            let (host, port) = (host.to_owned(), port.parse().unwrap());
            (true, Subject::Connects { host, port })
        }
        "Agent" => (
            true,
            Subject::Starts {
                agent: rest.to_owned(),
            },
        ),
        "AskUserQuestion" => (true, Subject::Asks(QuestionKind::Choice)),
        _ => (rest == "reads", Subject::Nothing),
    };
    (
        tool.to_owned(),
        Intent {
            read_only,
            beside_others: false,
            subject,
            waits: false,
            title: String::new(),
        },
    )
}

fn verdict(policy: &Policy, mode: PermissionMode, text: &str) -> Verdict {
    let (tool, intent) = call(text);
    decide(policy, mode, &workspace(), &tool, &intent)
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

// proves PE-01 (part: plan; default; acceptEdits; dontAsk; bypassPermissions)
#[test]
fn modes() {
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
    let policy = policy(
        &["Bash(curl *)", "Read(.env)"],
        &["Bash(git push *)"],
        &["WebFetch(domain:docs.rs)"],
    );
    let modes = [Plan, Default, AcceptEdits, DontAsk, BypassPermissions];
    let table = [
        ("Read /w/a", ["allow", "allow", "allow", "allow", "allow"]),
        (
            "Read /spill/a",
            ["allow", "allow", "allow", "allow", "allow"],
        ),
        ("Read /etc/passwd", ["ask", "ask", "ask", "deny", "allow"]),
        ("Read /w/.env", ["deny", "deny", "deny", "deny", "deny"]),
        ("Edit /w/.env", ["deny", "deny", "deny", "deny", "deny"]),
        ("Edit /w/a", ["deny", "ask", "allow", "deny", "allow"]),
        ("Write /out/a", ["deny", "ask", "ask", "deny", "allow"]),
        (
            "Edit /w/.git/config",
            ["deny", "deny", "deny", "deny", "allow"],
        ),
        ("Bash ls -l", ["allow", "allow", "allow", "allow", "allow"]),
        (
            "Bash cat a | wc -l",
            ["allow", "allow", "allow", "allow", "allow"],
        ),
        (
            "Bash cat /etc/passwd",
            ["deny", "ask", "ask", "deny", "allow"],
        ),
        ("Bash ls && make", ["deny", "ask", "ask", "deny", "allow"]),
        ("Bash make", ["deny", "ask", "ask", "deny", "allow"]),
        ("Bash git push", ["deny", "ask", "ask", "deny", "allow"]),
        ("Bash curl x", ["deny", "deny", "deny", "deny", "deny"]),
        ("Bash ls > a", ["deny", "ask", "ask", "deny", "allow"]),
        (
            "Bash ls > .envrc",
            ["deny", "deny", "deny", "deny", "allow"],
        ),
        (
            "WebFetch docs.rs",
            ["allow", "allow", "allow", "allow", "allow"],
        ),
        (
            "WebFetch example.com",
            ["ask", "ask", "ask", "deny", "allow"],
        ),
        ("AskUserQuestion asks", ["ask", "ask", "ask", "ask", "ask"]),
        ("Agent scout", ["allow", "allow", "allow", "allow", "allow"]),
        (
            "mcp__srv__get reads",
            ["ask", "ask", "ask", "deny", "allow"],
        ),
    ];
    for (text, expected) in table {
        let given = modes.map(|mode| word(&verdict(&policy, mode, text)));
        assert_eq!(given, expected, "{text}");
    }
}

// proves PE-02 (part: the grammar; the order)
#[test]
fn rules_in_the_order_deny_ask_allow() {
    let both = [
        "Bash(git diff *)",
        "Read(./secrets/**)",
        "Edit(/src/**)",
        "WebFetch(domain:x.org)",
        "mcp__srv__tool",
        "Agent(scout)",
    ];
    let calls = [
        "Bash git diff a",
        "Read /w/secrets/a",
        "Edit /w/src/a",
        "WebFetch x.org",
        "mcp__srv__tool",
        "Agent scout",
    ];
    for (rule, text) in both.into_iter().zip(calls) {
        let given = |deny: &[&str], ask: &[&str], allow: &[&str]| {
            word(&verdict(
                &policy(deny, ask, allow),
                PermissionMode::Default,
                text,
            ))
        };
        assert_eq!(given(&[rule], &[rule], &[rule]), "deny", "{rule}");
        assert_eq!(given(&[], &[rule], &[rule]), "ask", "{rule}");
        assert_eq!(given(&[], &[], &[rule]), "allow", "{rule}");
    }
}

#[test]
fn texts_say_who_decided_and_what_would_help() {
    let policy = policy(&["Bash(curl *)"], &["Bash(git push *)"], &["Bash(find *)"]);
    let mode = PermissionMode::Default;
    let table = [
        ("Bash curl x", Verdict::Deny("the rule `Bash(curl *)` (test) denies this".into())),
        ("Bash git push", Verdict::Ask("the rule `Bash(git push *)` (test) requires a person's \
                                        approval".into())),
        (
            "Bash npm test",
            Verdict::Ask("no rule allows Bash(npm test); allow it with --allowedTools 'Bash(npm \
                          test)'".into()),
        ),
        (
            "Bash find . -delete",
            Verdict::Ask(
                "`find . -delete` does more than a rule with `*` covers: `-delete` can run or write something else"
                    .into(),
            ),
        ),
        (
            "Edit /w/a",
            Verdict::Ask("no rule allows Edit(//w/a); allow it with --allowedTools 'Edit(//w/a)'".into()),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(verdict(&policy, mode, text), expected, "{text}");
    }
}

/// What becomes of commands in the default mode.
fn judges(policy: &Policy, table: &[(&str, &str)]) {
    for (command, expected) in table {
        let given = verdict(policy, PermissionMode::Default, &format!("Bash {command}"));
        assert_eq!(word(&given), *expected, "{command}: {given:?}");
    }
}

// proves PE-12 (part: outside)
#[test]
fn outside_is_never_automatic() {
    let (tool, mut intent) = call("Bash make");
    if let Subject::Runs { outside, .. } = &mut intent.subject {
        *outside = true;
    }
    for (mode, expected) in [
        (PermissionMode::Default, "ask"),
        (PermissionMode::AcceptEdits, "ask"),
        (PermissionMode::DontAsk, "deny"),
        (PermissionMode::Plan, "deny"),
        (PermissionMode::BypassPermissions, "deny"),
    ] {
        for allow in [&[][..], &["Bash"]] {
            let policy = policy(&[], &[], allow);
            let given = decide(&policy, mode, &workspace(), &tool, &intent);
            assert_eq!(word(&given), expected, "{mode}: {given:?}");
        }
        let ruled = policy(&[], &[], &["Outside(make)"]);
        let given = decide(&ruled, mode, &workspace(), &tool, &intent);
        let expected = if mode == PermissionMode::Plan {
            "deny"
        } else {
            "allow"
        };
        assert_eq!(word(&given), expected, "{mode}: {given:?}");
    }
}

// proves PE-09 (part: hosts)
#[test]
fn hosts_of_commands() {
    let policy = policy(
        &["Connect(evil.test)", "Connect(*.evil.test)"],
        &["Connect(asked.test)"],
        &[
            "Connect(docs.test)",
            "Connect(*.evil.test)",
            "Connect(@crates)",
        ],
    );
    for (connection, expected) in [
        ("docs.test 443", "allow"),
        ("docs.test 22", "ask"),
        ("index.crates.io 443", "allow"),
        ("other.test 443", "ask"),
        ("asked.test 443", "ask"),
        ("evil.test 22", "deny"),
        ("a.evil.test 443", "deny"),
        // It only begins like one that is allowed.
        ("docs.test.other.test 443", "deny"),
    ] {
        let connection = format!("Connect {connection}");
        let given = verdict(&policy, PermissionMode::Default, &connection);
        assert_eq!(word(&given), expected, "{connection}: {given:?}");
    }
    for (mode, expected) in [
        (PermissionMode::Plan, "ask"),
        (PermissionMode::DontAsk, "deny"),
        (PermissionMode::AcceptEdits, "ask"),
        (PermissionMode::BypassPermissions, "allow"),
    ] {
        let other = verdict(&policy, mode, "Connect other.test 443");
        assert_eq!(word(&other), expected, "{mode}");
        let denied = verdict(&policy, mode, "Connect evil.test 443");
        assert_eq!(word(&denied), "deny", "{mode}");
    }
}

// proves PE-06 (part: only reads)
#[test]
fn what_only_reads_needs_no_rule() {
    use PermissionMode::{Default, DontAsk, Plan};
    let none = policy(&[], &[], &[]);
    for command in [
        "ls -la src",
        "cat a b | sort -u | head -5",
        "rg -n 'fn main' src && wc -l src/a",
        "cd src && cat a",
        "find . -name '*.rs' -type f",
        "sed -n 1,5p a",
        "pwd; date; [ -e a ] || echo none",
        "timeout 5 grep -rn x .",
        "cat < a",
        "ls 2>/dev/null",
    ] {
        for mode in [Plan, Default, DontAsk] {
            let given = verdict(&none, mode, &format!("Bash {command}"));
            assert_eq!(word(&given), "allow", "{command}: {given:?}");
        }
    }
    for command in [
        "cat /etc/hosts",
        "cat ../x",
        "ls > a",
        "find . -delete",
        "sort -o a b",
        "sed -i s/a/b/ a",
        "rg --pre sh x",
        "cat $X",
        "cat $(ls)",
        "X=1 ls",
        "PATH=. ls",
        "git status",
        "./ls",
        "ls & make",
        "env",
        "uniq a b",
        "file -C -m x",
        "xargs cat",
        "posse sessions list",
        "echo 'posse team approve 7' | sh",
    ] {
        let given = verdict(&none, Plan, &format!("Bash {command}"));
        assert_eq!(word(&given), "deny", "{command}: {given:?}");
        let given = verdict(&none, Default, &format!("Bash {command}"));
        assert_ne!(word(&given), "allow", "{command}: {given:?}");
    }
    // Rules still decide first.
    let denies = policy(&["Read(.env)", "Bash(du *)"], &["Bash(ls *)"], &[]);
    let table = [
        ("cat .env", "deny"),
        ("grep -r x .", "ask"),
        ("du -s .", "deny"),
        ("ls", "ask"),
        ("cat a", "allow"),
    ];
    judges(&denies, &table);
}

// proves PE-06 (part: compound commands; substitutions; redirections)
#[test]
fn commands() {
    let policy = policy(
        &["Bash(curl *)", "Edit(/fixed)"],
        &[],
        &[
            "Bash(ls *)",
            "Bash(cd *)",
            "Bash(cat *)",
            "Bash(npm test)",
            "Bash(make && make install)",
            "Edit(/log)",
            "Bash(git *)",
            "Bash(cp *)",
        ],
    );
    let table = [
        ("npm test", "allow"),
        ("timeout 60 npm test", "allow"),
        ("timeout -k 5 60 npm test", "ask"),
        ("npm test && ls", "allow"),
        ("make && make install", "allow"),
        ("make && make", "ask"),
        ("if ls a; then cat a; fi", "allow"),
        ("(ls; ls) | cat 2>&1", "allow"),
        ("ls >/dev/null 2>&1", "allow"),
        ("ls > log", "allow"),
        ("ls > other", "ask"),
        ("ls > fixed", "deny"),
        ("cd sub && ls > log", "ask"),
        ("cd sub && cat a", "allow"),
        ("cd .. && cat a", "ask"),
        ("cd sub && git status", "ask"),
        ("cat < a", "allow"),
        ("cat < /etc/passwd", "ask"),
        ("cp a b", "allow"),
        ("cp a .git/hooks/pre-commit", "ask"),
        ("cp a fixed", "ask"),
        ("cp a /out/b", "ask"),
        ("cat .git/config", "allow"),
        ("for PATH in ./evil; do ls; done", "ask"),
        ("bash <<'E'\ncurl x\nE", "deny"),
        ("sh <<< 'curl x'", "deny"),
        ("cat <<'E'\ncurl x\nE", "allow"),
        ("cat $(< a)", "ask"),
        ("x=1", "ask"),
        ("X=1 ls", "ask"),
        ("LC_ALL=C ls", "allow"),
        ("ls $x", "ask"),
        ("./ls", "ask"),
        ("sudo -u me curl x", "deny"),
        ("bash -c 'ls; curl x'", "deny"),
        ("eval cu rl; echo $(curl x)", "deny"),
        ("echo \"${a:-`curl x`}\"", "deny"),
        ("cat <<E\n$(curl x)\nE", "deny"),
        ("[[ $(curl x) ]]", "deny"),
        ("for i in 1; do { curl x; }; done", "deny"),
        ("ls 'unclosed", "ask"),
        ("ls 'unclosed; curl x", "deny"),
        ("if ls; curl x", "deny"),
        ("rm -rf /w", "deny"),
        ("cd / && rm -rf *", "deny"),
        ("sudo rm -fr ~", "deny"),
        ("rm -rf build", "ask"),
    ];
    judges(&policy, &table);
}

// proves FC-01 (part: git)
/// The words name a protected file, and git writes it.
#[test]
fn git_writes_what_its_arguments_name() {
    let policy = policy(&[], &[], &["Bash(git *)", "Bash(git mv *)"]);
    judges(
        &policy,
        &[
            ("git rm a", "ask"),
            ("git mv evil .envrc", "ask"),
            ("git archive -o .git/hooks/x HEAD", "ask"),
            ("git bundle create .envrc HEAD", "ask"),
            ("git fast-export --export-marks=.envrc HEAD", "ask"),
            ("git checkout evil -- .envrc", "ask"),
            ("git checkout-index -a --prefix=.vscode/", "ask"),
            ("git checkout evil -- src/a.rs", "allow"),
            ("git mv a b", "allow"),
            ("git diff -- .envrc", "allow"),
            ("git log -p -- .claude/settings.json", "allow"),
            ("git status", "allow"),
        ],
    );
}

// proves FC-01 (part: wildcards)
/// A wildcard can match a file whose name is an option, and no list knows every program.
#[test]
fn wildcards_are_judged_for_every_program() {
    let allow = ["sed -n *", "rm *", "cat *", "prettier *", "git add *"];
    let allow = allow.map(|pattern| format!("Bash({pattern})"));
    let policy = policy(&[], &[], &allow.each_ref().map(String::as_str));
    judges(
        &policy,
        &[
            ("sed -n 1p *", "ask"),
            ("rm *", "ask"),
            ("rm ?rf", "ask"),
            ("cat *.rs", "allow"),
            ("prettier *.ts", "ask"),
            ("git add *.rs", "ask"),
            ("sed -n 1p ./*", "allow"),
            ("rm ./*.o", "allow"),
            ("prettier src/*.ts", "allow"),
            ("prettier '*.ts'", "allow"),
        ],
    );
}

#[test]
fn all_of_bash_can_be_allowed_but_not_what_is_protected() {
    let policy = policy(&["Bash(curl *)"], &[], &["Bash"]);
    judges(
        &policy,
        &[
            ("x=$(date) && echo $x > a", "allow"),
            ("echo > .git/x", "deny"),
            ("a; curl x", "deny"),
        ],
    );
}

#[test]
fn nesting_costs_no_stack_and_no_hours() {
    let policy = policy(&["Bash(curl *)"], &[], &["Bash(echo *)"]);
    for open in [
        "$(",
        "(",
        "{ ",
        "`",
        "if ",
        "\"$(",
        "${x:-",
        "$((",
        "xargs ",
        "<(",
        "((",
        "[[ ( ",
        "! ",
        "a=(",
        "a[",
        "case x in (x) ",
    ] {
        let command = format!("Bash {}curl x", open.repeat(3000));
        let given = verdict(&policy, PermissionMode::Default, &command);
        assert_ne!(given, Verdict::Allow, "{open}");
        for times in [6, 40] {
            let command = format!(
                "Bash echo {}curl x{}",
                open.repeat(times),
                ")".repeat(times)
            );
            assert_ne!(
                verdict(&policy, PermissionMode::Default, &command),
                Verdict::Allow,
                "{open}"
            );
        }
    }
}

fn rules() -> impl Strategy<Value = Vec<&'static str>> {
    let all = [
        "Bash",
        "Bash(ls *)",
        "Bash(git *)",
        "Bash(cp *)",
        "Bash(curl *)",
        "Read",
        "Read(/src/**)",
        "Read(.env)",
        "Edit",
        "Edit(//w/**)",
        "WebFetch",
        "WebFetch(domain:docs.rs)",
        "Agent",
        "Agent(scout)",
        "mcp__srv",
        "Write",
    ];
    proptest::sample::subsequence(all.to_vec(), 0..all.len())
}

fn calls() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "Bash ls",
        "Bash git push",
        "Bash curl x",
        "Bash ls; curl x",
        "Bash ls > .git/x",
        "Bash $x",
        "Read /w/src/a",
        "Read /w/.env",
        "Grep /w",
        "Edit /w/src/a",
        "Edit /w/.git/config",
        "Write /out/a",
        "WebFetch docs.rs",
        "WebFetch example.com",
        "Agent scout",
        "Agent other",
        "mcp__srv__get reads",
    ])
}

fn modes_of_all() -> impl Strategy<Value = PermissionMode> {
    proptest::sample::select(PermissionMode::ALL.to_vec())
}

proptest! {
    #[test]
    fn deny_wins(deny in rules(), ask in rules(), allow in rules(), call in calls(), mode in modes_of_all()) {
        let alone = verdict(&policy(&deny, &[], &[]), PermissionMode::BypassPermissions, call);
        let all = verdict(&policy(&deny, &ask, &allow), mode, call);
        if alone != Verdict::Allow {
            prop_assert_eq!(alone, all);
        }
    }

    #[test]
    fn nobody_is_asked_in_dont_ask(deny in rules(), ask in rules(), allow in rules(), call in calls()) {
        let given = verdict(&policy(&deny, &ask, &allow), PermissionMode::DontAsk, call);
        prop_assert_ne!(word(&given), "ask");
    }

    #[test]
    fn only_deny_rules_hold_in_bypass(ask in rules(), allow in rules(), call in calls()) {
        let given = verdict(&policy(&[], &ask, &allow), PermissionMode::BypassPermissions, call);
        prop_assert_eq!(given, Verdict::Allow);
    }
}
