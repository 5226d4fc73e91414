//! A relay that cuts the first answer of a peer which breaks nothing by itself.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Small, so that what follows the cut has not yet been handed on.
const PIECE: usize = 256;

/// Listens on loopback, and hands everything on to another port; the first
/// connection is closed once so many lines of data have come back. Dropping it
/// stops it.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    cuts: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn start(upstream: u16, after: usize) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen")?;
        let port = listener.local_addr()?.port();
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cuts);
        let accepting = tokio::spawn(async move {
            let mut first = true;
            while let Ok((client, _)) = listener.accept().await {
                let cut_after = std::mem::take(&mut first).then_some(after);
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    // How a connection ends is for the client to tell.
                    if let Ok(true) = relay(client, upstream, cut_after).await {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Self { port, cuts, accepting })
    }

    /// How many answers were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Whether it was cut.
async fn relay(client: TcpStream, upstream: u16, cut_after: Option<usize>) -> io::Result<bool> {
    let server = TcpStream::connect(("127.0.0.1", upstream)).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = tokio::io::copy(&mut from_client, &mut to_server);
    let answering = async {
        let (mut piece, mut lines) = ([0; PIECE], Lines::default());
        loop {
            let read = from_server.read(&mut piece).await?;
            let read = piece.get(..read).unwrap_or_default();
            if read.is_empty() {
                return to_client.shutdown().await.map(|()| false);
            }
            to_client.write_all(read).await?;
            if cut_after.is_some_and(|after| lines.count(read) >= after) {
                return Ok(true);
            }
        }
    };
    tokio::select! {
        // An HTTP client that ends its side is gone.
        asked = asking => { asked?; Ok(false) }
        cut = answering => cut,
    }
}

/// Counts the lines that begin with `data:`, over pieces cut anywhere.
#[derive(Debug, Default)]
struct Lines {
    matched: usize,
    count: usize,
}

impl Lines {
    fn count(&mut self, piece: &[u8]) -> usize {
        const BEGINNING: &[u8] = b"\ndata:";
        for byte in piece {
            self.matched = match BEGINNING.get(self.matched) {
                Some(due) if due == byte => self.matched + 1,
                _ => usize::from(*byte == b'\n'),
            };
            if self.matched == BEGINNING.len() {
                self.count += 1;
                self.matched = 0;
            }
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_over_pieces_cut_anywhere() {
        let text = b"HTTP/1.1 200\r\n\r\ndata: 1\n\n\ndata: \ndat\ndata: data: 3\n";
        for at in 0..text.len() {
            let mut lines = Lines::default();
            lines.count(&text[..at]);
            assert_eq!(lines.count(&text[at..]), 3, "cut at {at}");
        }
    }

    #[tokio::test]
    async fn the_first_answer_is_cut_and_the_next_one_is_whole() {
        const ANSWER: &str = "HTTP/1.0 200 OK\r\n\r\ndata: 1\ndata: 2\n";
        let server = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = server.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = server.accept().await {
                let mut asked = [0; 1024];
                let _ = socket.read(&mut asked).await;
                let _ = socket.write_all(ANSWER.as_bytes()).await;
                // What comes after the cut.
                let _ = socket.write_all(&[b'x'; 4 * PIECE]).await;
            }
        });
        let relay = Relay::start(port, 1).await.unwrap();
        let cut = super::super::http::get(relay.port, "/").await;
        let whole = super::super::http::get(relay.port, "/").await.unwrap();
        assert!(cut.map_or(0, |cut| cut.len()) < whole.len());
        assert!(whole.ends_with(&"x".repeat(4 * PIECE)), "{whole}");
        assert_eq!(relay.cuts(), 1);
    }
}
