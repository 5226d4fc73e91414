//! The server of the answers: a process of its own, so that its work is not
//! counted as that of a client. It speaks as much HTTP/1.1 as the clients need.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    body::{self, Answer},
    case::{Case, Shape},
};
use crate::terminal::{begin, complain};

/// The body of an HTTP chunk, and of a write to a socket.
pub(super) const CHUNK: usize = 16 * 1024;

/// Between two pieces of a paced stream.
const PACE: Duration = Duration::from_millis(100);

/// An answer from so many bytes on is not kept beside another one.
const LARGE: usize = 1 << 20;

/// The longest head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// Serves until the process is ended. The first line it prints is its address.
pub(super) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
    begin(format_args!("{}\n", listener.local_addr()?));
    let answers = Arc::new(Answers::default());
    loop {
        let (socket, _) = listener.accept().await.context("cannot accept a connection")?;
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            if let Err(error) = connection(socket, &answers).await {
                complain(format_args!("bench server: {error:#}"));
            }
        });
    }
}

/// What a case is answered with, made when it is first asked for.
#[derive(Default)]
struct Answers(Mutex<BTreeMap<Case, Arc<Framed>>>);

/// A body with its chunk framing, and where its pieces end.
struct Framed {
    bytes: Bytes,
    ends: Vec<usize>,
}

impl Answers {
    fn of(&self, case: Case) -> Arc<Framed> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(framed) = known.get(&case) {
            return Arc::clone(framed);
        }
        // Of the large ones only the one that is being measured is kept.
        known.retain(|_, framed| framed.bytes.len() < LARGE);
        let framed = Arc::new(Framed::of(case));
        known.insert(case, Arc::clone(&framed));
        framed
    }
}

impl Framed {
    fn of(case: Case) -> Self {
        let Answer { bytes, ends } = body::answer(case);
        let apart = matches!(case.shape, Shape::Apart | Shape::Paced | Shape::Rest);
        let mut framed = Self { bytes: Bytes::new(), ends: Vec::new() };
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 8);
        let mut chunk = |piece: &[u8]| {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
            framed.ends.push(out.len());
        };
        match apart {
            true => {
                let mut start = 0;
                for end in ends {
                    chunk(bytes.get(start..end).unwrap_or_default());
                    start = end;
                }
            }
            false => bytes.chunks(CHUNK).for_each(&mut chunk),
        }
        out.extend_from_slice(b"0\r\n\r\n");
        framed.bytes = out.into();
        framed
    }
}

async fn connection(mut socket: TcpStream, answers: &Answers) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut read = Vec::with_capacity(CHUNK);
    while let Some(case) = request(&mut socket, &mut read).await? {
        let framed = answers.of(case);
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        if case.shape == Shape::Paced {
            socket.write_all(head).await?;
            paced(&mut socket, &framed).await?;
            continue;
        }
        if case.shape == Shape::Rest {
            // All but the events of the end, and then nothing until the client goes.
            socket.write_all(head).await?;
            let first = text_end(case, &framed);
            socket.write_all(framed.bytes.get(..first).unwrap_or_default()).await?;
            while socket.read_buf(&mut read).await.unwrap_or(0) > 0 {}
            return Ok(());
        }
        // A short answer goes out in one write, as one packet.
        let first = framed.bytes.len().min(CHUNK);
        let (first, rest) = framed.bytes.split_at(first);
        socket.write_all(&[head, first].concat()).await?;
        for piece in rest.chunks(CHUNK) {
            socket.write_all(piece).await?;
        }
    }
    Ok(())
}

/// Where the chunk with the first text ends.
fn text_end(case: Case, framed: &Framed) -> usize {
    let text = body::expected(Case { size: 1, ..case });
    let at = memchr::memmem::find(&framed.bytes, text.as_bytes()).unwrap_or_default();
    framed.ends.iter().copied().find(|end| *end > at).unwrap_or(framed.bytes.len())
}

async fn paced(socket: &mut TcpStream, framed: &Framed) -> Result<()> {
    let mut start = 0;
    let mut pace = tokio::time::interval(PACE);
    for &end in framed.ends.iter().chain([&framed.bytes.len()]) {
        pace.tick().await;
        socket.write_all(framed.bytes.get(start..end).unwrap_or_default()).await?;
        start = end;
    }
    Ok(())
}

/// Reads a request to the end of its body; `None` when the client has gone.
async fn request(socket: &mut TcpStream, read: &mut Vec<u8>) -> Result<Option<Case>> {
    read.clear();
    let end = loop {
        // Where nothing came, the connection was idle in the pool.
        if socket.read_buf(read).await.unwrap_or(0) == 0 {
            return Ok(None);
        }
        if let Some(end) = memchr::memmem::find(read, b"\r\n\r\n") {
            break end;
        }
        if read.len() > MAX_HEAD {
            bail!("the head of a request is longer than {MAX_HEAD} bytes");
        }
    };
    let head = String::from_utf8_lossy(read.get(..end).unwrap_or_default()).into_owned();
    let length = body_length(&head)?;
    let case = asked_for(&head)?;
    let mut rest = length.saturating_sub(read.len() - end - 4);
    while rest > 0 {
        read.clear();
        let count = socket.read_buf(read).await?;
        if count == 0 {
            bail!("the body of a request was cut");
        }
        rest = rest.saturating_sub(count);
    }
    Ok(Some(case))
}

fn body_length(head: &str) -> Result<usize> {
    let line = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    let line = line.context("a request has no content-length")?;
    line.parse().context("the content-length is no number")
}

/// `POST /chat-long-300000/… HTTP/1.1`
fn asked_for(head: &str) -> Result<Case> {
    let path = head.split(' ').nth(1).unwrap_or_default();
    path.split('/').nth(1).unwrap_or_default().parse()
}

#[cfg(test)]
mod tests {
    use super::{super::case::Dialect, *};

    #[test]
    fn a_request_names_its_case_in_its_path() {
        let head = "POST /chat-long-300/chat/completions HTTP/1.1\r\nContent-Length: 12";
        let case = Case { dialect: Dialect::Chat, shape: Shape::Long, size: 300 };
        assert_eq!(asked_for(head).unwrap(), case);
        assert_eq!(body_length(head).unwrap(), 12);
        assert!(body_length("POST / HTTP/1.1").is_err());
    }

    #[test]
    fn apart_means_one_event_in_each_chunk() {
        let of = |shape| Framed::of(Case { dialect: Dialect::Chat, shape, size: 40 });
        // The role, forty words, the finish reason and [DONE].
        assert_eq!(of(Shape::Apart).ends.len(), 43);
        assert_eq!(of(Shape::Long).ends.len(), 1);
    }
}
