//! Clients that ask and never read: the server keeps little for each, and serves others.
//!
//! Alone in its program, because the memory of the whole program is measured.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use turnbuckle_faults::{FaultServer, Protocol, Script, Serving, Step};

const HANG: Duration = Duration::from_secs(60);

/// How many ask and never read.
const DEAF: usize = 16;

/// What the server, and the rest of this program, may keep for all of them: 2 MiB each,
/// where most of them are sent 70 MiB and some no end of bytes.
const MOST: u64 = DEAF as u64 * 2 * 1024 * 1024;

const CHAT: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// Bytes of memory in use, by the kernel's count.
fn in_use() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Faults that say much, or for ever, without a pause; the last answer is whole.
fn script(protocol: Protocol) -> Script {
    let mut steps = Vec::new();
    for number in 0..DEAF {
        let fault = if number % 8 == 0 { "comment_flood" } else { "answer_too_large" };
        steps.push(Step::named(fault).unwrap());
    }
    steps.push(Step::named("whole").unwrap());
    Script::new(steps).unwrap().on(Serving::default().protocol(protocol)).unwrap()
}

async fn connect(server: &FaultServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // So that the kernel keeps little for them too.
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(server.addr()).await.unwrap()
}

fn http1() -> Vec<u8> {
    let length = CHAT.len();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    format!("{head}content-length: {length}\r\n\r\n{CHAT}").into_bytes()
}

/// The preface, settings that let the server send 2 GiB at once, and a chat on stream 1.
fn http2() -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let mut block = vec![0x83, 0x86];
    for (name, value) in [(4, "/v1/chat/completions"), (1, "localhost")] {
        block.extend([name, u8::try_from(value.len()).unwrap()]);
        block.extend_from_slice(value.as_bytes());
    }
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        // SETTINGS_INITIAL_WINDOW_SIZE, and a WINDOW_UPDATE of the connection.
        frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]),
        frame(8, 0, 0, &[0x7f, 0xfe, 0, 0]),
        frame(1, 4, 1, &block),
        frame(0, 1, 1, CHAT.as_bytes()),
    ]
    .concat()
}

async fn until_attempts(server: &FaultServer, wanted: usize) {
    let reached = async {
        while server.attempts() < wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(HANG, reached).await.expect("the server takes no more requests");
}

async fn hold_out(protocol: Protocol, request: &[u8]) {
    let server = FaultServer::start_anywhere(script(protocol)).await.unwrap();
    let before = in_use();
    let mut deaf = Vec::new();
    for number in 1..=DEAF {
        let mut tcp = connect(&server).await;
        tcp.write_all(request).await.unwrap();
        deaf.push(tcp);
        until_attempts(&server, number).await;
    }
    // Another one is served meanwhile, to its end.
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    tcp.write_all(request).await.unwrap();
    let mut heard = Vec::new();
    while !heard.windows(6).any(|window| window == b"[DONE]") {
        let read = timeout(HANG, tcp.read_buf(&mut heard)).await.expect("nobody else is served");
        assert_ne!(read.unwrap(), 0, "{}", String::from_utf8_lossy(&heard));
    }
    // Time to fill the memory, if anything did.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server.open_connections(), DEAF + 1);
    if let (Some(before), Some(after)) = (before, in_use()) {
        let kept = after.saturating_sub(before);
        assert!(kept < MOST, "{protocol:?}: {kept} bytes are kept for clients that never read");
    }
    timeout(HANG, server.stop()).await.expect("clients that never read hold the server up");
}

#[tokio::test]
async fn clients_that_never_read_cost_little_and_hold_nobody_up() {
    hold_out(Protocol::Http1, &http1()).await;
    hold_out(Protocol::Http2, &http2()).await;
}
