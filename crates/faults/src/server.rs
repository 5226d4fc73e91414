//! The server: a loopback port that plays a script, one step an attempt.
//!
//! It works at the socket, without an HTTP library, because a library would
//! mend or forbid most of what it is for: a reset in the middle of a chunk, a
//! body without an end, a character cut in two.

mod coding;
mod connection;
mod exchange;
mod http2;
mod proxy;
mod reply;
mod request;
mod routes;
mod shared;
mod socket;
mod tls;
mod wire;

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    select,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time,
};

pub use proxy::RefusingProxy;

use crate::{behaviour::Protocol, record::RecordedRequest, script::Script};
use shared::{OpenGuard, Shared};
use socket::Socket;
use tls::Certificates;
use wire::Wire;

/// The wait after a failed accept, e.g. when no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct FaultServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    certificates: Option<Arc<Certificates>>,
    stop: watch::Sender<bool>,
    accepting: Option<JoinHandle<()>>,
}

impl FaultServer {
    /// Starts to play `script` at `addr`; port 0 takes a free one. It accepts
    /// connections when this returns.
    ///
    /// Must be called within a tokio runtime with I/O and time enabled, which
    /// then runs the server.
    ///
    /// # Errors
    ///
    /// [`ServeError::NotLoopback`] for an address that other machines can
    /// reach, [`ServeError::Bind`] when the port cannot be taken, and for a
    /// script with TLS [`ServeError::CaFile`] when its authority cannot be
    /// written to the file it names.
    pub async fn start(script: Script, addr: SocketAddr) -> Result<Self, ServeError> {
        if !addr.ip().is_loopback() {
            return Err(ServeError::NotLoopback(addr));
        }
        let refuse = |source| ServeError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(refuse)?;
        let addr = listener.local_addr().map_err(refuse)?;
        let certificates = certificates(&script)?;
        let shared = Arc::new(Shared::new(script, addr));
        let (stop, stopped) = watch::channel(false);
        let accepting =
            tokio::spawn(accept(listener, Arc::clone(&shared), certificates.clone(), stopped));
        Ok(Self { addr, shared, certificates, stop, accepting: Some(accepting) })
    }

    /// Starts at a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// [`ServeError::Bind`] when there is none.
    pub async fn start_anywhere(script: Script) -> Result<Self, ServeError> {
        Self::start(script, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// The address it listens at.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL for a client, `http://127.0.0.1:PORT/v1`, or with `https`
    /// where the script asks for TLS.
    pub fn base_url(&self) -> String {
        format!("{}://{}/v1", self.shared.scheme(), self.addr)
    }

    /// The certificate of the server's own authority in PEM, for a client to
    /// trust; `None` without TLS. It is made anew at each start.
    pub fn ca_pem(&self) -> Option<&str> {
        self.certificates.as_deref().map(|certificates| certificates.ca_pem.as_str())
    }

    /// The seed of the dice, where the script throws any: another server with
    /// it throws the same.
    pub fn seed(&self) -> Option<u64> {
        self.shared.seed()
    }

    /// The record so far: every request but those to `/_faults/…`.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.records()
    }

    /// How many attempts were dealt a step since the start or the last reset.
    /// A connection whose handshake was made to fail is one of them, though no
    /// request came of it.
    pub fn attempts(&self) -> usize {
        self.shared.attempts()
    }

    /// How many connections were accepted since the start.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// How many connections are open now.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Restarts the script and the record. An attempt under way goes on, and
    /// is in neither.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// Stops: no further connection is accepted, every exchange ends at its
    /// next wait, and all sockets are closed when this returns. The record is
    /// handed back whole.
    pub async fn stop(mut self) -> Vec<RecordedRequest> {
        self.stop.send_replace(true);
        if let Some(accepting) = self.accepting.take() {
            // It ends by itself; an error would mean that the runtime is going down.
            let _ = accepting.await;
        }
        self.shared.records()
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// The certificates of a script with TLS; its authority goes to the file that
/// the script names.
fn certificates(script: &Script) -> Result<Option<Arc<Certificates>>, ServeError> {
    let serving = script.serving();
    if serving.tls.is_none() {
        return Ok(None);
    }
    let made = Certificates::make(serving.protocol)
        .map_err(|error| ServeError::Certificates(error.into()))?;
    if let Some(path) = &serving.ca_file {
        fs::write(path, &made.ca_pem)
            .map_err(|source| ServeError::CaFile { path: path.clone(), source })?;
    }
    Ok(Some(Arc::new(made)))
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    certificates: Option<Arc<Certificates>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = select! {
            accepted = listener.accept() => accepted,
            // Reaps the connections that ended.
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = accepted else {
            time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Events must leave one by one, as they are written.
        let _ = stream.set_nodelay(true);
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let (shared, stop) = (Arc::clone(&shared), stop.clone());
        let certificates = certificates.clone();
        connections.spawn(async move {
            let _open = OpenGuard::new(&shared.open);
            connect(stream, &shared, certificates.as_deref(), number, stop).await;
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection to its end.
async fn connect(
    stream: TcpStream,
    shared: &Shared,
    certificates: Option<&Certificates>,
    number: usize,
    mut stop: watch::Receiver<bool>,
) {
    let socket = match certificates.and_then(|made| Some((made, shared.handshake()?))) {
        None => Socket::Plain(stream),
        Some((certificates, (tls, delay))) => {
            select! {
                () = time::sleep(delay) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            match certificates.shake_hands(stream, tls, &mut stop).await {
                Some(socket) => socket,
                None => return,
            }
        }
    };
    match shared.protocol() {
        Protocol::Http1 => connection::serve(Wire::new(socket, stop), shared, number).await,
        Protocol::Http2 => http2::serve(socket, stop, shared, number).await,
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address can be reached from other machines.
    #[error(
        "{0} is not a loopback address: this server is for tests on one machine, use 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be taken.
    #[error("cannot listen at {addr}: choose another port, or 0 for a free one")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificates cannot be made, which would be a fault of the build.
    #[error("cannot make the certificates of the server")]
    Certificates(#[source] io::Error),
    /// The authority cannot be written where the script wants it.
    #[error("cannot write the authority to {}: choose another `ca_file`", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests;
