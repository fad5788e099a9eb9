//! Clients that speak SOCKS5 (RFC 1928), without passwords and for connections only.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

use super::target::Target;
use super::{DialFor, SOCKS5, Server};

/// What a client is answered.
#[derive(Clone, Copy)]
enum Reply {
    Connected = 0,
    Failed = 1,
    NotAllowed = 2,
    Unreachable = 4,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

/// The command that connects.
const CONNECT: u8 = 1;
/// The way of proving who one is that proves nothing, and the answer that none will do.
const NO_PASSWORD: u8 = 0;
const NONE_WILL_DO: u8 = 0xff;

/// Serves a connection.
pub(super) async fn serve(server: &Server, mut client: TcpStream) -> io::Result<()> {
    let [_, count] = read(&mut client).await?;
    let mut ways = vec![0; usize::from(count)];
    client.read_exact(&mut ways).await?;
    if !ways.contains(&NO_PASSWORD) {
        return client.write_all(&[SOCKS5, NONE_WILL_DO]).await;
    }
    client.write_all(&[SOCKS5, NO_PASSWORD]).await?;
    let target = match wanted(&mut client).await? {
        Ok(target) => target,
        Err(reply) => return answer(&mut client, reply).await,
    };
    if server.admit(&target).await.is_err() {
        return answer(&mut client, Reply::NotAllowed).await;
    }
    let Ok(mut host) = server.dial(&target, DialFor::Tunnel).await else {
        return answer(&mut client, Reply::Unreachable).await;
    };
    answer(&mut client, Reply::Connected).await?;
    copy_bidirectional(&mut client, &mut host.stream)
        .await
        .map(drop)
}

/// Reads what a client wants to be connected to; the answer if it cannot be.
async fn wanted(client: &mut TcpStream) -> io::Result<Result<Target, Reply>> {
    let [version, command, _, kind] = read(client).await?;
    if version != SOCKS5 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let target = match kind {
        1 => {
            let address = IpAddr::from(Ipv4Addr::from(read::<4>(client).await?));
            Target::of_address(address, port(client).await?)
        }
        3 => {
            let [length] = read(client).await?;
            let mut name = vec![0; usize::from(length)];
            client.read_exact(&mut name).await?;
            Target::of_name(&name, port(client).await?)
        }
        4 => {
            let address = IpAddr::from(Ipv6Addr::from(read::<16>(client).await?));
            Target::of_address(address, port(client).await?)
        }
        _ => return Ok(Err(Reply::NoSuchAddress)),
    };
    Ok(match command {
        CONNECT => target.ok_or(Reply::Failed),
        _ => Err(Reply::NoSuchCommand),
    })
}

async fn port(client: &mut TcpStream) -> io::Result<u16> {
    read(client).await.map(u16::from_be_bytes)
}

async fn read<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Answers, with no address of its own.
async fn answer(client: &mut TcpStream, reply: Reply) -> io::Result<()> {
    let head = [SOCKS5, reply as u8, 0, 1];
    client.write_all(&[head.as_slice(), &[0; 6]].concat()).await
}
