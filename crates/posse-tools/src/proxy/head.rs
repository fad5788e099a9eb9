//! Reads the head of an HTTP message.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Maximum length of a head.
const LONGEST: usize = 16 << 10;
/// What ends a head.
const END: &[u8] = b"\r\n\r\n";

/// Reads a head, and returns it with what came after it.
pub(super) async fn read_head(stream: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        // The end may have begun in the piece before.
        let from = head.len().saturating_sub(END.len() - 1);
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let end = head[from..].windows(END.len()).position(|it| it == END);
        if let Some(end) = end {
            let rest = head.split_off(from + end + END.len());
            return Ok((head, rest));
        }
        if head.len() > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}
