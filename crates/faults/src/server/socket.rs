//! A connection with or without TLS.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// A connection with or without TLS.
#[derive(Debug)]
pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }

    /// Our address and the client's.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.tcp().local_addr().ok()?, self.tcp().peer_addr().ok()?))
    }

    /// From now on, closing sends RST instead of FIN. If the option is refused
    /// the socket is closed already, and there is nobody to reset.
    pub(super) fn close_by_reset(&self) {
        let _ = self.tcp().set_zero_linger();
    }

    /// Sends bytes under the feet of TLS.
    pub(super) async fn write_beneath(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush().await?;
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes).await,
            Self::Tls(tls) => tls.get_mut().0.write_all(bytes).await,
        }
    }

    /// Sends a FIN and nothing before it, TLS or not.
    pub(super) async fn fin_without_notify(&mut self) -> io::Result<()> {
        self.flush().await?;
        match self {
            Self::Plain(tcp) => tcp.shutdown().await,
            Self::Tls(tls) => tls.get_mut().0.shutdown().await,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
