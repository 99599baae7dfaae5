//! Ports: plain on loopback, keyed everywhere else.
//!
//! Without a key nothing but loopback is listened on or connected to. With a key every connection is
//! mutual TLS 1.3 between two that hold it (`secret`), loopback included; without one nothing is heard
//! of a connection before its first words were recognised (`gate`). Until then it waits in a place that
//! it can lose to others (`waiting`), so that strangers cannot take the places of daemons.

mod gate;
mod secret;
mod waiting;

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

use self::gate::Gate;
use self::waiting::{Waiting, WaitingPlace};
use crate::error::WireError;
use crate::service::Service;

pub use secret::Key;

/// The bounds of a port. `Default` is the only place these values live.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// Connections of daemons at once on one listening port; further ones are closed.
    pub max_connections: usize,
    /// Connections at once on one listening port that have not shown the key, or not said their first words; for
    /// further ones the oldest are closed.
    pub max_waiting: usize,
    /// Time for a connection to be made, and again for its handshake.
    pub handshake: Duration,
    /// Time for the handshake of who connects to us. Two round trips; a tenth of it does.
    pub admission: Duration,
}

impl Default for PortOptions {
    fn default() -> Self {
        Self {
            max_connections: 256,
            max_waiting: 256,
            handshake: Duration::from_secs(10),
            admission: Duration::from_secs(5),
        }
    }
}

/// How one service is spoken: with or without a key.
#[derive(Clone)]
pub struct Port {
    service: Service,
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
        Ok(Self {
            service,
            keyed,
            options,
        })
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
            return Ok(Connection::new(Stream::Plain(stream), address));
        };
        // The name is not looked at: the key is what is recognised.
        let name = ServerName::IpAddress(address.ip().into());
        let handshake = keyed.connector.connect(name, stream);
        let stream = self.in_time(handshake, address).await?;
        let stream = Stream::Keyed(Box::new(TlsStream::Client(stream)));
        Ok(Connection::new(stream, address))
    }

    async fn in_time<T>(
        &self,
        handshake: impl Future<Output = io::Result<T>>,
        address: SocketAddr,
    ) -> Result<T, WireError> {
        let span = self.options.handshake;
        match tokio::time::timeout(span, handshake).await {
            Ok(done) => done.map_err(|error| shaken(&error, address)),
            Err(_) => Err(slow(address, span)),
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

/// Why a handshake failed. Only what TLS itself has to say can be about the key.
fn shaken(error: &io::Error, address: SocketAddr) -> WireError {
    use io::ErrorKind as K;
    match error.kind() {
        K::UnexpectedEof | K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe => {
            WireError::Closed { address }
        }
        _ => {
            let why = error.to_string();
            WireError::Handshake { address, why }
        }
    }
}

fn slow(address: SocketAddr, span: Duration) -> WireError {
    let seconds = span.as_secs();
    WireError::Slow { address, seconds }
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
    places: DaemonPlaces,
    waiting: Waiting,
    /// Filled by `accept`, emptied by it; bounded by the places for those who wait.
    handshakes: JoinSet<Result<Connection, WireError>>,
}

/// The places for daemons. Clones share them.
#[derive(Clone, Debug)]
struct DaemonPlaces {
    free: Arc<Semaphore>,
    count: usize,
}

impl DaemonPlaces {
    /// A place for one who was recognised.
    fn take(&self, address: SocketAddr) -> Result<OwnedSemaphorePermit, WireError> {
        let place = Arc::clone(&self.free).try_acquire_owned();
        let places = self.count;
        place.map_err(|_| WireError::Full { address, places })
    }
}

impl Listener {
    fn new(listener: TcpListener, asked: SocketAddr, port: Port) -> Self {
        let count = port.options.max_connections;
        Self {
            address: listener.local_addr().unwrap_or(asked),
            listener,
            places: DaemonPlaces {
                free: Arc::new(Semaphore::new(count)),
                count,
            },
            waiting: Waiting::new(port.options.max_waiting),
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
    /// Without a key a connection comes out at once, and its reading fails with a `WireError` inside when it is not
    /// one of ours.
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

    /// Gives a connection a place to wait in. With a key it first has to show that it has it, without one to say
    /// something that belongs here.
    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
        prepare(&stream);
        let held = self.waiting.enter(peer.ip());
        let places = self.places.clone();
        let Some(keyed) = self.port.keyed.clone() else {
            let gate = Gate::new(self.port.service, peer, held, places);
            let plain = Connection::new(Stream::Plain(stream), peer);
            return Some(Connection {
                gate: Some(Box::new(gate)),
                ..plain
            });
        };
        let span = self.port.options.admission;
        self.handshakes
            .spawn(async move { shake(keyed, stream, peer, held, places, span).await });
        None
    }
}

/// The handshake with one who connected, until it is over, its time is up or its place is needed.
async fn shake(
    keyed: Keyed,
    stream: TcpStream,
    peer: SocketAddr,
    mut held: WaitingPlace,
    places: DaemonPlaces,
    span: Duration,
) -> Result<Connection, WireError> {
    let late = tokio::time::sleep(span);
    tokio::pin!(late);
    let crowded = |count: Result<usize, _>| WireError::Crowded {
        address: peer,
        count: count.unwrap_or_default(),
    };
    tokio::select! {
        // An error shows itself when the handshake begins.
        _ = stream.readable() => {}
        count = &mut held.go => return Err(crowded(count)),
        () = &mut late => return Err(slow(peer, span)),
    }
    held.has_spoken();
    let stream = tokio::select! {
        done = keyed.acceptor.accept(stream) => done.map_err(|error| shaken(&error, peer))?,
        count = &mut held.go => return Err(crowded(count)),
        () = &mut late => return Err(slow(peer, span)),
    };
    let place = places.take(peer)?;
    let stream = Stream::Keyed(Box::new(TlsStream::Server(stream)));
    Ok(Connection {
        place: Some(place),
        ..Connection::new(stream, peer)
    })
}

/// A connection on which both sides may talk.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    peer: SocketAddr,
    /// What is heard passes here first, on a port without a key.
    gate: Option<Box<Gate>>,
    place: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Keyed(Box<TlsStream<TcpStream>>),
}

impl Connection {
    fn new(stream: Stream, peer: SocketAddr) -> Self {
        Self {
            stream,
            peer,
            gate: None,
            place: None,
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
        let Self {
            stream,
            gate,
            place,
            ..
        } = &mut *self;
        if let Some(open) = gate {
            std::task::ready!(open.poll_open(cx, stream, place))?;
            if open.give(buffer) {
                *gate = None;
            }
            return Poll::Ready(Ok(()));
        }
        stream.poll_read(cx, buffer)
    }
}

impl Stream {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Keyed(stream) => Pin::new(stream).poll_read(cx, buffer),
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
