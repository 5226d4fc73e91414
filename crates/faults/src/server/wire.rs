//! One connection at the socket: what comes in, what goes out, and the four
//! ways to break. Every wait ends when the server stops.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    pin, select,
    sync::watch,
    time,
};

use super::socket::Socket;
use crate::record::Ended;

/// Bytes of a next request that are read ahead while an answer waits.
const READ_AHEAD: usize = 64 * 1024;

/// How long a closing side waits for the other one to close too.
pub(super) const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// How long a reset waits for a client that takes nothing of what was sent
/// before it.
const TAKE_WAIT: Duration = Duration::from_secs(2);
const TAKE_POLL: Duration = Duration::from_millis(1);

/// The wait where the kernel does not say what was taken (not Linux).
const BLIND_WAIT: Duration = Duration::from_millis(50);

/// Why an exchange cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    ClientLeft,
    Stopped,
}

impl From<Gone> for Ended {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::ClientLeft => Self::ClientLeft,
            Gone::Stopped => Self::Stopped,
        }
    }
}

/// A connection and the bytes read from it that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Socket,
    buffer: Vec<u8>,
    read_closed: bool,
    doomed: bool,
    stop: watch::Receiver<bool>,
}

impl Wire {
    pub(crate) fn new(stream: Socket, stop: watch::Receiver<bool>) -> Self {
        Self { stream, buffer: Vec::new(), read_closed: false, doomed: false, stop }
    }

    /// Makes the next request the last one, and unanswered.
    pub(super) fn doom(&mut self) {
        self.doomed = true;
    }

    pub(super) fn is_doomed(&self) -> bool {
        self.doomed
    }

    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes the first `count` bytes, or all when there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(count.min(self.buffer.len()));
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Reads more into the buffer; false at the end of what the client sends.
    pub(crate) async fn fill(&mut self) -> Result<bool, Gone> {
        if self.read_closed {
            return Ok(false);
        }
        self.buffer.reserve(8 * 1024);
        select! {
            read = self.stream.read_buf(&mut self.buffer) => match read {
                Ok(0) => {
                    self.read_closed = true;
                    Ok(false)
                }
                Ok(_) => Ok(true),
                Err(_) => Err(Gone::ClientLeft),
            },
            _ = self.stop.wait_for(|stop| *stop) => Err(Gone::Stopped),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let sending = async {
            self.stream.write_all(bytes).await?;
            // TLS may hold records back.
            self.stream.flush().await
        };
        select! {
            sent = sending => sent.map_err(|_| Gone::ClientLeft),
            _ = self.stop.wait_for(|stop| *stop) => Err(Gone::Stopped),
        }
    }

    /// Waits, and notices a client that resets meanwhile. A client that only
    /// closed its sending side still wants the answer.
    pub(crate) async fn wait(&mut self, delay: Duration) -> Result<(), Gone> {
        if delay.is_zero() {
            return Ok(());
        }
        let sleep = time::sleep(delay);
        pin!(sleep);
        loop {
            let listening = !self.read_closed && self.buffer.len() < READ_AHEAD;
            select! {
                () = &mut sleep => return Ok(()),
                _ = self.stop.wait_for(|stop| *stop) => return Err(Gone::Stopped),
                read = self.stream.read_buf(&mut self.buffer), if listening => match read {
                    Ok(0) => self.read_closed = true,
                    Ok(_) => {}
                    Err(_) => return Err(Gone::ClientLeft),
                },
            }
        }
    }

    /// Ends the connection by RST, after the client has taken what was sent.
    ///
    /// A reset throws away whatever the sender still queues, and on some
    /// systems what the receiver has not read, so a test could not say which
    /// events the client saw. Both queues belong to sockets of this machine
    /// (we serve on loopback only), so the kernel can be asked for their
    /// lengths, and the reset comes when both are empty. A client that does
    /// not read is reset all the same, [`TAKE_WAIT`] after the last progress.
    pub(crate) async fn reset(mut self) {
        self.until_taken().await;
        self.stream.close_by_reset();
    }

    /// Ends the connection by FIN and reads on until the client closes too:
    /// closing with unread bytes would send a reset instead.
    pub(crate) async fn fin(mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let _ = time::timeout(CLOSE_WAIT, self.until_left()).await;
    }

    /// The same without the `close_notify` that TLS sends before a FIN.
    pub(super) async fn fin_without_notify(mut self) {
        if self.stream.fin_without_notify().await.is_err() {
            return;
        }
        let _ = time::timeout(CLOSE_WAIT, self.until_left()).await;
    }

    /// Sends bytes that are no record of TLS, then a FIN.
    pub(super) async fn bad_record(mut self) {
        // What was sent before it is to be read before it.
        self.until_taken().await;
        // Of a type that does not exist, and long enough to be judged.
        if self.stream.write_beneath(&[0xff; 64]).await.is_ok() {
            self.fin_without_notify().await;
        }
    }

    /// Sends nothing more and keeps the connection until the client closes it.
    pub(crate) async fn silence(mut self) -> Gone {
        self.until_left().await
    }

    async fn until_left(&mut self) -> Gone {
        loop {
            self.buffer.clear();
            match self.fill().await {
                Ok(true) => {}
                Ok(false) => return Gone::ClientLeft,
                Err(gone) => return gone,
            }
        }
    }

    async fn until_taken(&mut self) {
        let Some((us, client)) = self.stream.ends() else { return };
        let mut least = u64::MAX;
        let mut progress = time::Instant::now();
        while progress.elapsed() < TAKE_WAIT {
            match untaken(us, client) {
                Some(0) => return,
                Some(left) if left < least => {
                    least = left;
                    progress = time::Instant::now();
                }
                Some(_) => {}
                None => {
                    let _ = self.wait(BLIND_WAIT).await;
                    return;
                }
            }
            if self.wait(TAKE_POLL).await.is_err() {
                return;
            }
        }
    }
}

/// Bytes of ours that the client has not read: those in our sending queue and
/// those in its receiving queue. `None` where the kernel does not tell.
///
/// The proper call for the first is the ioctl `TIOCOUTQ`, which needs unsafe
/// code and says nothing of the second.
fn untaken(us: SocketAddr, client: SocketAddr) -> Option<u64> {
    let (us, client) = (us.port(), client.port());
    let mut sum = None;
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        // A file of a kernel without IPv6 is missing, which is fine.
        let Ok(rows) = std::fs::read_to_string(table) else {
            continue;
        };
        for row in rows.lines().skip(1).filter_map(Row::read) {
            if (row.local, row.remote) == (us, client) {
                sum = Some(sum.unwrap_or(0) + row.sending);
            } else if (row.local, row.remote) == (client, us) {
                sum = Some(sum.unwrap_or(0) + row.receiving);
            }
        }
    }
    sum
}

/// One socket in the kernel's table.
struct Row {
    local: u16,
    remote: u16,
    sending: u64,
    receiving: u64,
}

impl Row {
    /// `sl: local:port remote:port state sending:receiving …`, all in hex.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let port = |field: &str| u16::from_str_radix(field.rsplit_once(':')?.1, 16).ok();
        let local = port(fields.next()?)?;
        let remote = port(fields.next()?)?;
        let (sending, receiving) = fields.nth(1)?.split_once(':')?;
        Some(Self {
            local,
            remote,
            sending: u64::from_str_radix(sending, 16).ok()?,
            receiving: u64::from_str_radix(receiving, 16).ok()?,
        })
    }
}
