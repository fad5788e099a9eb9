//! Hosts that commands connect to, in rules: `Connect(docs.rs)`, `Connect(*.docs.rs)`,
//! `Connect(db.example:5432)` and `Connect(@crates)`.

use std::net::IpAddr;

use super::pattern::Domain;

/// Ports that a rule without one allows: those of the web.
const WEB: [u16; 2] = [80, 443];

/// Hosts that belong together, by the name that rules have for them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Preset {
    pub(super) name: &'static str,
    hosts: &'static [&'static str],
}

/// All presets.
static PRESETS: [Preset; 4] = [
    Preset {
        name: "@crates",
        hosts: &["crates.io", "index.crates.io", "static.crates.io"],
    },
    Preset {
        name: "@npm",
        hosts: &["registry.npmjs.org", "registry.yarnpkg.com"],
    },
    Preset {
        name: "@pypi",
        hosts: &["pypi.org", "files.pythonhosted.org"],
    },
    Preset {
        name: "@github",
        hosts: &[
            "github.com",
            "api.github.com",
            "codeload.github.com",
            "raw.githubusercontent.com",
            "objects.githubusercontent.com",
            "release-assets.githubusercontent.com",
        ],
    },
];

/// Hosts in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostPattern {
    /// These, at this port; without one, at any port or those of the web.
    Named { domain: Domain, port: Option<u16> },
    /// Those of a preset.
    Preset(&'static Preset),
}

impl HostPattern {
    /// Reads what is in the parentheses; none if it is not a host.
    pub(super) fn new(text: &str) -> Option<Self> {
        if text.starts_with('@') {
            return PRESETS
                .iter()
                .find(|preset| preset.name == text)
                .map(Self::Preset);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: IpAddr = address.parse().ok()?;
                let port = (!rest.is_empty()).then(|| rest.strip_prefix(':'));
                (address.to_string(), port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host.to_owned(), Some(Some(port))),
                None => (text.to_owned(), None),
            },
        };
        let number = |port: Option<&str>| port?.parse().ok().filter(|port| *port != 0);
        let port = match port {
            Some(port) => Some(number(port)?),
            None => None,
        };
        let domain = Domain::new(&host)?;
        Some(Self::Named { domain, port })
    }

    /// Returns the host that it is, or that it is below.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named { domain, .. } => domain.name(),
            Self::Preset(_) => None,
        }
    }

    /// Returns true if a rule that denies or asks applies to this host.
    pub(super) fn touches(&self, host: &str, at: u16) -> bool {
        match self {
            Self::Named { domain, port } => {
                port.is_none_or(|port| port == at) && domain.matches(host)
            }
            Self::Preset(preset) => preset.hosts.contains(&host),
        }
    }

    /// Returns true if a rule that allows covers this host. An address must be named itself.
    pub(super) fn allows(&self, host: &str, at: u16) -> bool {
        let is_named = matches!(
            self,
            Self::Named {
                domain: Domain::Itself(_),
                ..
            }
        );
        let is_web = WEB.contains(&at);
        let fits_port = match self {
            Self::Named {
                port: Some(port), ..
            } => *port == at,
            _ => is_web,
        };
        fits_port && self.touches(host, at) && (is_named || host.parse::<IpAddr>().is_err())
    }
}

/// Returns the preset that a host belongs to.
pub(super) fn preset_of(host: &str, port: u16) -> Option<&'static Preset> {
    let mut presets = PRESETS.iter().filter(|_| WEB.contains(&port));
    presets.find(|preset| preset.hosts.contains(&host))
}

/// Returns the rule about this host alone.
pub(super) fn rule_for(host: &str, port: u16) -> String {
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    match WEB.contains(&port) {
        true => format!("Connect({host})"),
        false => format!("Connect({host}:{port})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_rules() {
        // The rule, host and port, and whether it allows and denies them.
        let table = [
            ("docs.rs", "docs.rs", 443, true, true),
            ("docs.rs", "docs.rs", 22, false, true),
            ("docs.rs:22", "docs.rs", 22, true, true),
            ("docs.rs:22", "docs.rs", 443, false, false),
            ("docs.rs", "docs.rs.evil.test", 443, false, false),
            ("docs.rs", "xdocs.rs", 443, false, false),
            ("*.docs.rs", "a.docs.rs", 443, true, true),
            ("*.docs.rs", "docs.rs", 443, false, false),
            ("*", "docs.rs", 80, true, true),
            ("*", "docs.rs", 22, false, true),
            ("*", "10.0.0.1", 80, false, true),
            ("*:8080", "docs.rs", 8080, true, true),
            ("10.0.0.1", "10.0.0.1", 80, true, true),
            ("[::1]", "::1", 443, true, true),
            ("[0::1]:8080", "::1", 8080, true, true),
            ("@crates", "index.crates.io", 443, true, true),
            ("@crates", "index.crates.io", 22, false, true),
            ("@crates", "crates.io.evil.test", 443, false, false),
            ("@npm", "index.crates.io", 443, false, false),
        ];
        for (rule, host, port, allows, denies) in table {
            let pattern = HostPattern::new(rule).unwrap();
            assert_eq!(
                pattern.allows(host, port),
                allows,
                "{rule} and {host}:{port}"
            );
            assert_eq!(
                pattern.touches(host, port),
                denies,
                "{rule} and {host}:{port}"
            );
            let own = rule_for(host, port);
            let own = own
                .strip_prefix("Connect(")
                .and_then(|it| it.strip_suffix(')'));
            assert!(HostPattern::new(own.unwrap()).unwrap().allows(host, port));
        }
        for wrong in [
            "@nix", "a b", "a:", "a:0", "a:x", "::1", "[a]", "[::1]x", "a/b", "",
        ] {
            assert_eq!(HostPattern::new(wrong), None, "{wrong}");
        }
    }
}
