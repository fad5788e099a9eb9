//! The filter of system calls: what no command needs, and what would lead out of the rest.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

/// Families of sockets that programs use among themselves; what they reach is for namespaces.
const INNER_FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Which sockets can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// None: nothing else keeps them from reaching others.
    None,
    /// Those of programs among themselves: a namespace holds them.
    Inner,
    /// Also those that tell about the network.
    Network,
}

/// System calls that fail.
const DENIED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    // Ways around other filters.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
];

/// Flags of `clone` and `unshare` that make namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests that put characters into a terminal's input.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541C];

/// Filters the system calls of this process and of those that it starts.
pub(crate) fn apply(sockets: Sockets) -> Result<(), seccompiler::Error> {
    apply_filter(&unknown_calls())?;
    let filter = SeccompFilter::new(
        rules(sockets)?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        std::env::consts::ARCH.try_into()?,
    )?;
    apply_filter(&seccompiler::BpfProgram::try_from(filter)?)
}

fn rules(sockets: Sockets) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in DENIED {
        rules.insert(*call, Vec::new());
    }
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        for call in [libc::SYS_unshare, libc::SYS_clone] {
            let is_set = condition(0, SeccompCmpOp::MaskedEq(flag), flag)?;
            let rule = SeccompRule::new(vec![is_set])?;
            rules.entry(call).or_default().push(rule);
        }
    }
    for request in TERMINAL_INPUT {
        let rule = SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?])?;
        rules.entry(libc::SYS_ioctl).or_default().push(rule);
    }
    let mut families = INNER_FAMILIES.to_vec();
    match sockets {
        Sockets::None => families.clear(),
        Sockets::Inner => {}
        Sockets::Network => families.push(libc::AF_NETLINK),
    }
    let others = families.into_iter().map(|family| {
        let family = u64::from(family.cast_unsigned());
        condition(0, SeccompCmpOp::Ne, family)
    });
    let others: Vec<_> = others.collect::<Result<_, _>>()?;
    let socket = match others.is_empty() {
        true => Vec::new(),
        false => vec![SeccompRule::new(others)?],
    };
    rules.insert(libc::SYS_socket, socket);
    Ok(rules)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    condition.map_err(Into::into)
}

/// Returns a filter that says of some calls that they do not exist: `clone3`, whose flags no filter
/// can see, so that programs use `clone`; and the numbers of the x32 convention.
fn unknown_calls() -> Vec<sock_filter> {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const X32: u32 = 0x4000_0000;
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    vec![
        // The number of the call is the first field.
        line(LOAD, 0, 0, 0),
        line(JUMP_EQUAL, 1, 0, clone3),
        line(JUMP_AT_LEAST, 0, 1, X32),
        line(RETURN, 0, 0, ERRNO | libc::ENOSYS.cast_unsigned()),
        line(RETURN, 0, 0, ALLOW),
    ]
}
