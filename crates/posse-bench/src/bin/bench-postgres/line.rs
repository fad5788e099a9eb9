//! A plain connection, and pipelined statements on it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::Failed;

/// A connection and its driver task.
pub(crate) struct Line {
    client: Client,
    _carried: JoinSet<()>,
}

impl Line {
    pub(crate) async fn new(url: &str) -> Result<Self, Failed> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let mut carried = JoinSet::new();
        carried.spawn(async { drop(connection.await) });
        Ok(Self {
            client,
            _carried: carried,
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Opens the given number of connections to posse's tables.
    pub(crate) async fn many(url: &str, count: usize) -> Result<Vec<Self>, Failed> {
        let mut lines = Vec::new();
        for _ in 0..count {
            let line = Self::new(url).await?;
            line.client
                .batch_execute("SET search_path = posse; SET jit = off")
                .await?;
            lines.push(line);
        }
        Ok(lines)
    }
}

/// A query that is sent when first polled.
pub(crate) type Asking<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send + 'a>>;

/// Sends all queries in order, then awaits each result.
pub(crate) async fn pipelined<T>(mut asking: Vec<Asking<'_, T>>) -> Result<Vec<T>, Failed> {
    // The first poll sends.
    let mut answers: Vec<Option<_>> = poll_fn(|context| {
        let sent = asking
            .iter_mut()
            .map(|one| match one.as_mut().poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            });
        Poll::Ready(sent.collect())
    })
    .await;
    let mut all = Vec::with_capacity(asking.len());
    for (one, answer) in asking.into_iter().zip(answers.drain(..)) {
        all.push(match answer {
            Some(answer) => answer?,
            None => one.await?,
        });
    }
    Ok(all)
}
