//! A consumer that stops reading stops the socket. In a process of its own, whose
//! memory is its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use turnbuckle_providers::{
    AttemptContext, ChatRequest, Clocks, EventStream, Message, Provider, StreamEvent,
    openai_chat::OpenAiChat, transport::ReqwestTransport,
};

/// What the server would send in all; far more than the two ends may hold.
const ALL: u64 = 256 << 20;

/// What may lie between the server and the consumer: the buffers of the system, which
/// grow to some 10 MiB at most, and those of the client.
const BETWEEN: u64 = 24 << 20;

/// What the client may hold of it.
const HELD_KIB: u64 = 8 << 10;

const EVENT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a few words\"}}]}\n\n";

/// Sends events to one client, and counts the bytes that it could send. Ends when the
/// client goes.
async fn send(listener: TcpListener, sent: Arc<AtomicU64>) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut request = [0; 64 * 1024];
    assert!(socket.read(&mut request).await.unwrap() > 0);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let events = EVENT.repeat(1000);
    while sent.load(Ordering::SeqCst) < ALL {
        if socket.write_all(events.as_bytes()).await.is_err() {
            return;
        }
        sent.fetch_add(events.len() as u64, Ordering::SeqCst);
    }
}

/// Waits until nothing more was sent for a while, and says how much that was.
async fn at_rest(sent: &AtomicU64) -> u64 {
    let mut before = u64::MAX;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = sent.load(Ordering::SeqCst);
        if now == before || now >= ALL {
            return now;
        }
        before = now;
    }
}

async fn read_text(stream: &mut EventStream) -> usize {
    loop {
        if let StreamEvent::Text(text) = stream.next().await.unwrap().unwrap() {
            return text.len();
        }
    }
}

/// The resident memory of this process, where the system tells it.
fn memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[tokio::test]
async fn a_consumer_that_stops_reading_stops_the_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let server = tokio::spawn(send(listener, Arc::clone(&sent)));
    let clocks = Clocks::default();
    let transport = Arc::new(ReqwestTransport::direct(&clocks).unwrap());
    let provider = OpenAiChat::builder(url).transport(transport).build().unwrap();
    let request = ChatRequest::new("m").with_message(Message::User("hello".into()));
    let mut stream = provider.open(&request, AttemptContext::default()).await.unwrap();
    read_text(&mut stream).await;

    let before = memory_kib();
    let held = at_rest(&sent).await;
    assert!(held < BETWEEN, "{held} bytes were taken of a stream that nobody reads");
    assert!(!server.is_finished(), "the server waits to send more");
    if let (Some(before), Some(now)) = (before, memory_kib()) {
        assert!(now.saturating_sub(before) < HELD_KIB, "{before} KiB became {now}");
    }

    // It was this consumer that the server waited for.
    let mut read = 0;
    while sent.load(Ordering::SeqCst) < held + BETWEEN {
        read += read_text(&mut stream).await;
    }
    assert!(read > 0);
    assert!(at_rest(&sent).await < held + 3 * BETWEEN);

    drop(stream);
    server.await.unwrap();
    assert!(sent.load(Ordering::SeqCst) < ALL);
}
