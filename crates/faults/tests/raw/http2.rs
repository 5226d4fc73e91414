//! HTTP/2, frame by frame.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use turnbuckle_faults::{FaultServer, Http2Code, Protocol, Script, Serving, Step, catalogue};

use crate::client::{CHAT, HANG, count};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn number_at(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

async fn write(tcp: &mut TcpStream, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    tcp.write_all(&frame).await.unwrap();
}

async fn frame(tcp: &mut TcpStream) -> Option<Frame> {
    let mut header = [0; 9];
    let read = timeout(HANG, tcp.read_exact(&mut header)).await.expect("the server hangs");
    read.ok()?;
    let [a, b, c, kind, flags, s0, s1, s2, s3] = header;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    tcp.read_exact(&mut payload).await.unwrap();
    Some(Frame { kind, flags, stream: u32::from_be_bytes([s0, s1, s2, s3]), payload })
}

/// Asks on stream 1 and reads its frames, and those that end the connection, up to
/// the end of the stream or of the connection; whether the connection ended.
async fn frames(fault: &str) -> (Vec<Frame>, bool) {
    let serving = Serving::default().protocol(Protocol::Http2);
    let script = Script::new(vec![Step::named(fault).unwrap()]).unwrap().on(serving).unwrap();
    let server = FaultServer::start_anywhere(script).await.unwrap();
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    tcp.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    write(&mut tcp, SETTINGS, 0, 0, &[]).await;
    // `:method POST`, `:scheme http`, then literals without indexing.
    let mut block = vec![0x83, 0x86];
    for (name, value) in [(4, "/v1/chat/completions"), (1, "localhost")] {
        block.extend([name, u8::try_from(value.len()).unwrap()]);
        block.extend_from_slice(value.as_bytes());
    }
    write(&mut tcp, HEADERS, END_HEADERS, 1, &block).await;
    write(&mut tcp, DATA, END_STREAM, 1, CHAT.as_bytes()).await;
    let mut frames = Vec::new();
    let lasting = catalogue::find(fault).unwrap().behaviour().hangs_up();
    while let Some(frame) = frame(&mut tcp).await {
        let ends = frame.kind == RST_STREAM
            || (frame.stream == 1
                && matches!(frame.kind, DATA | HEADERS)
                && frame.flags & END_STREAM != 0);
        let ours = matches!(frame.kind, DATA | HEADERS | RST_STREAM | GOAWAY);
        if ours {
            frames.push(frame);
        }
        // One that hangs up says so after the end of the stream.
        if ends && !lasting {
            return (frames, false);
        }
    }
    (frames, true)
}

fn kinds(frames: &[Frame]) -> Vec<u8> {
    let mut kinds: Vec<u8> = frames.iter().map(|frame| frame.kind).collect();
    kinds.dedup();
    kinds
}

fn data(frames: &[Frame]) -> Vec<u8> {
    let data = frames.iter().filter(|frame| frame.kind == DATA && frame.stream == 1);
    data.flat_map(|frame| frame.payload.clone()).collect()
}

#[tokio::test]
async fn each_code_is_sent_by_rst_stream_before_the_head_and_in_the_body() {
    for code in Http2Code::all() {
        let name = code.as_str().to_ascii_lowercase();
        let (early, ended) = frames(&format!("http2_reset_before_status/{name}")).await;
        assert_eq!((kinds(&early), ended), (vec![RST_STREAM], false), "{name}");
        assert_eq!(early[0].number_at(0), code.value(), "{name}");
        let (late, _) = frames(&format!("http2_reset_in_body/{name}")).await;
        assert_eq!(kinds(&late), [HEADERS, DATA, RST_STREAM], "{name}");
        assert_eq!(late.last().unwrap().number_at(0), code.value(), "{name}");
        assert_eq!(count(&data(&late), b"data: "), 6, "{name}");
    }
}

#[tokio::test]
async fn each_code_is_sent_by_goaway_and_ends_the_connection() {
    for code in Http2Code::all() {
        let name = code.as_str().to_ascii_lowercase();
        let (early, ended) = frames(&format!("http2_goaway_before_status/{name}")).await;
        assert_eq!((kinds(&early), ended), (vec![GOAWAY], true), "{name}");
        let (late, _) = frames(&format!("http2_goaway_in_body/{name}")).await;
        assert_eq!(kinds(&late), [HEADERS, DATA, GOAWAY], "{name}");
        for goaway in [early.last().unwrap(), late.last().unwrap()] {
            // The last stream that was processed: none.
            assert_eq!((goaway.number_at(0), goaway.number_at(4)), (0, code.value()), "{name}");
        }
    }
}

#[tokio::test]
async fn http2_goaway_accepted_counts_the_stream_and_lets_it_down() {
    let (frames, ended) = frames("http2_goaway_accepted").await;
    assert_eq!((kinds(&frames), ended), (vec![HEADERS, DATA, GOAWAY], true));
    assert_eq!(frames.last().unwrap().number_at(0), 1);
    assert!(frames.iter().all(|frame| frame.kind != DATA || frame.flags & END_STREAM == 0));
}

#[tokio::test]
async fn http2_goaway_after_answer_follows_the_end_of_the_stream() {
    let (frames, ended) = frames("http2_goaway_after_answer").await;
    assert!(ended);
    assert!(data(&frames).ends_with(b"data: [DONE]\n\n"));
    let goaway = frames.iter().position(|frame| frame.kind == GOAWAY).unwrap();
    let end = frames.iter().position(|frame| frame.kind == DATA && frame.flags & END_STREAM != 0);
    assert!(end.unwrap() < goaway, "{frames:?}");
    assert_eq!(frames[goaway].number_at(4), Http2Code::NoError.value());
}

#[tokio::test]
async fn http2_bad_frame_is_data_of_the_connection_itself() {
    let (frames, ended) = frames("http2_bad_frame").await;
    assert!(ended);
    let last = frames.last().unwrap();
    assert_eq!((last.kind, last.stream), (DATA, 0));
    assert_eq!(count(&data(&frames), b"data: "), 6);
}

#[tokio::test]
async fn http2_end_in_body_is_a_fin_without_a_goaway() {
    let (frames, ended) = frames("http2_end_in_body").await;
    assert_eq!((kinds(&frames), ended), (vec![HEADERS, DATA], true));
    assert!(frames.iter().all(|frame| frame.flags & END_STREAM == 0));
}

#[tokio::test]
async fn http2_trailers_are_headers_that_end_the_stream() {
    let (frames, _) = frames("http2_trailers").await;
    assert_eq!(kinds(&frames), [HEADERS, DATA, HEADERS]);
    assert_eq!(frames.last().unwrap().flags & END_STREAM, END_STREAM);
    assert!(data(&frames).ends_with(b"data: [DONE]\n\n"));
}
