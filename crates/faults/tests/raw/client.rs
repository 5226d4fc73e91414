//! A client that writes bytes and reads bytes.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use turnbuckle_faults::{FaultServer, Script, Step};

/// Far beyond anything that works; only a hang meets it.
pub(super) const HANG: Duration = Duration::from_secs(30);

pub(super) const CHAT: &str =
    r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

const RESPONSES: &str = r#"{"model":"m","stream":true,"input":"hi"}"#;

/// A server that plays this fault, and after it whole answers.
pub(super) async fn serve(fault: &str) -> FaultServer {
    let script = Script::new(vec![Step::named(fault).unwrap()]).unwrap();
    FaultServer::start_anywhere(script).await.unwrap()
}

/// A chat request whose connection ends with the answer.
pub(super) fn request() -> String {
    post("/v1/chat/completions", CHAT)
}

fn post(path: &str, body: &str) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    format!("{head}content-length: {}\r\n\r\n{body}", body.len())
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By a FIN.
    File,
    /// By a RST.
    Reset,
}

/// Everything a server sent, and how the connection ended.
pub(super) struct Heard {
    pub(super) bytes: Vec<u8>,
    pub(super) end: End,
}

/// Sends a chat request over plain TCP and reads to the end of the connection.
pub(super) async fn hear(fault: &str) -> Heard {
    hear_answer(fault, &request()).await
}

/// The same, asked in the words of Responses.
pub(super) async fn hear_responses(fault: &str) -> Heard {
    hear_answer(fault, &post("/v1/responses", RESPONSES)).await
}

async fn hear_answer(fault: &str, request: &str) -> Heard {
    let server = serve(fault).await;
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let end = timeout(HANG, tcp.read_to_end(&mut bytes)).await.expect("the server hangs");
    let end = match end {
        Ok(_) => End::File,
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => End::Reset,
        Err(error) => panic!("{error}"),
    };
    Heard { bytes, end }
}

/// The same, of a server that does not end the connection: reads until `enough`.
pub(super) async fn hear_until(fault: &str, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let server = serve(fault).await;
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    tcp.write_all(request().as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while !enough(&bytes) {
        let read = timeout(HANG, tcp.read_buf(&mut bytes)).await.expect("the server hangs");
        assert_ne!(read.unwrap(), 0, "{}", String::from_utf8_lossy(&bytes));
    }
    bytes
}

pub(super) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

pub(super) fn count(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|window| *window == wanted).count()
}

impl Heard {
    pub(super) fn head(&self) -> String {
        let blank = find(&self.bytes, b"\r\n\r\n").expect("a response head");
        String::from_utf8(self.bytes[..blank + 2].to_vec()).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        let head = self.head();
        let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    }

    /// The bytes after the head.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[find(&self.bytes, b"\r\n\r\n").expect("a response head") + 4..]
    }

    /// The chunks: what stands in the line of its size, and its data. The body must be
    /// whole, up to the chunk of size 0 and its trailers, which are the last item.
    pub(super) fn chunks(&self) -> Vec<(String, Vec<u8>)> {
        let mut rest = self.body();
        let mut chunks = Vec::new();
        loop {
            let line_end = find(rest, b"\r\n").expect("the line of a size");
            let line = String::from_utf8(rest[..line_end].to_vec()).unwrap();
            rest = &rest[line_end + 2..];
            let size = usize::from_str_radix(line.split(';').next().unwrap(), 16).unwrap();
            if size == 0 {
                chunks.push((line, rest.to_vec()));
                return chunks;
            }
            assert_eq!(&rest[size..size + 2], b"\r\n", "the end of a chunk");
            chunks.push((line, rest[..size].to_vec()));
            rest = &rest[size + 2..];
        }
    }

    /// The data of all chunks.
    pub(super) fn data(&self) -> Vec<u8> {
        let mut chunks = self.chunks();
        assert_eq!(chunks.pop().unwrap().1, b"\r\n", "no trailers, and nothing after the end");
        chunks.into_iter().flat_map(|(_, data)| data).collect()
    }
}
