//! A host and a port, as clients of the proxy name them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a host's name.
const LONGEST: usize = 253;
/// Port of a URL that names none.
pub(super) const HTTP: u16 = 80;

/// What a client wants to be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Its name in small letters and without a dot at the end, or its address.
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&posse_protocol::authority(&self.host, self.port))
    }
}

impl Target {
    /// Reads `host:port`, `[address]:port`, or either without a port if there is a usual one. None
    /// for anything that programs could read in two ways.
    pub(super) fn of_authority(text: &str, usual: Option<u16>) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (address.to_string(), rest.strip_prefix(':'))
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                (name(host)?, port)
            }
        };
        let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            Some(port) => port.parse().ok().filter(|_| is_number(port)),
            None if text.ends_with(']') || !text.contains(':') => usual,
            None => None,
        };
        let port = port.filter(|port| *port != 0)?;
        Some(Self { host, port })
    }

    /// Returns the host of these bytes, if they are a name.
    pub(super) fn of_name(bytes: &[u8], port: u16) -> Option<Self> {
        let host = name(std::str::from_utf8(bytes).ok()?)?;
        (port != 0).then_some(Self { host, port })
    }

    /// Returns the host of an address.
    pub(super) fn of_address(address: IpAddr, port: u16) -> Option<Self> {
        let host = address.to_canonical().to_string();
        (port != 0).then_some(Self { host, port })
    }

    /// Returns its address, if it is named by that.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

/// Returns a name of a host as it is compared with rules; none if it is not one.
fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let label = |label: &str| !label.is_empty() && label.bytes().all(plain);
    if text.len() > LONGEST || !text.split('.').all(label) {
        return None;
    }
    // What ends in a number is an address, in a form that not everybody reads in the same way.
    let last = text.rsplit('.').next()?;
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    match is_number {
        true => text.parse().ok().map(|it: Ipv4Addr| it.to_string()),
        false => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_in_one_way_only() {
        let table = [
            ("crates.io:443", Some("crates.io:443")),
            ("CRATES.IO.:443", Some("crates.io:443")),
            ("crates.io", Some("crates.io:80")),
            ("1.2.3.4:8080", Some("1.2.3.4:8080")),
            ("[2606:4700::1]:443", Some("[2606:4700::1]:443")),
            ("[::1]", Some("[::1]:80")),
            ("127.1:80", None),
            ("0x7f.0.0.1:80", None),
            ("127.0.0.0x1:80", None),
            ("2130706433:80", None),
            ("010.0.0.1:80", None),
            ("evil.test\0.allowed.test:443", None),
            ("user@allowed.test:443", None),
            ("allowed.test:443@evil.test", None),
            ("allowed.test/x:443", None),
            ("a..b:80", None),
            (".a:80", None),
            ("", None),
            (":80", None),
            ("a:", None),
            ("a:0", None),
            ("a:+80", None),
            ("a:65536", None),
            ("a:80:80", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]x:80", None),
            ("[fe80::1%lo]:80", None),
            ("bücher.example:80", None),
        ];
        for (text, expected) in table {
            let read = Target::of_authority(text, Some(HTTP)).map(|it| it.to_string());
            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
        assert_eq!(Target::of_authority("crates.io", None), None);
        assert_eq!(Target::of_name(b"evil.test\0.allowed.test", 443), None);
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(Target::of_address(mapped, 1).unwrap().host, "127.0.0.1");
    }
}
