//! Which addresses of the network may be reached: those that everybody can, not this machine nor
//! its neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// What WebFetch may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Public addresses only.
    #[default]
    Public,
    /// Every address, this machine's too. For tests.
    Any,
}

impl Reach {
    /// Returns true if this address may be connected to.
    pub(crate) fn covers(self, address: IpAddr) -> bool {
        self == Self::Any || is_public(address)
    }
}

/// Why a host is not reached.
#[derive(Debug, thiserror::Error)]
#[error("{host} is this machine or on a private network")]
pub(crate) struct NotPublic {
    pub(crate) host: String,
}

/// Finds the addresses of hosts. The client connects to what this gives and to nothing else, so
/// that the address that is looked at is the one that is used.
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

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

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

fn is_public_v6(address: Ipv6Addr) -> bool {
    let low = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // An older address in a newer one's clothes: mapped, compatible, translated, tunnelled.
        [0, 0, 0, 0, 0, 0xffff | 0, g, h]
        | [0x64, 0xff9b, 0, 0, 0, 0, g, h]
        | [0x2002, g, h, ..] => low(g, h),
        // Local translation, Teredo.
        [0x64, 0xff9b, ..] | [0x2001, 0, ..] => false,
        // Only these are given out to be reached by all.
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
