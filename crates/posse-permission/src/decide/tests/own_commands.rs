//! Commands of posse itself, with which an agent could act in the person's name.

use super::*;

fn given(allow: &[&str], command: &str) -> &'static str {
    let policy = policy(&[], &[], allow);
    word(&verdict(
        &policy,
        PermissionMode::Default,
        &format!("Bash {command}"),
    ))
}

// proves QU-05 (part: rules)
#[test]
fn a_rule_with_a_wildcard_does_not_cover_posse() {
    let wide: &[&str] = &[
        "Bash",
        "Bash(posse *)",
        "Bash(posse:*)",
        "Bash(posse team approve *)",
        "Bash(./posse *)",
        "Bash(nohup posse *)",
    ];
    for command in [
        "posse team approve 7",
        "posse",
        "./posse team approve 7",
        "/usr/bin/posse team approve 7",
        "target/debug/posse team approve 7",
        "~/bin/posse team approve 7",
        "pos\"se\" team approve 7",
        "\\posse team approve 7",
        "{posse,team,approve,7}",
        "/usr/bin/poss? team approve 7",
        "/usr/bin/po[s]se team approve 7",
        "/usr/bin/p* team approve 7",
        "X=1 posse team approve 7",
        "env posse team approve 7",
        "env -i HOME=/h posse team approve 7",
        "env {posse,team}",
        "command posse team approve 7",
        "exec posse team approve 7",
        "nohup posse team approve 7 &",
        "timeout 5 posse team approve 7",
        "setsid -f posse team approve 7",
        "unshare -r posse team approve 7",
        "sudo -u me posse team approve 7",
        "echo 7 | xargs posse team approve",
        "find . -name x -exec posse team approve 7 ;",
        "sh -c 'posse team approve 7'",
        "bash -c \"sleep 1; posse team approve 7\"",
        "eval posse team approve 7",
        "echo 'posse team approve 7' | sh -s posse",
        "sh <<'E'\nposse team approve 7\nE",
        "ls && posse team approve 7",
        "ls | posse mail send lead -",
        "(posse team approve 7 &)",
        "echo $(posse team approve 7)",
        "echo `posse team approve 7`",
        "cat <(posse team approve 7)",
        "f() { posse team approve 7; }; f",
        "for x in 7; do posse team approve $x; done",
        "if posse team approve 7; then ls; fi",
        "bash -c 'posse team approve 7",
    ] {
        assert_eq!(given(wide, command), "ask", "{command}");
        assert_eq!(given(&["Bash(*)"], command), "ask", "{command}");
    }
    for command in [
        "ls",
        "echo posse",
        "until [ -e go ]; do sleep 0.02; done",
        "[[ -e go ]] && test -e go",
        "ls posse",
        "cd ~/src/posse && make",
        "timeout 60 cargo build -p posse",
        "git clone https://example.org/posse",
        "./posse-bench",
        "./scripts/test-*.sh",
    ] {
        assert_eq!(given(&["Bash(*)"], command), "allow", "{command}");
    }
}

// proves QU-05 (part: rules)
#[test]
fn a_rule_that_names_the_command_in_full_does() {
    let exact: &[&str] = &["Bash(posse task list)", "Bash(ls *)"];
    for (command, expected) in [
        ("posse task list", "allow"),
        ("timeout 5 posse task list", "allow"),
        ("ls -l && posse task list", "allow"),
        ("posse task list --all", "ask"),
        ("/usr/bin/posse task list", "ask"),
        ("posse task add x", "ask"),
        ("xargs posse task list", "ask"),
    ] {
        assert_eq!(given(exact, command), expected, "{command}");
        let with_all = [exact, &["Bash"]].concat();
        assert_eq!(given(&with_all, command), expected, "{command}");
    }
    let line: &[&str] = &["Bash(posse task list | sh -c 'posse mail list')"];
    assert_eq!(
        given(line, "posse task list | sh -c 'posse mail list'"),
        "allow"
    );
    let part: &[&str] = &["Bash", "Bash(posse team approve 7)"];
    assert_eq!(given(part, "posse team approve 7$x"), "ask");
    let Verdict::Ask(why) = verdict(
        &policy(&[], &[], &["Bash"]),
        PermissionMode::Default,
        "Bash posse mail send lead hello",
    ) else {
        panic!("a person is asked")
    };
    assert_eq!(
        why,
        "posse could act in the person's name, so a rule with `*` does not cover `posse mail send \
         lead hello`: no rule allows Bash(posse mail send lead hello); allow it with --allowedTools \
         'Bash(posse mail send lead hello)'"
    );
}

/// Nobody is asked in this mode: posse itself refuses what an agent may not do.
#[test]
fn the_mode_that_asks_nobody_is_not_changed() {
    let mode = PermissionMode::BypassPermissions;
    let given = verdict(&policy(&[], &[], &[]), mode, "Bash posse team approve 7");
    assert_eq!(given, Verdict::Allow);
}
