//! What the kernel gives for a sandbox, and what that is good for.

use posse_port::confinement::Tier;

/// Lowest version of Landlock that keeps what tiers A and B promise: renames and truncation are
/// governed since then.
pub(crate) const LANDLOCK_NEEDED: u8 = 3;

/// The parts of the kernel that a sandbox is made of, as far as they work here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelSupport {
    /// Whether user, mount, pid, network and the other namespaces work, with mounts inside.
    pub namespaces: bool,
    /// Version of Landlock, 0 if there is none.
    pub landlock: u8,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
}

impl KernelSupport {
    /// Returns the tier that these parts are enough for.
    pub fn tier(&self) -> Tier {
        match (
            self.namespaces,
            self.landlock >= LANDLOCK_NEEDED,
            self.seccomp,
        ) {
            (true, true, true) => Tier::A,
            (true, false, true) => Tier::AMinus,
            (false, true, true) => Tier::B,
            _ => Tier::C,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_taken_away_lower_the_tier() {
        for (namespaces, landlock, seccomp, tier) in [
            (true, 7, true, Tier::A),
            (true, 3, true, Tier::A),
            (true, 1, true, Tier::AMinus),
            (true, 0, true, Tier::AMinus),
            (false, 7, true, Tier::B),
            (false, 3, true, Tier::B),
            (false, 1, true, Tier::C),
            (false, 0, true, Tier::C),
            (true, 7, false, Tier::C),
            (false, 7, false, Tier::C),
        ] {
            let support = KernelSupport {
                namespaces,
                landlock,
                seccomp,
            };
            assert_eq!(support.tier(), tier, "{support:?}");
        }
        assert!(Tier::C < Tier::B && Tier::B < Tier::AMinus && Tier::AMinus < Tier::A);
    }
}
