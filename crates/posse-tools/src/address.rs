//! Which network addresses may be reached: public ones, but not this machine or its neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The addresses that WebFetch may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Public addresses only.
    #[default]
    Public,
    /// Every address, including this machine. For tests.
    Any,
}

impl Reach {
    /// Returns true if this address may be connected to.
    pub(crate) fn covers(self, address: IpAddr) -> bool {
        self == Self::Any || is_public(address)
    }
}

/// Returns true if a server is on this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

/// Why a host is not reached.
#[derive(Debug, thiserror::Error)]
#[error("{host} is this machine or on a private network")]
pub(crate) struct NotPublic {
    pub(crate) host: String,
}

/// Resolves host names. The client connects only to what this returns, so that the address that
/// was checked is the one that is used.
pub(crate) struct Resolver(pub(crate) Reach);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let covered: Vec<SocketAddr> =
                found.filter(|address| reach.covers(address.ip())).collect();
            if covered.is_empty() {
                return Err(NotPublic { host }.into());
            }
            let addresses: Addrs = Box::new(covered.into_iter());
            Ok(addresses)
        })
    }
}

/// Returns true for an address that is reachable from everywhere.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns true unless the address is reserved, private, shared, for benchmarks or multicast.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a >= 224
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b)))
}

/// Returns true for a global address; one that embeds an IPv4 address is judged by that.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let low = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // IPv4 inside IPv6: mapped, compatible, translated (NAT64), tunnelled (6to4).
        [0, 0, 0, 0, 0, 0xffff | 0, g, h]
        | [0x64, 0xff9b, 0, 0, 0, 0, g, h]
        | [0x2002, g, h, ..] => low(g, h),
        // Local translation and Teredo could lead anywhere.
        [0x64, 0xff9b, ..] | [0x2001, 0, ..] => false,
        // Only 2000::/3 is assigned for global use.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_covered() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(Reach::Public.covers(public.parse().unwrap()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::1",
        ] {
            assert!(!Reach::Public.covers(private.parse().unwrap()), "{private}");
            assert!(Reach::Any.covers(private.parse().unwrap()), "{private}");
        }
    }
}
