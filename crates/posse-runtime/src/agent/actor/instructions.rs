//! Keeps the model informed of memory files: of those that change, and of those about files that it
//! reads or edits. Each content is told once, and again after a compaction.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use posse_port::tool::{Subject, Workspace};

use crate::agent::actor::Actor;
use crate::definition::catalogue::Listed;
use crate::definition::instructions::{
    Instruction, Kept, MemoryRoom, SessionInstructions, Standing,
};
use crate::history::any_contains;
use crate::prompt::instructions::{changed, known_by, restored, touched, untrusted};

/// What the model was told of memory files.
#[derive(Default)]
pub(crate) struct ToldInstructions {
    /// Files that were compared last.
    looked: Option<Listed<Instruction>>,
    /// Fingerprints of contents that it knows. What is not here may still be in its history.
    known: HashSet<u64>,
    /// Room for more; none until something was told.
    room: Option<MemoryRoom>,
}

impl ToldInstructions {
    /// Returns what an agent knows that begins with these files.
    pub(crate) fn at_start(files: Option<Listed<Instruction>>) -> Self {
        // What a repository says that nobody has trusted is not in the system prompt: it is told
        // with the first entry.
        let is_told = |files: &Listed<Instruction>| {
            let mut files = files.iter();
            files.all(|file| file.standing == Standing::Instructions)
        };
        Self {
            looked: files.filter(is_told),
            ..Self::default()
        }
    }
}

/// Compares the files with what the model knows. Changes are told with the next entry: the system
/// prompt stays as it is, and so stays cached.
pub(super) fn check_changes(actor: &mut Actor) {
    let Some(instructions) = actor.session.setup.spawning.instructions.clone() else {
        return;
    };
    let now = instructions.files.now();
    // The list is replaced when a file changes, so comparing pointers is enough.
    let looked = &actor.advertised.instructions.looked;
    if looked
        .as_ref()
        .is_some_and(|looked| Arc::ptr_eq(looked, &now))
    {
        return;
    }
    let before = actor
        .advertised
        .instructions
        .looked
        .replace(Arc::clone(&now));
    let from_start = now
        .iter()
        .map(|file| &**file)
        .filter(|file| file.globs.is_none());
    let (known, new): (Vec<_>, Vec<_>) = from_start.partition(|file| is_known(actor, file));
    let back: Vec<PathBuf> = known
        .into_iter()
        .filter(|file| was_other(file, before.as_ref()))
        .map(|file| file.path.clone())
        .collect();
    if !back.is_empty() {
        actor.machine.tell(restored(&back));
    }
    tell(actor, &new, changed);
}

/// Tells the model of files that are about what a call has read or edited.
pub(super) fn tell_touched(actor: &mut Actor, found: &[Instruction]) {
    let mut new: Vec<&Instruction> = Vec::new();
    for file in found {
        if !is_known(actor, file) && !new.iter().any(|other| other.text == file.text) {
            new.push(file);
        }
    }
    tell(actor, &new, touched);
}

/// Forgets what was told: a compaction has replaced the history.
pub(super) fn on_compacted(actor: &mut Actor) {
    actor.advertised.instructions = ToldInstructions::default();
}

/// Returns the files about what a call has read or edited.
pub(super) async fn about(
    instructions: Option<Arc<SessionInstructions>>,
    subject: Subject,
    workspace: Arc<Workspace>,
) -> Vec<Instruction> {
    let (Subject::Reads(paths) | Subject::Edits(paths)) = subject else {
        return Vec::new();
    };
    let Some(instructions) = instructions else {
        return Vec::new();
    };
    let look = move || {
        let about = |path: PathBuf| instructions.finder.about(&path, &workspace);
        paths.into_iter().flat_map(about).collect()
    };
    // If it panics, the call itself has succeeded all the same.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Tells the model of new contents with the next entry, and apart from them of those that are not
/// instructions.
fn tell(actor: &mut Actor, new: &[&Instruction], text: fn(&[Instruction], &[PathBuf]) -> String) {
    let is_instruction = |file: &&Instruction| file.standing == Standing::Instructions;
    let (instructions, others): (Vec<_>, Vec<_>) = new.iter().copied().partition(is_instruction);
    tell_framed(actor, &instructions, text);
    tell_framed(actor, &others, untrusted);
}

fn tell_framed(
    actor: &mut Actor,
    new: &[&Instruction],
    text: fn(&[Instruction], &[PathBuf]) -> String,
) {
    if new.is_empty() {
        return;
    }
    let mut room = actor.advertised.instructions.room.unwrap_or_else(|| {
        let spawning = &actor.session.setup.spawning;
        let at_start = spawning
            .instructions
            .iter()
            .flat_map(|it| it.at_start.iter());
        let from_start = at_start.filter(|file| file.globs.is_none());
        MemoryRoom::beside(from_start.map(|file| file.text.as_str()))
    });
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    for file in new {
        actor
            .advertised
            .instructions
            .known
            .insert(fingerprint(file));
        match room.take(&file.text, file.text.len() as u64) {
            Kept::Whole(text) | Kept::Start { text, .. } => files.push(Instruction {
                text,
                ..(*file).clone()
            }),
            Kept::Nothing => left_out.push(file.path.clone()),
        }
    }
    actor.advertised.instructions.room = Some(room);
    actor.machine.tell(text(&files, &left_out));
}

/// Returns true if the model knows the content: it is in its system prompt or its history, which
/// other processes, a parent or an earlier life may have written.
fn is_known(actor: &mut Actor, file: &Instruction) -> bool {
    let fingerprint = fingerprint(file);
    if actor.advertised.instructions.known.contains(&fingerprint) {
        return true;
    }
    let text = known_by(file);
    let preamble = std::slice::from_ref(&actor.prefix.preamble);
    let is_known = any_contains(preamble, &text) || actor.prefix.history.contains(&text);
    if is_known {
        actor.advertised.instructions.known.insert(fingerprint);
    }
    is_known
}

/// Returns true if a file said something else before.
fn was_other(file: &Instruction, before: Option<&Listed<Instruction>>) -> bool {
    before.is_some_and(|before| {
        let same_path = |other: &&Arc<Instruction>| other.path == file.path;
        before
            .iter()
            .find(same_path)
            .is_some_and(|other| other.text != file.text)
    })
}

fn fingerprint(file: &Instruction) -> u64 {
    let seed = match file.standing {
        Standing::Instructions => 0,
        // Once it is trusted, the same text is told as instructions.
        Standing::Information => 1,
    };
    xxhash_rust::xxh3::xxh3_64_with_seed(file.text.as_bytes(), seed)
}
