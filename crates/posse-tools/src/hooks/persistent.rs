//! Programs that stay, and answer each line with a line.

use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::confinement::Confinement;
use posse_port::hooks::{HookCall, HookFailure, HookReturn};
use posse_port::process::{ProcessBoundary, ProcessControl};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{MOST_BYTES, failed, over, program, text};
use crate::bash::fault_of_status;
use crate::processes::{AFTERMATH, within};
use crate::system_processes::SystemProcesses;

/// How long a program stays that is not called.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How many programs stay. One that waits makes room for another.
const MOST_PROGRAMS: usize = 32;

/// The programs that stay, the one that was called last at the end.
#[derive(Default)]
pub(super) struct PersistentPrograms(std::sync::Mutex<Vec<Arc<PersistentProgram>>>);

impl PersistentPrograms {
    /// Has the program of a call answer it. Starts the program if it does not run.
    pub(super) async fn call(
        &self,
        processes: &SystemProcesses,
        words: &[String],
        call: &HookCall,
    ) -> HookReturn {
        let (program, surplus) = self.find(words, call);
        if let Some(surplus) = surplus {
            surplus.end().await;
        }
        let mut over = std::pin::pin!(over(call));
        let mut kept = tokio::select! {
            biased;
            failure = &mut over => return failed(failure),
            kept = program.running.lock() => kept,
        };
        // Not kept while it is asked: if this is dropped, its answer would be taken for the next.
        let running = tokio::select! {
            biased;
            failure = &mut over => return failed(failure),
            running = renewed(kept.take(), processes, words, call) => running,
        };
        let mut running = match running {
            Ok(running) => running,
            Err(failure) => return failed(failure),
        };
        let mut said = HookReturn::default();
        let heard = tokio::select! {
            biased;
            failure = &mut over => LineOutcome::Nothing(failure),
            heard = running.exchange(&call.input, &mut said) => heard,
        };
        match heard {
            LineOutcome::Answer => {
                running
                    .idle
                    .spawn(end_idle(Arc::downgrade(&program), Arc::clone(&call.clock)));
                *kept = Some(running);
                said.code = Some(0);
            }
            LineOutcome::End => running.lost(&*call.clock, &mut said).await,
            LineOutcome::Nothing(failure) => {
                running.end().await;
                said.failure = Some(failure);
            }
        }
        said
    }

    /// Returns the program of a call, and one that has to make room.
    fn find(
        &self,
        words: &[String],
        call: &HookCall,
    ) -> (Arc<PersistentProgram>, Option<Arc<PersistentProgram>>) {
        let identity = Identity::of(words, call);
        let mut programs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = programs.iter().position(|it| it.identity == identity);
        let program = match known {
            Some(known) => programs.remove(known),
            None => Arc::new(PersistentProgram {
                identity,
                running: Mutex::new(None),
            }),
        };
        // Those that are being called are not ended under their callers.
        let waits = |it: &Arc<PersistentProgram>| Arc::strong_count(it) == 1;
        let surplus = (programs.len() >= MOST_PROGRAMS).then(|| programs.iter().position(waits));
        let surplus = surplus.flatten().map(|surplus| programs.remove(surplus));
        programs.push(Arc::clone(&program));
        (program, surplus)
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        let programs = {
            let mut programs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *programs)
        };
        let mut ending: JoinSet<()> = JoinSet::new();
        for program in programs {
            ending.spawn(async move { program.end().await });
        }
        while ending.join_next().await.is_some() {}
    }
}

/// What tells a program from others.
#[derive(PartialEq, Eq)]
struct Identity {
    words: Vec<String>,
    directory: PathBuf,
    /// Its rights; none if nothing holds it.
    rights: Option<Arc<Confinement>>,
}

impl Identity {
    fn of(words: &[String], call: &HookCall) -> Self {
        Self {
            words: words.to_vec(),
            directory: call.directory.clone(),
            rights: match &call.boundary {
                ProcessBoundary::None => None,
                ProcessBoundary::Sandbox(bounds) => Some(Arc::clone(&bounds.confinement)),
            },
        }
    }
}

/// A program that stays.
struct PersistentProgram {
    identity: Identity,
    /// Calls wait for it in order.
    running: Mutex<Option<LineProcess>>,
}

/// A program that waits for a line. All of it is killed when this is dropped.
struct LineProcess {
    input: Box<dyn AsyncWrite + Send + Unpin>,
    output: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    errors: Box<dyn AsyncRead + Send + Unpin>,
    control: Box<dyn ProcessControl>,
    /// Ends it when it was not called for long.
    idle: JoinSet<()>,
}

impl PersistentProgram {
    /// Ends it, after the calls that wait for it now.
    async fn end(&self) {
        let running = self.running.lock().await.take();
        if let Some(mut running) = running {
            // This may be the task that is in there.
            running.idle.detach_all();
            running.end().await;
        }
    }
}

/// Ends a program once it was not called for long.
async fn end_idle(program: Weak<PersistentProgram>, clock: Arc<dyn Clock>) {
    clock.sleep(IDLE).await;
    if let Some(program) = program.upgrade() {
        program.end().await;
    }
}

/// Returns the program that was kept if it waits for a line, and starts it if not.
async fn renewed(
    kept: Option<LineProcess>,
    processes: &SystemProcesses,
    words: &[String],
    call: &HookCall,
) -> Result<LineProcess, HookFailure> {
    if let Some(mut kept) = kept {
        kept.idle = JoinSet::new();
        if kept.waits().await {
            return Ok(kept);
        }
        kept.end().await;
    }
    let process = program::start(processes, words, call).await?;
    Ok(LineProcess {
        input: process.input,
        output: BufReader::new(process.output),
        errors: process.errors,
        control: process.control,
        idle: JoinSet::new(),
    })
}

/// What came after a line was written.
enum LineOutcome {
    /// A line.
    Answer,
    /// The end of the program.
    End,
    /// Nothing that is an answer.
    Nothing(HookFailure),
}

impl LineProcess {
    /// Returns true if it runs and has said nothing unasked.
    async fn waits(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.control.ended() => false,
            _ = self.output.fill_buf() => false,
            // After a look at what has happened meanwhile.
            () = tokio::task::yield_now() => true,
        }
    }

    /// Writes a line and reads one.
    async fn exchange(&mut self, line: &[u8], said: &mut HookReturn) -> LineOutcome {
        let mut answer = Vec::new();
        let mut errors = Vec::new();
        let write = async {
            // Fails only if the program has closed its end, which its output tells, too.
            let _ = self.input.write_all(&one_line(line)).await;
        };
        let heard = tokio::select! {
            biased;
            never = drain(&mut self.errors, &mut errors) => match never {},
            (heard, ()) = async {
                tokio::join!(read_line(&mut self.output, &mut answer), write)
            } => heard,
            () = self.control.ended() => LineOutcome::End,
        };
        said.output = text(answer);
        said.errors = text(errors);
        heard
    }

    /// Ends a program that has ended by itself, and adds to what it has said: its last line may be
    /// the answer.
    async fn lost(self, clock: &dyn Clock, said: &mut HookReturn) {
        let Self {
            mut output,
            mut errors,
            control,
            ..
        } = self;
        let end = control.end(Duration::ZERO).await;
        let (mut answer, mut complaint) = (Vec::new(), Vec::new());
        let heard = within(clock, AFTERMATH, read_line(&mut output, &mut answer)).await;
        within(clock, AFTERMATH, errors.read_to_end(&mut complaint)).await;
        said.output += &text(answer);
        said.errors += &text(complaint);
        said.errors += &end.notes.join("\n");
        if let Some(LineOutcome::Answer) = heard {
            said.code = Some(0);
            return;
        }
        let killed = end.status.filter(|status| status.signal().is_some());
        said.failure = Some(match killed.and_then(fault_of_status) {
            Some(killed) => HookFailure::Killed(killed),
            None => {
                let fault = end.status.and_then(fault_of_status);
                let fault = fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
                HookFailure::NotRun(format!("it ended without an answer{fault}"))
            }
        });
    }

    /// Ends it with all that it has started.
    async fn end(self) {
        self.control.end(Duration::ZERO).await;
    }
}

/// Returns an input as a line. Only blanks of JSON are line ends.
fn one_line(input: &[u8]) -> Vec<u8> {
    let mut line = input.to_vec();
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

/// Adds a line to `answer`, without its end.
async fn read_line(
    output: &mut BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    answer: &mut Vec<u8>,
) -> LineOutcome {
    let most = MOST_BYTES as u64 + 1;
    // What cannot be read is as good as at its end.
    let _ = output.take(most).read_until(b'\n', answer).await;
    if answer.pop_if(|last| *last == b'\n').is_some() {
        LineOutcome::Answer
    } else if answer.len() > MOST_BYTES {
        LineOutcome::Nothing(HookFailure::TooLong(MOST_BYTES))
    } else {
        LineOutcome::End
    }
}

/// Reads errors, of which the first are kept, so that the program is never held up by them.
async fn drain(errors: &mut (dyn AsyncRead + Send + Unpin), kept: &mut Vec<u8>) -> Infallible {
    let mut piece = vec![0; 4 << 10];
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        let room = MOST_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..length.min(room)]);
    }
    std::future::pending().await
}
