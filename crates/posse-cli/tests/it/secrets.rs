//! The key: commands that an agent runs do not find it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::binary::{Project, posse, stderr};

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// Looks for the key in the environment of every process.
const LOOKS: &str = r#"
[[rule]]
when.tool = 're:.'
reply = [{ text = 'done' }]
[[rule]]
reply = [{ tool = 'Bash', input = { command = '''
for file in /proc/[0-9]*/environ; do
  tr '\0' '\n' <"$file" | grep -a "^ANTHROPIC_API_KEY=sk-of-the-test"
done >found 2>/dev/null
id -u >>found''' } }]
"#;

// proves FC-01 (part: key)
/// As an ordinary user: root reads everything, and only a sandbox can keep a key from it.
#[test]
fn a_command_does_not_read_the_key_from_proc() {
    let project = Project::new("secrets-proc", LOOKS);
    // Where another user can go, which the build directory may not be.
    let place = std::env::temp_dir().join(format!("posse-secrets-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let binary = place.join("posse");
    fs::copy(posse().get_program(), &binary).unwrap();
    let is_root = rustix::process::getuid().is_root();
    let mut command = Command::new(&binary);
    if is_root {
        chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command
        .args(["-p", "--permission-mode", "bypassPermissions", "look"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &place)
        .env("POSSE_HOME", place.join("home"))
        .env("ANTHROPIC_BASE_URL", project.url())
        .env("ANTHROPIC_API_KEY", "sk-of-the-test")
        .current_dir(&place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found = fs::read_to_string(place.join("found")).unwrap();
    fs::remove_dir_all(&place).unwrap();
    assert!(!found.contains("sk-of-the-test"), "{found}");
    if is_root {
        assert_eq!(found, format!("{NOBODY}\n"));
    }
}
