//! Hosts that commands connect to, in words.

/// Returns a host and a port as URLs name them: addresses with colons in brackets.
pub fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
