//! Keeps secrets of this process from others.

#[cfg(target_os = "linux")]
use crate::config::environment;

/// Keeps other processes of the same user, commands of agents above all, from reading the
/// environment and the memory of this one: a key is in both. Root can read them all the same.
pub(crate) fn hide_memory() {
    // A posse that a command of another has started has no key of the user's in its environment,
    // and the other finds it by that environment when it ends what the command has left.
    #[cfg(target_os = "linux")]
    if environment::variable(posse_tools::CALL_MARK).is_none() {
        let behavior = rustix::process::DumpableBehavior::NotDumpable;
        // Cannot fail with a value that the kernel knows.
        let _set = rustix::process::set_dumpable_behavior(behavior);
    }
}
