//! Ports: plain on loopback, keyed everywhere else.
//!
//! Without a key nothing but loopback is listened on or connected to. With a key every connection is
//! mutual TLS 1.3 between two that hold it (`secret`), loopback included. The number of connections and
//! the time for a handshake are bounded, so that strangers cost a file descriptor for ten seconds.

mod secret;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::error::WireError;

pub use secret::{Key, MIN_KEY};

/// What is spoken on a port. Each has a key pair of its own, so that nobody in the middle can lead a
/// connection meant for one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The line protocol: the spider listens.
    Line,
    /// The store protocol: the store listens.
    Store,
    /// The results protocol: the store listens.
    Results,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Store => "store",
            Self::Results => "results",
        }
    }
}

/// The bounds of a port. `Default` is the only place these values live.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// Connections at once on one listening port, those in their handshake included; further ones are closed.
    pub max_connections: usize,
    /// Time for a connection to be made, and again for its handshake.
    pub handshake: Duration,
}

impl Default for PortOptions {
    fn default() -> Self {
        Self {
            max_connections: 256,
            handshake: Duration::from_secs(10),
        }
    }
}

/// How one service is spoken: with or without a key.
#[derive(Clone)]
pub struct Port {
    keyed: Option<Keyed>,
    options: PortOptions,
}

#[derive(Clone)]
struct Keyed {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port")
            .field("keyed", &self.keyed.is_some())
            .field("options", &self.options)
            .finish()
    }
}

impl Port {
    /// A service with this key, or on loopback only.
    pub fn new(
        service: Service,
        key: Option<&Key>,
        options: PortOptions,
    ) -> Result<Self, WireError> {
        let keyed = match key {
            Some(key) => {
                let (server, client) = key.tls(service.name())?;
                Some(Keyed {
                    acceptor: TlsAcceptor::from(server),
                    connector: TlsConnector::from(client),
                })
            }
            None => None,
        };
        Ok(Self { keyed, options })
    }

    /// An error when the host is an address that must not be used without a key. Where a name leads is seen when
    /// it is used.
    pub fn check(&self, host: &str, port: u16) -> Result<(), WireError> {
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => self.permitted(&[SocketAddr::new(ip, port)]),
            Err(_) => Ok(()),
        }
    }

    /// Listens on the first address of the host that can be had, or on none when one of them needs a key.
    pub async fn listen(&self, host: &str, port: u16) -> Result<Listener, WireError> {
        let addresses = self.addresses(host, port).await?;
        let mut refused = None;
        for address in addresses {
            match TcpListener::bind(address).await {
                Ok(listener) => return Ok(Listener::new(listener, address, self.clone())),
                Err(source) => refused = Some(WireError::Listen { address, source }),
            }
        }
        Err(refused.unwrap_or_else(|| nowhere(host)))
    }

    /// Connects to the first address of the host that answers.
    pub async fn connect(&self, host: &str, port: u16) -> Result<Connection, WireError> {
        let addresses = self.addresses(host, port).await?;
        let mut refused = None;
        for address in addresses {
            let attempt = TcpStream::connect(address);
            let attempt = tokio::time::timeout(self.options.handshake, attempt);
            let late = || io::Error::from(io::ErrorKind::TimedOut);
            match attempt.await.unwrap_or_else(|_| Err(late())) {
                Ok(stream) => return self.greet(stream, address).await,
                Err(source) => refused = Some(WireError::Connect { address, source }),
            }
        }
        Err(refused.unwrap_or_else(|| nowhere(host)))
    }

    async fn greet(&self, stream: TcpStream, address: SocketAddr) -> Result<Connection, WireError> {
        prepare(&stream);
        let Some(keyed) = &self.keyed else {
            return Ok(Connection::new(Stream::Plain(stream), address, None));
        };
        // The name is not looked at: the key is what is recognised.
        let name = ServerName::IpAddress(address.ip().into());
        let handshake = keyed.connector.connect(name, stream);
        let stream = self.in_time(handshake, address).await?;
        let stream = Stream::Keyed(Box::new(TlsStream::Client(stream)));
        Ok(Connection::new(stream, address, None))
    }

    async fn in_time<T>(
        &self,
        handshake: impl Future<Output = io::Result<T>>,
        address: SocketAddr,
    ) -> Result<T, WireError> {
        let failed = |why| WireError::Handshake { address, why };
        match tokio::time::timeout(self.options.handshake, handshake).await {
            Ok(done) => done.map_err(|error| failed(error.to_string())),
            Err(_) => Err(failed("the handshake took too long".into())),
        }
    }

    /// Where a name leads, when every place may be used.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, WireError> {
        let found = lookup_host((host.trim_matches(['[', ']']), port)).await;
        let found: Vec<SocketAddr> = found
            .map_err(|error| WireError::Name {
                host: host.to_owned(),
                why: error.to_string(),
            })?
            .collect();
        self.permitted(&found)?;
        Ok(found)
    }

    fn permitted(&self, addresses: &[SocketAddr]) -> Result<(), WireError> {
        let is_open = |at: &&SocketAddr| !at.ip().to_canonical().is_loopback();
        let open = addresses.iter().find(is_open);
        match open.filter(|_| self.keyed.is_none()) {
            Some(address) => Err(WireError::NeedsKey { address: *address }),
            None => Ok(()),
        }
    }
}

/// Silence on a connection of ours that has nothing to say is normal; only the machines themselves can
/// tell whether the other one is still there.
fn prepare(stream: &TcpStream) {
    use rustix::net::sockopt;
    // Refused means that a dead peer is noticed later. Every message should leave at once; those who
    // write many gather them first.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, Duration::from_secs(60));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(20));
}

fn nowhere(host: &str) -> WireError {
    WireError::Name {
        host: host.to_owned(),
        why: "the name has no address".into(),
    }
}

/// A port that is listened on.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    port: Port,
    places: Arc<Semaphore>,
    /// Filled by `accept`, emptied by it; bounded by the places.
    handshakes: JoinSet<Result<Connection, WireError>>,
}

impl Listener {
    fn new(listener: TcpListener, asked: SocketAddr, port: Port) -> Self {
        Self {
            address: listener.local_addr().unwrap_or(asked),
            listener,
            places: Arc::new(Semaphore::new(port.options.max_connections)),
            port,
            handshakes: JoinSet::new(),
        }
    }

    /// The address, with the port that the system chose when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection that passed its handshake, or why one did not. An error of the system itself,
    /// such as too few file descriptors, comes out as one too; the caller should pause before the next call.
    pub async fn accept(&mut self) -> Result<Connection, WireError> {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        if let Some(connection) = self.admit(stream, peer) {
                            return Ok(connection);
                        }
                    }
                    Err(source) => {
                        let address = self.address;
                        return Err(WireError::Listen { address, source });
                    }
                },
                Some(Ok(done)) = self.handshakes.join_next() => return done,
            }
        }
    }

    /// Gives a connection its place. With a key it first has to show that it has it.
    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
        // No place: the connection is closed, for one that waits unaccepted would not learn why.
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        prepare(&stream);
        let Some(keyed) = self.port.keyed.clone() else {
            return Some(Connection::new(Stream::Plain(stream), peer, Some(place)));
        };
        let port = self.port.clone();
        self.handshakes.spawn(async move {
            let stream = port.in_time(keyed.acceptor.accept(stream), peer).await?;
            let stream = Stream::Keyed(Box::new(TlsStream::Server(stream)));
            Ok(Connection::new(stream, peer, Some(place)))
        });
        None
    }
}

/// A connection on which both sides may talk.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    peer: SocketAddr,
    _place: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Keyed(Box<TlsStream<TcpStream>>),
}

impl Connection {
    fn new(stream: Stream, peer: SocketAddr, place: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            stream,
            peer,
            _place: place,
        }
    }

    /// The other side.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Keyed(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Keyed(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Keyed(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Keyed(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
