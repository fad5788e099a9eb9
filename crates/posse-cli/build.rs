//! Links the program to a fixed address: see docs/decisions/2026-11-18-a-fixed-address.md.

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script so")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
