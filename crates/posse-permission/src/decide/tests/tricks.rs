//! What reviewers got past the rules, and what must stay cheap.

use super::*;

/// Deny rules, allow rules, a command, and what becomes of it in `default` and in `bypassPermissions`.
type Trick = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
);

fn hold(table: &[Trick]) {
    for (deny, allow, command, default, bypass) in table {
        let policy = policy(deny, &[], allow);
        for (mode, expected) in [
            (PermissionMode::Default, default),
            (PermissionMode::BypassPermissions, bypass),
        ] {
            let given = verdict(&policy, mode, &format!("Bash {command}"));
            assert_eq!(word(&given), *expected, "{command} in {mode:?}: {given:?}");
        }
    }
}

#[test]
fn what_bash_reads_in_another_way() {
    let plain: &[&str] = &["Bash(echo *)", "Bash(cat *)", "Bash(git *)", "Bash(grep *)"];
    let touch: &[&str] = &["Bash(touch *)"];
    let commands = [
        "echo \\$'\\'; touch PWNED; echo '\\'",
        "cat <<EOF\nE\\\nOF\ntouch PWNED\nEOF\n",
        "cat <<$'EOF'\nx\nEOF\ntouch PWNED\n$EOF\n",
        "cat <<$\"EOF\"\nx\nEOF\ntouch PWNED\n$EOF\n",
        "cat <<E\"O\"F\nx\nEOF\ntouch PWNED\nE\"O\"F\n",
        "cat <<\\EOF\nx\nEOF\ntouch PWNED\n\\EOF\n",
        "echo $(echo \\$'\\'); touch PWNED; echo '\\'",
    ];
    for command in commands {
        hold(&[
            (&[], plain, command, "ask", "allow"),
            (touch, plain, command, "deny", "deny"),
        ]);
    }
    hold(&[
        (
            touch,
            plain,
            "cat <<'EOF'\ntouch PWNED\nEOF",
            "allow",
            "allow",
        ),
        (
            touch,
            plain,
            "cat <<EOF\nit's \"touch\" (x) *\ntouch PWNED\nEOF",
            "allow",
            "allow",
        ),
        (
            touch,
            plain,
            "git commit -m 'don'\\''t; touch it'",
            "allow",
            "allow",
        ),
        (
            touch,
            plain,
            "git commit -m \"say \\\"a; touch b\\\"\"",
            "allow",
            "allow",
        ),
        (
            touch,
            plain,
            "grep 'a$' b | grep \"c\\.d$\"",
            "allow",
            "allow",
        ),
        (
            touch,
            plain,
            "git commit -m \"$(cat <<'EOF'\nfix\ntouch x\nEOF\n)\"",
            "ask",
            "allow",
        ),
    ]);
}

#[test]
fn braces() {
    let plain: &[&str] = &["Bash(find *)", "Bash(cat *)", "Bash(echo *)"];
    hold(&[
        (
            &[],
            plain,
            "find . -maxdepth 1 {-exec\"\",touch,PWNED,\\;}",
            "ask",
            "allow",
        ),
        (
            &["Bash(touch *)"],
            plain,
            "find . -maxdepth 1 {-exec\"\",touch,PWNED,\\;}",
            "deny",
            "deny",
        ),
        (&["Read(.env)"], plain, "cat {.env\"\",a}", "deny", "deny"),
        (&["Read(.env)"], plain, "cat .e{n,m}v", "deny", "deny"),
        (&["Read(.env)"], plain, "cat .en{v..v}", "deny", "deny"),
        (&["Read(.env)"], plain, "cat < .en{v..v}", "deny", "deny"),
        (&["Bash(curl *)"], plain, "{curl,x}", "deny", "deny"),
        (&[], plain, "echo {} '{a,b}' a,b", "allow", "allow"),
    ]);
}

#[test]
fn wildcards() {
    let plain: &[&str] = &["Bash(cat *)", "Bash(echo *)", "Bash(tee *)", "Bash(ls *)"];
    hold(&[
        (&["Read(*.pem)"], plain, "cat key.p*", "ask", "deny"),
        (&["Read(*.pem)"], plain, "cat key.pe[m]", "ask", "deny"),
        (&["Read(*.pem)"], &["Bash"], "cat key.pe?", "ask", "deny"),
        (&["Read(**/.env)"], plain, "cat .e*v", "ask", "deny"),
        (&["Read(**/.env)"], plain, "cat < .en?", "ask", "deny"),
        (
            &["Read(**/.env)"],
            plain,
            "ls *.rs src/*.toml",
            "allow",
            "allow",
        ),
        (
            &["Edit(*.lock)"],
            plain,
            "echo x | tee Cargo.l*",
            "ask",
            "allow",
        ),
        (
            &["Edit(*.lock)"],
            &["Bash"],
            "echo x > Cargo.l*",
            "ask",
            "deny",
        ),
        (&[], plain, "echo x | tee .gi?/description", "ask", "allow"),
        (&[], &["Bash"], "echo x > .gi?/description", "deny", "allow"),
    ]);
}

#[test]
fn wrappers_and_searches() {
    hold(&[
        (
            &[],
            &["Bash(grep *)"],
            "grep -e. /etc/hostname",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(grep *)"],
            "grep -ne . /etc/hostname",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(grep *)"],
            "grep --regexp=. /etc/hostname",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(grep *)"],
            "grep -nf/etc/hostname a",
            "ask",
            "allow",
        ),
        (
            &["Read(.env)"],
            &["Bash(grep *)"],
            "grep -nf.env a",
            "deny",
            "deny",
        ),
        (&[], &["Bash(rg *)"], "rg --files /etc", "ask", "allow"),
        (
            &[],
            &["Bash(grep *)"],
            "grep -n /etc/hostname a",
            "allow",
            "allow",
        ),
        (
            &[],
            &["Bash(timeout *)"],
            "timeout 5 touch PWNED",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(timeout *)"],
            "timeout -k 1 5 touch PWNED",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(timeout *)", "Bash(ls *)"],
            "timeout 5 ls",
            "allow",
            "allow",
        ),
        (
            &[],
            &["Bash(timeout 5 ls *)"],
            "timeout 5 ls a",
            "allow",
            "allow",
        ),
        (
            &[],
            &["Bash(timeout 5 find *)"],
            "timeout 5 find . -delete",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(timeout 5 touch PWNED)"],
            "timeout 5 touch PWNED",
            "allow",
            "allow",
        ),
        (
            &[],
            &["Bash(nice *)", "Bash(timeout *)"],
            "nice timeout 5 touch PWNED",
            "ask",
            "allow",
        ),
        (&[], &["Bash(nohup *)"], "nohup touch PWNED", "ask", "allow"),
        (
            &[],
            &["Bash(setsid *)"],
            "setsid touch PWNED",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(stdbuf *)"],
            "stdbuf -o0 touch PWNED",
            "ask",
            "allow",
        ),
        (&[], &["Bash(env *)"], "env touch PWNED", "ask", "allow"),
        (&[], &["Bash(xargs *)"], "xargs touch", "ask", "allow"),
        (
            &[],
            &["Bash(command *)"],
            "command touch PWNED",
            "ask",
            "allow",
        ),
        (&[], &["Bash(exec *)"], "exec touch PWNED", "ask", "allow"),
        (&[], &["Bash(time *)"], "time touch PWNED", "ask", "allow"),
        (
            &[],
            &["Bash(/usr/bin/timeout *)"],
            "/usr/bin/timeout 5 touch PWNED",
            "ask",
            "allow",
        ),
        (
            &[],
            &["Bash(nice *)", "Bash(ls *)"],
            "nice l? a",
            "ask",
            "allow",
        ),
    ]);
}

// proves PE-06 (part: redirections)
#[test]
fn redirections_are_edits() {
    let echo: &[&str] = &["Bash(echo *)", "Bash(cat *)"];
    let table: &[(&[&str], &[&str], &str, &str)] = &[
        (&["Edit"], echo, "echo x > out", "deny"),
        (&["Write"], echo, "echo x >> out", "deny"),
        (&["Edit"], echo, "echo x > /dev/null 2>&1", "allow"),
        (&["Edit"], echo, "cat < a", "allow"),
        (&["Read"], echo, "cat < a", "deny"),
        (&["Grep"], echo, "cat < a", "allow"),
        (&[], echo, "echo x > out", "ask"),
        (
            &[],
            &["Bash(echo *)", "Edit(/out)"],
            "echo x > out",
            "allow",
        ),
        (&[], &["Bash(echo *)", "Edit(/**)"], "echo x > out", "ask"),
        (&["Edit(/fixed)"], echo, "echo \"${x\" > fixed", "deny"),
    ];
    for (deny, allow, command, expected) in table {
        let given = verdict(
            &policy(deny, &[], allow),
            PermissionMode::AcceptEdits,
            &format!("Bash {command}"),
        );
        assert_eq!(word(&given), *expected, "{command}: {given:?}");
    }
    let asked = verdict(
        &policy(&[], &["Edit"], &["Bash"]),
        PermissionMode::AcceptEdits,
        "Bash echo x > out",
    );
    assert_eq!(word(&asked), "ask");
}

fn cheap() -> Policy {
    policy(
        &["Bash(curl *)", "Read(.env)", "Read(**/*.pem)"],
        &[],
        &["Bash(ls *)", "Bash(echo *)", "Bash(cd *)"],
    )
}

#[test]
fn nothing_takes_long() {
    let policy = cheap();
    let arguments = |count: usize| " a".repeat(count);
    let table = [
        format!("{}ls; ls{} ]", "(".repeat(47), " )".repeat(46)),
        format!("{}ls; ls{} ]", "(".repeat(8), " )".repeat(7)),
        format!("{}ls; ls{} ]", "( ".repeat(8), " )".repeat(7)),
        format!("{}ls; ls{} ]", "{ ( ".repeat(4), " ); }".repeat(3)),
        format!("{}ls; ls{} ]", "(ls ')'; ".repeat(40), " )".repeat(39)),
        format!("echo \\$'{}ls{}'", "$( (".repeat(3000), ") )".repeat(3000)),
        format!("echo \"{}ls{}\"", "$(\"".repeat(3000), "\")".repeat(3000)),
        format!("{}ls{}", "cd a;".repeat(2000), arguments(1000)),
        format!("{}ls{}", "cd a;".repeat(15), arguments(4000)),
        format!("ls{}", " *".repeat(4000)),
        format!("ls {}", "*a".repeat(4000)),
        format!("ls {}", "{a,b}".repeat(2000)),
        format!("ls {}", "{a,b}".repeat(8)),
        format!("ls{}", " {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}".repeat(250)),
        "xargs ".repeat(100_000),
        "bash -c 'x' ".repeat(20_000),
        "ls;".repeat(100_000),
        format!("cat <<'E'\n{}\nE", "a; b\n".repeat(2000)),
        "if ls; then ".repeat(40),
        "while ".repeat(48),
        "! ".repeat(48),
        "case x in x) ".repeat(40),
        "case x in x) ".repeat(4),
        "case x in (x) ( ".repeat(4),
        "if case x in x) ls;; esac; then ( ".repeat(4),
        "for x in a; do if ( ".repeat(8),
        "for x in a; do ( ".repeat(8),
        "[[ ( ".repeat(8),
        "a=( ".repeat(8),
        "${x:-".repeat(8),
        "$(<< $( \t".into(),
        "cat f * ^ !$\" $(<< $( \t".into(),
    ];
    for command in table {
        let begun = cpu_time();
        verdict(&policy, PermissionMode::Default, &format!("Bash {command}"));
        let start: String = command.chars().take(40).collect();
        assert!(
            cpu_time() - begun < Duration::from_secs(2),
            "{start}: {:?}",
            cpu_time() - begun
        );
    }
}

#[test]
fn what_is_hidden_in_a_mass_is_denied() {
    let policy = cheap();
    for command in [
        format!("{}curl x", "ls;".repeat(1000)),
        format!("{}curl x{}", "(".repeat(40), ")".repeat(40)),
        format!("{}; bash -c 'curl x'", "(ls);".repeat(400)),
        format!("{}cat .env", "ls;".repeat(1000)),
        format!(
            "{}cat key",
            (0..20).map(|at| format!("cd a{at};")).collect::<String>()
        ),
    ] {
        let given = verdict(
            &policy,
            PermissionMode::BypassPermissions,
            &format!("Bash {command}"),
        );
        let start: String = command.chars().take(40).collect();
        assert_eq!(word(&given), "deny", "{start}");
    }
}

fn noise() -> impl Strategy<Value = String> {
    let pieces = vec![
        "(", ")", "{", "}", "[", "]", ";", "&", "|", "<", ">", "$", "`", "'", "\"", "\\", "ls",
        "a", " ", "\n", ",", "echo ", "<<", "#", "*",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..300)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn noise_is_judged_in_time(text in noise()) {
        let begun = cpu_time();
        let given = verdict(&cheap(), PermissionMode::Default, &format!("Bash echo {text}"));
        prop_assert!(cpu_time() - begun < Duration::from_secs(2), "{:?}", cpu_time() - begun);
        // What is allowed has nothing in it that runs or writes: not even between the words.
        if given == Verdict::Allow {
            // A dollar before anything else means itself.
            let expands = |c: char| c.is_alphanumeric() || "({[*#$'\"".contains(c);
            let dollar = |at: usize| text[at + 1..].chars().next().is_some_and(expands);
            let runs = text.contains(['`', '>']) || text.match_indices('$').any(|(at, _)| dollar(at));
            let hidden = text.contains(['\'', '"', '\\', '#', '<']) || text.contains("/dev/null");
            prop_assert!(!runs || hidden, "{text}");
        }
    }
}
