//! A new connection: TCP, then TLS, then HTTP. Every address is checked before and after.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{Clock, CrawlUrl, Limits, Outcome, OutcomeClass, Scheme};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::address_policy::{AddressPolicy, Refusal};
use crate::deadline::Deadline;
use crate::http1::{self, Http1};
use crate::http2::Http2;
use crate::link::{Link, Wire};
use crate::pool::Pool;
use crate::shortage::{self, Lack, Shortages};
use crate::stream::{ByteCount, Socket, Stream};
use crate::tls;

/// Makes connections.
pub(crate) struct Connector {
    policy: AddressPolicy,
    tls: Arc<ClientConfig>,
    limits: Limits,
    http1: hyper::client::conn::http1::Builder,
    clock: Clock,
    shortages: Arc<Shortages>,
}

/// Where a connection is to lead.
#[derive(Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) url: &'a CrawlUrl,
    /// Time for the connection, and again for its TLS handshake.
    pub(crate) timeout: Duration,
}

impl Connector {
    pub(crate) fn new(
        policy: AddressPolicy,
        tls: Arc<ClientConfig>,
        limits: &Limits,
        clock: Clock,
        shortages: Arc<Shortages>,
    ) -> Self {
        Self {
            policy,
            tls,
            limits: limits.clone(),
            http1: http1::builder(limits),
            clock,
            shortages,
        }
    }

    /// Whether a fetch may use this address and port at all.
    pub(crate) fn check(&self, ip: IpAddr, port: u16) -> Result<(), Outcome> {
        let verdict = self.policy.check(ip).and(self.policy.check_port(port));
        verdict.map_err(denied)
    }

    /// Connects to `address` and gets ready to ask for `url`. `connected` tells of a connection that was
    /// made even when it came to nothing.
    pub(crate) async fn connect(
        &self,
        goal: Goal<'_>,
        deadline: &mut Deadline,
        connected: &mut Option<(IpAddr, ByteCount)>,
        pool: &Pool,
    ) -> Result<Link, Outcome> {
        let url = goal.url;
        let tcp = self.tcp(goal, deadline, pool).await?;
        // The system has the last word on where a socket leads; a filter or a namespace may differ.
        let peer = tcp.peer_addr().map_err(|error| connect_failed(&error))?;
        let peer = peer.ip().to_canonical();
        self.policy.check(peer).map_err(denied)?;
        let socket = Socket::new(tcp, ByteCount::default());
        let count = socket.count();
        *connected = Some((peer, count.clone()));
        let wire = match url.scheme() {
            Scheme::Http => self.open_http1(Stream::Plain(socket)).await?,
            Scheme::Https => self.secure(socket, goal, deadline).await?,
        };
        Ok(Link { wire, peer, count })
    }

    async fn tcp(
        &self,
        goal: Goal<'_>,
        deadline: &mut Deadline,
        pool: &Pool,
    ) -> Result<TcpStream, Outcome> {
        let address = goal.address;
        let mut tries = 0;
        let tcp = loop {
            deadline.step(goal.timeout);
            let error = match deadline.bound(TcpStream::connect(address)).await {
                Some(Ok(tcp)) => break tcp,
                Some(Err(error)) => error,
                None => {
                    let class = OutcomeClass::FailedConnect;
                    return Err(Outcome::because(class, "connect timed out"));
                }
            };
            let waits = match shortage::lack(&error) {
                Some(Lack::Files) => true,
                Some(Lack::Port) => address.is_ipv4() && tries < shortage::PORT_TRIES,
                None => false,
            };
            if !waits {
                return Err(connect_failed(&error));
            }
            tries += 1;
            self.shortages.note(&error);
            // What is kept for later is worth less than what is needed now.
            pool.clear();
            deadline.pause(tokio::time::sleep(shortage::PAUSE)).await;
        };
        // Requests are written whole: waiting for more to send only delays them.
        tcp.set_nodelay(true)
            .map_err(|error| connect_failed(&error))?;
        Ok(tcp)
    }

    async fn secure(
        &self,
        socket: Socket,
        goal: Goal<'_>,
        deadline: &mut Deadline,
    ) -> Result<Wire, Outcome> {
        let name = server_name(goal.url).ok_or_else(|| {
            Outcome::because(OutcomeClass::FailedTls, "host name not usable for TLS")
        })?;
        deadline.step(goal.timeout);
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = match deadline.bound(connector.connect(name, socket)).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => {
                return Err(Outcome::because(
                    OutcomeClass::FailedTls,
                    tls::reason(&error),
                ));
            }
            None => {
                let class = OutcomeClass::FailedTimeout;
                return Err(Outcome::because(class, "TLS handshake timed out"));
            }
        };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = Stream::Tls(Box::new(stream));
        if !http2 {
            return self.open_http1(stream).await;
        }
        match deadline.bound(Http2::open(&self.limits, stream)).await {
            Some(Some(http2)) => Ok(Wire::Http2(http2)),
            Some(None) => Err(no_http()),
            None => {
                let class = OutcomeClass::FailedTimeout;
                Err(Outcome::because(class, "HTTP/2 handshake timed out"))
            }
        }
    }

    async fn open_http1(&self, stream: Stream) -> Result<Wire, Outcome> {
        let http1 = Http1::open(
            &self.http1,
            self.limits.max_headers,
            stream,
            Arc::clone(&self.clock),
        )
        .await;
        http1.map(Wire::Http1).ok_or_else(no_http)
    }
}

fn no_http() -> Outcome {
    Outcome::because(OutcomeClass::FailedProtocol, "HTTP handshake failed")
}

fn denied(refusal: Refusal) -> Outcome {
    Outcome::because(OutcomeClass::DeniedPolicy, refusal.0)
}

fn connect_failed(error: &io::Error) -> Outcome {
    use io::ErrorKind as K;
    let reason = match error.kind() {
        K::ConnectionRefused => "connection refused",
        K::ConnectionReset => "connection reset",
        K::TimedOut => "connect timed out",
        K::NetworkUnreachable | K::HostUnreachable => "unreachable",
        _ => "connect failed",
    };
    Outcome::because(OutcomeClass::FailedConnect, reason)
}

/// The name the certificate must be for: the host without the brackets of an IPv6 address and without
/// the dot that ends a whole name.
fn server_name(url: &CrawlUrl) -> Option<ServerName<'static>> {
    if let Some(ip) = url.host_ip() {
        return Some(ServerName::IpAddress(ip.into()));
    }
    let host = url.host();
    let host = host.strip_suffix('.').unwrap_or(host);
    ServerName::try_from(host.to_owned()).ok()
}
