//! A proxy that refuses.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    net::TcpListener,
    select,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{ServeError, exchange::write_head, reply::Head, request, socket::Socket, wire::Wire};

/// A proxy that answers every request, `CONNECT` or not, with one status, and
/// connects to nobody. Dropping it stops it.
///
/// ```
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use turnbuckle_faults::RefusingProxy;
///
/// let proxy = RefusingProxy::start(407).await?;
/// println!("HTTPS_PROXY={}", proxy.url());
/// // … afterwards:
/// assert_eq!(proxy.targets(), ["CONNECT api.example.com:443"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RefusingProxy {
    addr: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
    stop: watch::Sender<bool>,
    _accepting: JoinHandle<()>,
}

impl RefusingProxy {
    /// Starts at a free port of 127.0.0.1. Usual are 407 (authentication
    /// wanted), 403 and 502.
    ///
    /// # Errors
    ///
    /// [`ServeError::Bind`] when there is no free port.
    pub async fn start(status: u16) -> Result<Self, ServeError> {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let refuse = |source| ServeError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(refuse)?;
        let addr = listener.local_addr().map_err(refuse)?;
        let targets = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, status, Arc::clone(&targets), stopped));
        Ok(Self { addr, targets, stop, _accepting: accepting })
    }

    /// The URL for a client's proxy setting, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The method and the target of each request so far, e.g.
    /// `CONNECT api.example.com:443`.
    pub fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for RefusingProxy {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn accept(
    listener: TcpListener,
    status: u16,
    targets: Arc<Mutex<Vec<String>>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        if let Ok((tcp, _)) = accepted {
            let wire = Wire::new(Socket::Plain(tcp), stop.clone());
            connections.spawn(refuse(wire, status, Arc::clone(&targets)));
        }
    }
}

async fn refuse(mut wire: Wire, status: u16, targets: Arc<Mutex<Vec<String>>>) {
    let Ok(Some(request)) = request::read(&mut wire).await else { return };
    let target = format!("{} {}", request.method, request.path.as_str());
    targets.lock().unwrap_or_else(PoisonError::into_inner).push(target);
    let mut headers = Vec::new();
    if status == 407 {
        headers.push(("proxy-authenticate".to_owned(), "Basic realm=\"faults\"".to_owned()));
    }
    let head = write_head(&Head { status, headers, length: Some(0) }, false);
    if wire.send(&head).await.is_ok() {
        wire.fin().await;
    }
}
