//! The processes of this machine. One scan is shared by everybody who asks for it before it
//! begins: many commands that end at once cost a few scans, not a few each.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The environment variable that marks the processes of a call.
pub const CALL_MARK: &str = "POSSE_CALL";
/// The environment variable that marks the processes of a posse process.
pub(crate) const HOST_MARK: &str = "POSSE_HOST";

/// How many bytes of a file in `/proc` are read at once. The kernel returns no more per read.
const PIECE: usize = 4096;

/// The parent of the kernel's threads.
const KERNEL: i32 = 2;
/// How many ids may have been given since a process was started if only those are looked at.
const MOST_YOUNGER: i32 = 64;

/// Number of scans begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The latest scan.
static LAST: Mutex<Option<Arc<ProcessTable>>> = Mutex::new(None);

/// The result of one scan.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    number: u64,
    processes: Vec<Process>,
    /// Indices of the children of each process.
    children: HashMap<i32, Vec<usize>>,
    is_whole: bool,
}

/// The moment at which somebody asked for a scan.
#[derive(Clone, Copy)]
pub(crate) struct ScanRequest(u64);

impl ScanRequest {
    pub(crate) fn now() -> Self {
        Self(BEGUN.load(Ordering::SeqCst))
    }
}

impl ProcessTable {
    /// Returns the latest scan if it began after `asked`.
    pub(crate) fn made_since(asked: ScanRequest) -> Option<Arc<Self>> {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .filter(|table| table.number > asked.0)
            .map(Arc::clone)
    }

    /// Returns a scan that began after `asked`, scanning if there is none. Blocks.
    pub(crate) fn since(asked: ScanRequest) -> Arc<Self> {
        // Held during the scan: those who wait here are likely to find it usable for them.
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = &*last
            && table.number > asked.0
        {
            return Arc::clone(table);
        }
        let number = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
        let newest = newest();
        let processes = look(last.as_deref());
        let mut children: HashMap<i32, Vec<usize>> = HashMap::new();
        for (index, process) in processes.iter().enumerate() {
            children.entry(process.parent).or_default().push(index);
        }
        let table = Arc::new(Self {
            number,
            processes,
            children,
            is_whole: newest.is_some() && newest == self::newest(),
        });
        *last = Some(Arc::clone(&table));
        table
    }

    /// Returns true if no process was started during the scan. Otherwise it may lack one whose
    /// parent was listed, and ended before it was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns all processes except this one.
    pub(crate) fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Returns handles of the processes that belong and of all their descendants, if still alive.
    pub(crate) fn family(&self, belongs: impl Fn(&Process) -> bool) -> Vec<OwnedFd> {
        let mut family: Vec<&Process> = self
            .processes
            .iter()
            .filter(|process| belongs(process))
            .collect();
        let mut known: HashSet<i32> = family.iter().map(|process| process.pid).collect();
        let mut next = 0;
        while let Some(parent) = family.get(next) {
            let children = self.children.get(&parent.pid).into_iter().flatten();
            let children = children.filter_map(|index| self.processes.get(*index));
            family.extend(
                children
                    .filter(|child| known.insert(child.pid))
                    .collect::<Vec<_>>(),
            );
            next += 1;
        }
        family.into_iter().filter_map(Process::handle).collect()
    }
}

/// Returns the processes that were started since this one and are alive, if they are few. None
/// comes while they are looked at. The number of a process must not have been given twice since.
pub(crate) fn younger_than(oldest: i32) -> Option<Vec<Process>> {
    let (mut seen, mut younger) = (oldest, Vec::new());
    loop {
        let last = newest()?;
        if last == seen {
            return Some(younger);
        }
        if !(seen..=oldest.saturating_add(MOST_YOUNGER)).contains(&last) {
            return None;
        }
        for pid in seen + 1..=last {
            // A thread has no handle of this kind, and what is gone has none at all.
            match pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()) {
                Ok(_) => {}
                Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => continue,
                Err(_) => return None,
            }
            if let Some(mut process) = Process::read(pid)
                && !process.ended
                && process.parent != KERNEL
            {
                let mut environment = Vec::new();
                process.read_marks(&mut environment);
                if environment.is_empty() {
                    // It executes another program just now, or hides.
                    return None;
                }
                // It may have cleared its environment since it was seen.
                let last = LAST.try_lock().ok()?;
                let same = |it: &&Process| (it.pid, it.started) == (pid, process.started);
                let known = last.iter().flat_map(|table| &table.processes).find(same);
                let marks = known.map(|known| known.marks.clone()).unwrap_or_default();
                process.marks.extend(marks);
                younger.push(process);
            }
        }
        seen = last;
    }
}

/// Scans all processes except this one.
fn look(before: Option<&ProcessTable>) -> Vec<Process> {
    let own = std::process::id().cast_signed();
    let known: HashMap<i32, &Process> = before
        .iter()
        .flat_map(|table| &table.processes)
        .map(|process| (process.pid, process))
        .collect();
    let pids: Vec<i32> = pids().filter(|pid| *pid != own).collect();
    let mut processes: Vec<Process> = pids.into_iter().filter_map(Process::read).collect();
    let mut environment = Vec::new();
    for process in &mut processes {
        // A process that was marked once stays marked, even if it has cleared its environment.
        // Our own children are read again: before they execute their program they have our
        // environment.
        let marked = known
            .get(&process.pid)
            .filter(|it| it.started == process.started && it.parent != own);
        match marked {
            Some(marked) if !marked.marks.is_empty() => process.marks.clone_from(&marked.marks),
            _ => process.read_marks(&mut environment),
        }
    }
    processes
}

/// Returns the entries of an environment that are our marks.
fn marks(environment: &[u8]) -> Vec<Vec<u8>> {
    // Most environments have no mark and need not be split.
    if memmem::find(environment, b"POSSE_").is_none() {
        return Vec::new();
    }
    let ours = |entry: &&[u8]| {
        let name = entry.split(|byte| *byte == b'=').next();
        name == Some(CALL_MARK.as_bytes()) || name == Some(HOST_MARK.as_bytes())
    };
    environment
        .split(|byte| *byte == 0)
        .filter(ours)
        .map(<[u8]>::to_vec)
        .collect()
}

/// Reads a file of `/proc/PID` into `content`, which stays empty if that fails. Uses as few
/// system calls as possible, since there are many processes.
pub(crate) fn read_all(pid: i32, name: &str, content: &mut Vec<u8>) {
    content.clear();
    let Ok(mut file) = fs::File::open(format!("/proc/{pid}/{name}")) else {
        return;
    };
    let mut piece = [0; PIECE];
    while let Ok(length @ 1..) = file.read(&mut piece) {
        content.extend_from_slice(&piece[..length]);
    }
}

/// Returns the id that was given last, if the kernel tells it.
fn newest() -> Option<i32> {
    let newest = fs::read_to_string("/proc/sys/kernel/ns_last_pid").ok()?;
    newest.trim_end().parse().ok()
}

/// Returns the ids of all processes.
fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process, as far as it matters here.
#[derive(Debug, PartialEq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    ended: bool,
    /// The start time, which tells it from a later process with the same id.
    pub(crate) started: u64,
    /// Our marks in its environment, as `NAME=value`.
    marks: Vec<Vec<u8>>,
}

impl Process {
    /// Returns true if the process carries this mark.
    pub(crate) fn carries(&self, mark: &[u8]) -> bool {
        self.marks.iter().any(|it| it == mark)
    }

    /// Returns the value of a mark.
    pub(crate) fn mark(&self, name: &str) -> Option<String> {
        let value = |mark: &Vec<u8>| {
            let value = mark.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        self.marks.iter().find_map(value)
    }

    /// Reads the marks, with `buffer` for the environment they are in.
    pub(crate) fn read_marks(&mut self, buffer: &mut Vec<u8>) {
        read_all(self.pid, "environ", buffer);
        self.marks = marks(buffer);
    }

    /// Reads a process without its marks.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let mut stat = Vec::new();
        read_all(pid, "stat", &mut stat);
        Self::parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// Parses a line of `/proc/PID/stat`.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        // The name stands in parentheses and may itself contain some.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            ended: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            marks: Vec::new(),
        })
    }

    /// Returns a handle of the process if it is alive. Its start time is read again once the
    /// handle is held: the id may have been given to another process before that.
    fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        let now = Self::read(self.pid)?;
        (now.started == self.started && !now.ended).then_some(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detached::spawn_detached;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "7 (a) R 1 (b) S 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 12345 9";
        let process = Process {
            pid: 7,
            parent: 3,
            group: 4,
            ended: false,
            started: 12345,
            marks: Vec::new(),
        };
        assert_eq!(Process::parse(7, stat), Some(process));
        assert_eq!(Process::parse(7, "7 (a"), None);
    }

    #[test]
    fn younger_processes_are_seen() {
        let start = |sh: &mut std::process::Command| {
            sh.args(["-c", "exec sleep 1000"]).env(CALL_MARK, "younger");
            Ok(())
        };
        loop {
            let oldest = newest().unwrap();
            let mut child = spawn_detached(start, |mut sh| sh.spawn()).unwrap();
            let younger = younger_than(oldest);
            child.kill().unwrap();
            child.wait().unwrap();
            // It is not known as long as the child executes one program after another.
            let Some(younger) = younger else { continue };
            let pid = child.id().cast_signed();
            let seen = younger.iter().find(|process| process.pid == pid).unwrap();
            assert!(seen.carries(b"POSSE_CALL=younger"));
            break;
        }
        assert!(younger_than(1).is_none(), "they are too many");
    }

    #[test]
    fn a_look_answers_only_who_asked_before_it_began() {
        let (one, other) = (ScanRequest::now(), ScanRequest::now());
        let first = ProcessTable::since(one);
        assert!(
            Arc::ptr_eq(&first, &ProcessTable::since(other)),
            "both had asked"
        );
        assert!(
            !Arc::ptr_eq(&first, &ProcessTable::since(ScanRequest::now())),
            "it is over"
        );
    }
}
