//! A client that hides nothing: it writes bytes and reads bytes.

use std::{io, net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::{Ended, FaultServer, Script, Step};

/// Far beyond anything that works; only a hang meets it.
pub(super) const HANG: Duration = Duration::from_secs(30);

pub(super) async fn serve(steps: Vec<Step>) -> FaultServer {
    FaultServer::start_anywhere(Script::new(steps).unwrap()).await.unwrap()
}

pub(super) async fn serve_named(name: &str) -> FaultServer {
    serve(vec![Step::named(name).unwrap()]).await
}

pub(super) fn chat_body(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

pub(super) fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

pub(super) fn chat() -> String {
    let key = "authorization: Bearer sk-sent-by-the-test\r\n";
    post("/v1/chat/completions", key, &chat_body(true).to_string())
}

pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) seen: Vec<u8>,
}

impl Client {
    pub(super) async fn to(server: &FaultServer) -> Self {
        Self::at(server.addr()).await
    }

    pub(super) async fn at(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        Self { stream, seen: Vec::new() }
    }

    pub(super) async fn with_little_room(server: &FaultServer) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(server.addr()).await.unwrap();
        let seen = Vec::new();
        Self { stream, seen }
    }

    pub(super) async fn sending(server: &FaultServer, request: &str) -> Self {
        let mut client = Self::to(server).await;
        client.send(request).await;
        client
    }

    pub(super) async fn send(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    /// Reads more; `Ok(0)` is the end of file.
    async fn read(&mut self) -> io::Result<usize> {
        timeout(HANG, self.stream.read_buf(&mut self.seen)).await.expect("the server hangs")
    }

    /// Reads up to and including this text.
    pub(super) async fn until(&mut self, text: &str) {
        while !self.text().contains(text) {
            let read = self.read().await.unwrap();
            assert_ne!(read, 0, "ended before {text:?}: {}", self.text());
        }
    }

    pub(super) async fn until_more(&mut self) {
        assert_ne!(self.read().await.unwrap(), 0, "{}", self.text());
    }

    /// Reads to the end of file, or to the error that comes instead.
    pub(super) async fn read_out(&mut self) -> io::Result<()> {
        while self.read().await? > 0 {}
        Ok(())
    }

    pub(super) async fn assert_reset(&mut self) {
        let end = self.read_out().await.expect_err("a reset, not an end of file");
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    }

    pub(super) async fn assert_end_of_file(&mut self) {
        self.read_out().await.expect("an end of file, not an error");
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    pub(super) fn head(&self) -> String {
        self.text().split_once("\r\n\r\n").expect("a response head").0.to_owned()
    }

    /// The bytes after the head.
    pub(super) fn body(&self) -> &[u8] {
        let blank = self.seen.windows(4).position(|w| w == b"\r\n\r\n").expect("a response head");
        &self.seen[blank + 4..]
    }

    /// The chunks of the body, each with the size it announced; the last may
    /// be shorter.
    pub(super) fn chunks(&self) -> Vec<(usize, Vec<u8>)> {
        let mut rest = self.body();
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let Some(line) = rest.windows(2).position(|w| w == b"\r\n") else { break };
            let size = std::str::from_utf8(&rest[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let data = &rest[line + 2..];
            chunks.push((size, data[..size.min(data.len())].to_vec()));
            rest = data.get(size + 2..).unwrap_or_default();
        }
        chunks
    }

    /// The events that arrived whole.
    pub(super) fn events(&self) -> Vec<String> {
        let data: Vec<u8> = self.chunks().into_iter().flat_map(|(_, data)| data).collect();
        let text = String::from_utf8_lossy(&data).into_owned();
        let mut events: Vec<String> = text.split("\n\n").map(str::to_owned).collect();
        // What follows the last blank line is no event.
        events.pop();
        events
    }

    /// The text of the events that arrived whole.
    pub(super) fn content(&self) -> String {
        let delta = |event: &String| {
            let json: Value = serde_json::from_str(event.strip_prefix("data: ")?).ok()?;
            Some(json["choices"][0]["delta"]["content"].as_str()?.to_owned())
        };
        self.events().iter().filter_map(delta).collect()
    }
}

pub(super) fn ended(server: &FaultServer) -> Vec<Ended> {
    server.requests().iter().map(|request| request.ended).collect()
}

/// Waits until the record says this; what follows a client's leaving is seen
/// by the server in its own time.
pub(super) async fn until_ended(server: &FaultServer, wanted: Ended) {
    let seen = async {
        while ended(server).last() != Some(&wanted) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(HANG, seen).await.unwrap_or_else(|_| panic!("{:?}", server.requests()));
}
