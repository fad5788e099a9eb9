//! What viewers cost an agent, and how soon they see what it says. The model is here: it sends a numbered piece of a
//! reply that has no end, so that each piece is timed from when it was sent until a viewer has it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::program::Bench;
use super::{Bar, Effort, Figure, cpu_ms, median};

/// Time between two pieces.
const PACE: Duration = Duration::from_millis(20);

/// Length of a long piece in bytes.
const LOUD: usize = 8 << 10;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
\"role\":\"assistant\",\"model\":\"claude-opus-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\
\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":\
{\"type\":\"text\",\"text\":\"\"}}\n\n";

/// Measures viewers, and returns what was found.
pub(super) fn measure(
    binaries: &Path,
    bench: &Bench,
    effort: Effort,
    notes: &mut Vec<String>,
) -> Result<Vec<Figure>> {
    let (rounds, time) = match effort {
        Effort::Quick => (3, Duration::from_secs(1)),
        Effort::Full => (7, Duration::from_secs(4)),
    };
    let session = Session::start(binaries, bench.directory.fresh()?)?;
    let (mut shares, mut stopped, mut attach, mut lags) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        let alone = session.share(time)?;
        let viewers = [session.attach()?, session.attach()?];
        attach.extend(viewers.iter().map(|viewer| viewer.first_ms));
        shares.push(session.share(time)? - alone);
        for viewer in viewers {
            lags.extend(viewer.leave()?);
        }
        // By itself again, since the machine may have become slower or faster.
        let alone = session.share(time)?;
        let viewer = session.attach()?;
        viewer.stop()?;
        session.fill_sockets();
        stopped.push(session.share(time)? - alone);
        viewer.leave()?;
    }
    ensure!(lags.len() > 10, "the viewers saw {} pieces", lags.len());
    lags.sort_by(f64::total_cmp);
    let p99 = lags[(lags.len() * 99).div_ceil(100) - 1];
    notes.push(format!(
        "viewers of a reply of 50 pieces a second: {} pieces seen, half of them within {:.2} ms",
        lags.len(),
        lags[lags.len() / 2]
    ));
    Ok(vec![
        Figure::printed("viewer_cpu_percent", median(shares), Bar::Most(3.0)),
        Figure::printed(
            "stopped_viewer_cpu_percent",
            median(stopped),
            Bar::Most(0.1),
        ),
        Figure::printed("attach_ms", median(attach), Bar::Most(30.0)),
        Figure::printed("delta_p99_ms", p99, Bar::Most(25.0)),
    ])
}

/// A session whose main agent hears a reply without an end.
struct Session {
    posse: PathBuf,
    place: PathBuf,
    url: String,
    run: Child,
    model: Arc<SpeakingModel>,
    speaking: Option<JoinHandle<()>>,
}

/// The model, as far as others know it.
#[derive(Default)]
struct SpeakingModel {
    is_over: AtomicBool,
    /// Pieces are long, so that sockets that nobody reads are soon full.
    is_loud: AtomicBool,
    /// When each piece was sent.
    sent: Mutex<Vec<Instant>>,
}

impl SpeakingModel {
    fn sent(&self) -> Vec<Instant> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.clone()
    }

    /// Speaks until it is over, or nobody listens.
    fn speak(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut request = [0; 64 << 10];
        let _ = stream.read(&mut request)?;
        stream.write_all(HEAD.as_bytes())?;
        let mut number = 0;
        while !self.is_over.load(Ordering::Acquire) {
            {
                let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
                sent.push(Instant::now());
            }
            let length = if self.is_loud.load(Ordering::Acquire) {
                LOUD
            } else {
                0
            };
            write!(
                stream,
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
                 \"delta\":{{\"type\":\"text_delta\",\"text\":\"{} {number} \"}}}}\n\n",
                ".".repeat(length)
            )?;
            number += 1;
            std::thread::sleep(PACE);
        }
        Ok(())
    }
}

impl Session {
    fn start(binaries: &Path, place: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (posse, model) = (binaries.join("posse"), Arc::<SpeakingModel>::default());
        for name in ["home", "work"] {
            std::fs::create_dir_all(place.join(name))?;
        }
        let mut command = posse_at(&posse, &place, &url);
        let run = command
            .args(["-p", "go", "--model", "claude-opus-5"])
            .stdout(Stdio::null())
            .spawn()?;
        let (stream, _) = listener.accept()?;
        let speaker = Arc::clone(&model);
        // The listener is dropped: nothing else is asked of the model.
        let speaking = std::thread::spawn(move || drop(speaker.speak(stream)));
        let session = Self {
            posse,
            place,
            url,
            run,
            model,
            speaking: Some(speaking),
        };
        while session.model.sent().len() < 5 {
            std::thread::sleep(PACE);
        }
        Ok(session)
    }

    /// Returns the share of a processor that the agent's process takes, in percent.
    fn share(&self, time: Duration) -> Result<f64> {
        let (before, begun) = (cpu_ms(self.run.id())?, Instant::now());
        std::thread::sleep(time);
        let used = cpu_ms(self.run.id())? - before;
        Ok(used / (begun.elapsed().as_secs_f64() * 10.0))
    }

    /// Waits until the sockets of those who do not read are full.
    fn fill_sockets(&self) {
        self.model.is_loud.store(true, Ordering::Release);
        std::thread::sleep(100 * PACE);
        self.model.is_loud.store(false, Ordering::Release);
        std::thread::sleep(5 * PACE);
    }

    fn attach(&self) -> Result<Viewer> {
        let begun = Instant::now();
        let mut child = posse_at(&self.posse, &self.place, &self.url)
            .args(["attach", "--json"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut printed = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut line = String::new();
        printed.read_line(&mut line)?;
        let first_ms = begun.elapsed().as_secs_f64() * 1e3;
        ensure!(line.starts_with('{'), "attach failed: {line}");
        let model = Arc::clone(&self.model);
        let reading = std::thread::spawn(move || {
            let mut lags = Vec::new();
            for line in printed.lines().map_while(Result::ok) {
                let now = Instant::now();
                // The last piece of what came together: the others may have been joined with it.
                let number = last_piece(&line).and_then(|number| model.sent().get(number).copied());
                lags.extend(number.map(|sent| (now - sent).as_secs_f64() * 1e3));
            }
            lags
        });
        Ok(Viewer {
            child,
            first_ms,
            reading,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.model.is_over.store(true, Ordering::Release);
        // It may have ended by itself; there is nothing else to do about it here.
        let _ = self.run.kill();
        let _ = self.run.wait();
        if let Some(speaking) = self.speaking.take() {
            let _ = speaking.join();
        }
    }
}

/// posse in a place of its own.
fn posse_at(posse: &Path, place: &Path, url: &str) -> Command {
    let mut command = Command::new(posse);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", place.join("home"))
        .env("POSSE_HOME", place.join("home"))
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", "bench")
        .current_dir(place.join("work"))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// A process that watches.
struct Viewer {
    child: Child,
    /// Time from its start until its first line.
    first_ms: f64,
    reading: JoinHandle<Vec<f64>>,
}

impl Viewer {
    fn stop(&self) -> Result<()> {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-STOP", &pid]).status()?;
        ensure!(status.success(), "the viewer cannot be stopped");
        Ok(())
    }

    /// Ends it, and returns the milliseconds that each piece took to reach it.
    fn leave(mut self) -> Result<Vec<f64>> {
        self.child.kill()?;
        self.child.wait()?;
        let lags = self.reading.join();
        lags.map_err(|_| anyhow::anyhow!("the reader of a viewer panicked"))
    }
}

/// Returns the number of the last piece in a line.
fn last_piece(line: &str) -> Option<usize> {
    let message: Value = serde_json::from_str(line).ok()?;
    let text = message["delta"]["text"].as_str()?;
    text.split_whitespace().last()?.parse().ok()
}
