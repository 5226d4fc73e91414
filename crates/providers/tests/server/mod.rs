//! A raw loopback server: it reads one request head and body per answer, and
//! writes back exactly the bytes it was given.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    hung_up: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    heads: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Close,
    Reset,
    Stall,
    KeepAlive,
    Pause(&'static str),
    Flood(u8),
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers each connection once, then closes it.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), Then::Close).await
    }

    /// Answers, then resets the connection.
    pub(crate) async fn resetting(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), Then::Reset).await
    }

    /// Answers, then says nothing more until the client hangs up.
    pub(crate) async fn stalling(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), Then::Stall).await
    }

    /// Answers every request of a connection.
    pub(crate) async fn keeping_alive(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), Then::KeepAlive).await
    }

    /// Answers every request of a connection, the end of each answer apart.
    pub(crate) async fn pausing(answer: impl Into<Vec<u8>>, end: &'static str) -> Self {
        Self::start(answer.into(), Then::Pause(end)).await
    }

    /// Answers, then sends one byte without end.
    pub(crate) async fn flooding(answer: impl Into<Vec<u8>>, byte: u8) -> Self {
        Self::start(answer.into(), Then::Flood(byte)).await
    }

    /// An address at which nobody listens any more.
    pub(crate) async fn closed_port() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    pub(crate) fn request_heads(&self) -> Vec<String> {
        self.seen.lock().unwrap().heads.clone()
    }

    /// Waits until a client has hung up; gives up after a generous while.
    pub(crate) async fn peer_hung_up(&mut self) -> bool {
        let wait = tokio::time::timeout(Duration::from_secs(30), self.hung_up.recv());
        matches!(wait.await, Ok(Some(())))
    }

    async fn start(answer: Vec<u8>, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (tell, hung_up) = mpsc::unbounded_channel();
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            let answer: Arc<[u8]> = answer.into();
            async move {
                while let Ok((socket, _)) = listener.accept().await {
                    seen.lock().unwrap().connections += 1;
                    let (seen, answer, tell) =
                        (Arc::clone(&seen), Arc::clone(&answer), tell.clone());
                    tokio::spawn(async move {
                        serve(socket, &seen, &answer, then).await;
                        let _ = tell.send(());
                    });
                }
            }
        });
        Self { address, seen, hung_up, task }
    }
}

async fn serve(mut socket: TcpStream, seen: &Mutex<Seen>, answer: &[u8], then: Then) {
    loop {
        let Some(head) = read_request(&mut socket).await else { return };
        seen.lock().unwrap().heads.push(head);
        if socket.write_all(answer).await.is_err() {
            return;
        }
        let _ = socket.flush().await;
        match then {
            Then::KeepAlive => {}
            Then::Pause(end) => {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let _ = socket.write_all(end.as_bytes()).await;
            }
            Then::Close => return close(socket).await,
            Then::Reset => {
                let _ = socket.set_zero_linger();
                return;
            }
            Then::Stall => {
                let _ = socket.read(&mut [0; 64]).await;
                return;
            }
            Then::Flood(byte) => {
                let flood = vec![byte; 64 * 1024];
                while socket.write_all(&flood).await.is_ok() {}
                return;
            }
        }
    }
}

/// Closes so that the client sees an end and no reset.
async fn close(mut socket: TcpStream) {
    let _ = socket.shutdown().await;
    let _ = socket.read(&mut [0; 64]).await;
}

/// Reads one request; returns its head, with header names in lower case.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = socket.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
        let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") else {
            // What is no HTTP (a TLS hello) gets its answer too.
            if read.first() == Some(&0x16) {
                return Some(String::new());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        if read.len() >= end + 4 + length.unwrap_or(0) {
            return Some(head);
        }
    }
}

/// A response head with these header lines; the content type is that of a stream
/// unless they name another.
pub(crate) fn head(status: u16, headers: &str) -> String {
    let kind = match headers.contains("content-type") {
        true => "",
        false => "content-type: text/event-stream\r\n",
    };
    format!("HTTP/1.1 {status} Status\r\n{kind}{headers}\r\n\r\n")
}

/// The request line of a head.
pub(crate) fn post_head(head: &str) -> &str {
    head.lines().next().unwrap_or_default()
}
