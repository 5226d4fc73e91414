//! HTTP/2, frame by frame, without a library that would hide any.

use tokio::{io::AsyncReadExt, io::AsyncWriteExt, net::TcpStream, time::timeout};

use super::client::{HANG, chat_body, ended, until_ended};
use crate::{
    DEFAULT_TEXT, Ended, FaultServer, How, Http2Code, Point, Protocol, Script, Serving, Step,
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

#[derive(Debug)]
struct Frame {
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn number_at(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// A client that knows HTTP/2 beforehand and reads frames.
struct Client {
    tcp: TcpStream,
    next: u32,
}

impl Client {
    async fn to(server: &FaultServer) -> Self {
        let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
        tcp.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut client = Self { tcp, next: 1 };
        client.write(SETTINGS, 0, 0, &[]).await;
        client
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.tcp.write_all(&frame).await.unwrap();
    }

    /// Sends a chat on a new stream.
    async fn chat(&mut self) -> u32 {
        let stream = self.next;
        self.next += 2;
        // `:method POST`, `:scheme http`, then literals without indexing.
        let mut block = vec![0x83, 0x86];
        for (name, value) in [(4, "/v1/chat/completions"), (1, "localhost")] {
            block.extend([name, u8::try_from(value.len()).unwrap()]);
            block.extend_from_slice(value.as_bytes());
        }
        self.write(HEADERS, 0x4, stream, &block).await;
        self.write(DATA, 0x1, stream, chat_body(true).to_string().as_bytes()).await;
        stream
    }

    /// Asks for a path on a new stream.
    async fn get(&mut self, path: &str) -> u32 {
        let stream = self.next;
        self.next += 2;
        let mut block = vec![0x82, 0x86, 4, u8::try_from(path.len()).unwrap()];
        block.extend_from_slice(path.as_bytes());
        self.write(HEADERS, 0x5, stream, &block).await;
        stream
    }

    /// The next frame; `None` at the end of file.
    async fn frame(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        let read = timeout(HANG, self.tcp.read_exact(&mut header)).await.expect("the server hangs");
        read.ok()?;
        let [a, b, c, kind, _, s0, s1, s2, s3] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.tcp.read_exact(&mut payload).await.unwrap();
        Some(Frame { kind, stream: u32::from_be_bytes([s0, s1, s2, s3]), payload })
    }

    /// The frames of one stream and those that end the connection, up to the
    /// end of the stream or the file.
    async fn frames_of(&mut self, stream: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame().await {
            let last = frame.kind == RST_STREAM || (frame.kind == DATA && frame.payload.is_empty());
            if frame.stream == stream || frame.kind == GOAWAY {
                frames.push(frame);
            }
            if last {
                break;
            }
        }
        frames
    }
}

async fn serve(steps: Vec<Step>) -> FaultServer {
    let serving = Serving::default().protocol(Protocol::Http2);
    let script = Script::new(steps).unwrap().on(serving).unwrap();
    FaultServer::start_anywhere(script).await.unwrap()
}

fn step(name: &str) -> Step {
    Step::named(name).unwrap()
}

fn kinds(frames: &[Frame]) -> Vec<u8> {
    let mut kinds: Vec<u8> = frames.iter().map(|frame| frame.kind).collect();
    kinds.dedup();
    kinds
}

fn data(frames: &[Frame]) -> String {
    let data = frames.iter().filter(|frame| frame.kind == DATA);
    let bytes: Vec<u8> = data.flat_map(|frame| frame.payload.clone()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_whole_answer_is_headers_and_data_to_the_end_of_the_stream() {
    let server = serve(vec![step("whole")]).await;
    let mut client = Client::to(&server).await;
    for _ in 0..2 {
        let stream = client.chat().await;
        let frames = client.frames_of(stream).await;
        assert_eq!(kinds(&frames), [HEADERS, DATA]);
        let text = data(&frames);
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        assert!(DEFAULT_TEXT.split(' ').all(|word| text.contains(word)), "{text}");
    }
    assert_eq!(ended(&server), [Ended::Complete, Ended::Complete]);
    assert_eq!((server.connections(), server.attempts()), (1, 2));
    assert_eq!(server.requests()[0].headers.get("host"), Some("localhost"));
}

#[tokio::test]
async fn a_stream_is_reset_with_the_code_that_was_chosen_and_the_connection_lives_on() {
    let codes = [
        Http2Code::InternalError,
        Http2Code::RefusedStream,
        Http2Code::Cancel,
        Http2Code::EnhanceYourCalm,
    ];
    for name in ["http2_reset_before_status", "http2_reset_in_body"] {
        let mut steps: Vec<Step> = codes.map(|code| step(name).http2_code(code)).to_vec();
        steps.push(step("whole"));
        let server = serve(steps).await;
        let mut client = Client::to(&server).await;
        for code in codes {
            let stream = client.chat().await;
            let frames = client.frames_of(stream).await;
            let in_body = name == "http2_reset_in_body";
            let expected: &[u8] =
                if in_body { &[HEADERS, DATA, RST_STREAM] } else { &[RST_STREAM] };
            assert_eq!(kinds(&frames), expected, "{name}");
            assert_eq!(data(&frames).matches("data: ").count(), if in_body { 6 } else { 0 });
            assert_eq!(frames.last().unwrap().number_at(0), code.value());
        }
        let stream = client.chat().await;
        assert!(data(&client.frames_of(stream).await).ends_with("[DONE]\n\n"));
        assert_eq!(server.connections(), 1);
        assert_eq!(ended(&server)[..4], [Ended::StreamReset; 4]);
    }
}

#[tokio::test]
async fn a_goaway_before_the_head_says_that_the_request_was_not_processed() {
    let server = serve(vec![step("whole"), step("http2_goaway_before_status")]).await;
    let mut client = Client::to(&server).await;
    let stream = client.chat().await;
    client.frames_of(stream).await;
    let stream = client.chat().await;
    let frames = client.frames_of(stream).await;
    assert_eq!(kinds(&frames), [GOAWAY]);
    let goaway = frames.last().unwrap();
    assert_eq!(goaway.number_at(0), stream - 2);
    assert_eq!(goaway.number_at(4), Http2Code::EnhanceYourCalm.value());
    assert_eq!(ended(&server), [Ended::Complete, Ended::GoAway]);
}

#[tokio::test]
async fn a_goaway_in_the_body_comes_after_the_events_before_it_and_says_what_counts() {
    for (how, last) in [("http2_goaway_in_body", 0), ("http2_goaway_accepted", 1)] {
        let server = serve(vec![step(how).http2_code(Http2Code::NoError)]).await;
        let mut client = Client::to(&server).await;
        let stream = client.chat().await;
        let frames = client.frames_of(stream).await;
        assert_eq!(kinds(&frames), [HEADERS, DATA, GOAWAY]);
        assert_eq!(data(&frames).matches("data: ").count(), 6);
        let goaway = frames.last().unwrap();
        assert_eq!((goaway.number_at(0), goaway.number_at(4)), (last, 0));
    }
}

#[tokio::test]
async fn the_other_ways_to_break_come_after_whole_frames() {
    for how in [How::Reset, How::Fin, How::CleanEnd] {
        let server = serve(vec![step("cut_inside_event").how(how)]).await;
        let mut client = Client::to(&server).await;
        let stream = client.chat().await;
        let frames = client.frames_of(stream).await;
        assert_eq!(kinds(&frames), [HEADERS, DATA], "{how}");
        assert_eq!(data(&frames).matches("\n\n").count(), 5, "{how}");
        let expected = match how {
            How::Reset => Ended::Reset,
            How::Fin => Ended::Fin,
            _ => Ended::CleanEnd,
        };
        assert_eq!(ended(&server), [expected]);
    }
}

#[tokio::test]
async fn a_client_that_gives_up_a_silent_stream_is_noted() {
    let server = serve(vec![step("stall")]).await;
    let mut client = Client::to(&server).await;
    let stream = client.chat().await;
    until_ended(&server, Ended::Silence).await;
    client.write(RST_STREAM, 0, stream, &Http2Code::Cancel.value().to_be_bytes()).await;
    until_ended(&server, Ended::LeftInSilence).await;
    assert_eq!(server.open_connections(), 1);
    let stream = client.chat().await;
    assert_eq!(stream, 3);
    until_ended(&server, Ended::Silence).await;
    drop(client);
    until_ended(&server, Ended::LeftInSilence).await;
}

#[tokio::test]
async fn stopping_ends_silent_streams() {
    let server = serve(vec![step("stall_before_headers")]).await;
    let mut client = Client::to(&server).await;
    client.chat().await;
    until_ended(&server, Ended::Silence).await;
    let record = timeout(HANG, server.stop()).await.unwrap();
    assert_eq!(record[0].ended, Ended::Stopped);
}

#[tokio::test]
async fn a_line_longer_than_a_frame_is_cut_into_several() {
    let step = Step::with(
        crate::Behaviour::whole().insert(Point::AfterEvent(2), crate::Insert::HugeLine(40_000)),
    );
    let server = serve(vec![step]).await;
    let mut client = Client::to(&server).await;
    let stream = client.chat().await;
    let text = data(&client.frames_of(stream).await);
    assert!(text.contains(&"a".repeat(40_000)));
}

#[tokio::test]
async fn a_client_of_http1_is_told_what_is_spoken_here() {
    let server = serve(vec![step("whole")]).await;
    let mut tcp = TcpStream::connect(server.addr()).await.unwrap();
    tcp.write_all(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut said = String::new();
    timeout(HANG, tcp.read_to_string(&mut said)).await.unwrap().unwrap();
    assert!(said.starts_with("HTTP/1.1 505 "), "{said}");
    assert!(said.contains("--http2-prior-knowledge"), "{said}");
}

#[tokio::test]
async fn the_record_and_the_models_are_served_over_http2_too() {
    let server = serve(vec![step("whole")]).await;
    let mut client = Client::to(&server).await;
    let stream = client.chat().await;
    client.frames_of(stream).await;
    let record = client.get("/_faults/requests").await;
    assert!(data(&client.frames_of(record).await).contains("\"behaviour\":\"whole\""));
    let models = client.get("/v1/models").await;
    assert!(data(&client.frames_of(models).await).contains("\"faults\""));
}
