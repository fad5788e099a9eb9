//! The Landlock fence: a second line behind the mounts, and the first where there are none.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};

/// Devices that every program may use.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];

/// Why there is no fence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FenceError {
    #[error("landlock: {0}")]
    Rules(#[from] RulesetError),
    #[error("landlock: {0}")]
    Path(#[from] landlock::PathFdError),
}

/// Returns the newest version that the kernel has of those that make a difference here.
pub(crate) fn version() -> u8 {
    let has = |abi: ABI| {
        let rules = rules(abi, HandlesTcp::No);
        rules.and_then(|rules| Ok(rules.create()?)).is_ok()
    };
    let known = [(6, ABI::V6), (5, ABI::V5), (3, ABI::V3), (1, ABI::V1)];
    let newest = known.into_iter().find(|(_, abi)| has(*abi));
    newest.map_or(0, |(version, _)| version)
}

/// Whether the fence stands before TCP, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlesTcp {
    Yes,
    No,
}

/// Lets this process and those it starts read everything, and write only beneath the roots. Fails
/// if the kernel does not give all of the version.
pub(crate) fn apply<'a>(
    version: u8,
    roots: impl Iterator<Item = &'a Path>,
    tcp: HandlesTcp,
) -> Result<(), FenceError> {
    let abi = match version {
        6.. => ABI::V6,
        5 => ABI::V5,
        _ => ABI::V3,
    };
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = rules(abi, tcp)?.create()?;
    rules = rules.add_rule(PathBeneath::new(PathFd::new("/")?, read))?;
    for device in DEVICES.into_iter().filter(|it| Path::new(it).exists()) {
        let used = AccessFs::ReadFile | AccessFs::WriteFile;
        let used = match abi {
            ABI::V3 => used,
            _ => used | AccessFs::IoctlDev,
        };
        rules = rules.add_rule(PathBeneath::new(PathFd::new(device)?, used))?;
    }
    let nodes = AccessFs::MakeChar | AccessFs::MakeBlock;
    // Terminals inside are devices.
    let written = AccessFs::from_all(abi) & !nodes;
    let of_file = AccessFs::from_file(abi);
    for root in roots {
        let access: BitFlags<AccessFs> = match root.is_dir() {
            true => written,
            false => written & of_file,
        };
        rules = rules.add_rule(PathBeneath::new(PathFd::new(root)?, access))?;
    }
    rules.restrict_self()?;
    Ok(())
}

fn rules(abi: ABI, tcp: HandlesTcp) -> Result<Ruleset, FenceError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi))?;
    }
    if tcp == HandlesTcp::Yes && abi >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
    }
    Ok(rules)
}
