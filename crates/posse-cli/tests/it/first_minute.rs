//! README's first minute, as written.

use std::path::Path;
use std::process::Command;

#[test]
fn the_first_minute_of_the_readme_works_as_written() {
    let readme = include_str!("../../../../README.md");
    let (_, after) = readme.split_once("<!-- tested: first minute -->\n```sh\n").unwrap();
    let (block, _) = after.split_once("```").unwrap();
    // Any free port, so that this test can run beside a server that somebody uses.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = block.replace("4141", &free.to_string());
    let binaries = Path::new(env!("CARGO_BIN_EXE_posse")).parent().unwrap();
    let output = Command::new("bash")
        .args(["-euc", &format!("{script}\nkill %1")])
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", binaries.display()))
        .env("POSSE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("minute"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Hello! I am posse's scripted model"), "{said}");
    assert!(said.contains("You said: why?"), "{said}");
}
