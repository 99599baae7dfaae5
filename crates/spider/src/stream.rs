//! The byte stream under an HTTP connection: TCP with its bytes counted, with or without TLS over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Bytes read from one socket so far. Only ever added to, by the socket's reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteCount(Arc<AtomicU64>);

impl ByteCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Who counts what is read, and may end it.
pub(crate) trait ReadCount {
    /// So many bytes more have been read. An error ends the stream.
    fn add(&self, read: usize) -> io::Result<()>;
}

impl ReadCount for ByteCount {
    fn add(&self, read: usize) -> io::Result<()> {
        self.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// A stream whose incoming bytes are counted: a socket below TLS, an HTTP/2 connection above it.
pub(crate) struct Counted<S, C> {
    stream: S,
    count: C,
}

/// A TCP connection whose incoming bytes are counted.
pub(crate) type Socket = Counted<TcpStream, ByteCount>;

impl<S, C: Clone> Counted<S, C> {
    pub(crate) fn new(stream: S, count: C) -> Self {
        Self { stream, count }
    }

    pub(crate) fn count(&self) -> C {
        self.count.clone()
    }
}

impl<S: AsyncRead + Unpin, C: ReadCount + Unpin> AsyncRead for Counted<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.count.add(buf.filled().len() - before))
    }
}

impl<S: AsyncWrite + Unpin, C: Unpin> AsyncWrite for Counted<S, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What HTTP is spoken over.
pub(crate) enum Stream {
    /// TCP alone.
    Plain(Socket),
    /// TLS over TCP; boxed, for its state is a kilobyte that plain connections need not carry.
    Tls(Box<TlsStream<Socket>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
