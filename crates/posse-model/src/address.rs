//! Addresses of providers: which of them are on this machine.

/// Returns true if a URL is on this machine.
pub fn is_local(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default();
    ["127.", "localhost", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local))
}
