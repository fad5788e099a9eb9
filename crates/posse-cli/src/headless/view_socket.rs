//! The socket by which programs of the same user watch the agents of this process and tell them
//! something: one JSON object per line, as docs/protocol.md describes them.
//!
//! Nobody is listened to while an agent works for it: an agent's command is refused. Each viewer
//! has a task of its own, and one that does not read costs nobody anything.

pub(crate) mod client;
mod connection;
pub(crate) mod place;

use std::io;
use std::path::{Path, PathBuf};

use posse_protocol::wire::ServerMessage;
use posse_runtime::runtime::Runtime;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::assemble::store::OpenStore;
use crate::config::caller;
use crate::definitions::slash::SlashCommands;
use crate::output::say;

/// Maximum number of viewers at a time.
const VIEWERS: usize = 64;

/// What viewers reach in this process.
#[derive(Clone)]
struct SocketHost {
    runtime: Runtime,
    slash: Option<SlashCommands>,
}

/// The open socket; dropping it removes it.
pub(crate) struct ViewSocket {
    path: PathBuf,
    /// Ends with it.
    _serving: JoinSet<()>,
}

impl ViewSocket {
    /// Opens the socket beside a store, if it has a place for it. A process that cannot be watched
    /// works all the same. Prompts from there are read by `slash`, if there is one.
    pub(crate) fn open(
        store: &OpenStore,
        runtime: &Runtime,
        slash: Option<SlashCommands>,
    ) -> Option<Self> {
        let host = SocketHost {
            runtime: runtime.clone(),
            slash,
        };
        match Self::try_open(store.sockets.as_deref()?, host) {
            Ok(socket) => Some(socket),
            Err(error) => {
                say(&format!("warning: nobody can attach to this: {error}"));
                None
            }
        }
    }

    fn try_open(directory: &Path, host: SocketHost) -> io::Result<Self> {
        let (path, listener) = place::bind(directory)?;
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, host));
        Ok(Self {
            path,
            _serving: serving,
        })
    }
}

impl Drop for ViewSocket {
    fn drop(&mut self) {
        // One that stays is refused by the kernel, and removed by whoever finds that out.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Accepts viewers for ever.
async fn serve(listener: UnixListener, host: SocketHost) {
    let mut viewers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of file handles: one that is given back may be the next viewer's.
                    tokio::task::yield_now().await;
                    continue;
                };
                let has_room = viewers.len() < VIEWERS;
                viewers.spawn(welcome(stream, has_room, host.clone()));
            }
            Some(_) = viewers.join_next(), if !viewers.is_empty() => {}
        }
    }
}

/// Serves a viewer, if it may watch.
async fn welcome(mut stream: UnixStream, has_room: bool, host: SocketHost) {
    let refusal = match (has_room, peer(&stream).await) {
        (true, Ok(())) => {
            // The viewer has left.
            let _ = connection::serve(stream, host).await;
            return;
        }
        (false, _) => format!("{VIEWERS} viewers watch already"),
        (true, Err(why)) => why.to_owned(),
    };
    let refused = ServerMessage::Refused {
        id: None,
        error: refusal,
    };
    if let Ok(line) = refused.encode() {
        let _ = stream.write_all(line.as_bytes()).await;
    }
}

/// Checks who is at the other end.
async fn peer(stream: &UnixStream) -> Result<(), &'static str> {
    const UNKNOWN: &str = "it cannot be told who asks";
    let peer = stream.peer_cred().map_err(|_| UNKNOWN)?;
    if peer.uid() != rustix::process::getuid().as_raw() {
        return Err("only the same user may watch");
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let pid = pid.ok_or(UNKNOWN)?;
    // Reads files of many processes, which must not hold up agents.
    let is_agents = tokio::task::spawn_blocking(move || caller::is_agents_command(pid)).await;
    match is_agents {
        Ok(false) => Ok(()),
        Ok(true) => Err("an agent's command may not watch"),
        Err(_) => Err(UNKNOWN),
    }
}
