//! The few plain questions that are asked besides the turns: is it up, and what
//! did it see. HTTP/1.0, so that the answer ends where the connection does.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body that `GET path` gives on this port of loopback.
///
/// # Errors
///
/// No connection, no answer in time, or a status other than 200.
pub(crate) async fn get(port: u16, path: &str) -> Result<String> {
    let asked = tokio::time::timeout(PATIENCE, exchange(port, path));
    let answer = asked.await.with_context(|| format!("GET {path} was not answered in time"))??;
    let answer = String::from_utf8_lossy(&answer);
    body(&answer).map(str::to_owned).with_context(|| format!("GET {path}"))
}

async fn exchange(port: u16, path: &str) -> Result<Vec<u8>> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.context("cannot connect")?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.context("cannot ask")?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.context("cannot read the answer")?;
    Ok(answer)
}

fn body(answer: &str) -> Result<&str> {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        bail!("the answer is no HTTP");
    };
    match head.split(' ').nth(1) {
        Some("200") => Ok(body),
        status => bail!("answered {}", status.unwrap_or("without a status")),
    }
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn only_a_200_has_a_body() {
        assert_eq!(body("HTTP/1.1 200 OK\r\nA: b\r\n\r\n[1]\r\n\r\n2").unwrap(), "[1]\r\n\r\n2");
        let loading = body("HTTP/1.1 503 Loading\r\n\r\n{}").unwrap_err();
        assert_eq!(loading.to_string(), "answered 503");
        assert!(body("nonsense").is_err());
    }
}
