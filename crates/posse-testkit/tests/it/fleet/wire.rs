//! A wire between a host and a server that can be cut at the host's end alone, and remembers what went over it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Clone, Default)]
pub(super) struct Wire {
    ends: Arc<Mutex<Vec<(TcpStream, TcpStream)>>>,
    sent: Arc<Mutex<Vec<u8>>>,
    port: u16,
}

impl Wire {
    /// One to a port of this machine.
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self {
            port: listener.local_addr().unwrap().port(),
            ..Self::default()
        };
        let ours = wire.clone();
        thread::spawn(move || {
            for host in listener.incoming() {
                // Without a server there is nobody to hang up on.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let host = host.unwrap();
                ours.ends
                    .lock()
                    .unwrap()
                    .push((host.try_clone().unwrap(), server.try_clone().unwrap()));
                let (mut from, mut to) = (server.try_clone().unwrap(), host.try_clone().unwrap());
                thread::spawn(move || {
                    // What a host does not hear any more is still taken from the server.
                    let mut bytes = [0; 4096];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        let _ = to.write_all(&bytes[..count]);
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
                let ours = ours.clone();
                thread::spawn(move || ours.carry(host, server));
            }
        });
        wire
    }

    fn carry(&self, mut host: TcpStream, mut server: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = host.read(&mut bytes) {
            if server.write_all(&bytes[..count]).is_err() {
                return;
            }
            self.sent.lock().unwrap().extend(&bytes[..count]);
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Whether these bytes went to the server.
    pub(super) fn has_carried(&self, text: &str) -> bool {
        self.sent
            .lock()
            .unwrap()
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    }

    /// Cuts what there is at the host's end. The server sees nothing of it until the ends that are given back go.
    pub(super) fn cut(&self) -> Vec<TcpStream> {
        let ends = std::mem::take(&mut *self.ends.lock().unwrap());
        ends.into_iter()
            .map(|(host, server)| {
                let _ = host.shutdown(Shutdown::Both);
                server
            })
            .collect()
    }
}
