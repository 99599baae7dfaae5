//! The sockets of the hostile web: which case a connection belongs to, and its script carried out.
//!
//! One socket serves all addresses of the loopback network; the address that was connected to tells the
//! case. Requests are read strictly, for what a crawler sends is under test as well.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::time::sleep;

use super::case::{Case, Door};
use super::cases;
use super::identity::Identities;
use super::names;
use super::script::{Act, Ask};
use super::tally::CaseCounts;
use crate::SimError;
use crate::request::{self, MAX_HEAD};

/// Between two bytes of a drip: short enough that no silence in a body is long.
const DRIP: Duration = Duration::from_millis(100);

/// The ports of the hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) plain: u16,
    pub(crate) tls: u16,
    /// Bound, so that nobody else takes it, but not listened on.
    pub(crate) closed: u16,
}

struct Shared {
    cases: Arc<[Case]>,
    tally: Arc<CaseCounts>,
    identities: Identities,
    ports: Ports,
}

/// Everything that is listened on.
pub(crate) struct Listening {
    shared: Arc<Shared>,
    plain: TcpListener,
    tls: TcpListener,
    names: UdpSocket,
    dns: SocketAddr,
    _closed: TcpSocket,
}

impl Listening {
    pub(crate) async fn bind(
        cases: Arc<[Case]>,
        tally: Arc<CaseCounts>,
        identities: Identities,
    ) -> Result<Self, SimError> {
        let bind = async || -> io::Result<_> {
            let (plain, tls) = (
                crate::serve::listen(0, false)?,
                crate::serve::listen(0, false)?,
            );
            let closed = TcpSocket::new_v4()?;
            closed.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
            let names = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
            let ports = Ports {
                plain: plain.local_addr()?.port(),
                tls: tls.local_addr()?.port(),
                closed: closed.local_addr()?.port(),
            };
            Ok((plain, tls, closed, names.local_addr()?, names, ports))
        };
        let (plain, tls, closed, dns, names, ports) = bind()
            .await
            .map_err(|source| SimError::Listen { port: 0, source })?;
        let shared = Arc::new(Shared {
            cases,
            tally,
            identities,
            ports,
        });
        Ok(Self {
            shared,
            plain,
            tls,
            names,
            dns,
            _closed: closed,
        })
    }

    pub(crate) fn ports(&self) -> Ports {
        self.shared.ports
    }

    pub(crate) fn dns(&self) -> SocketAddr {
        self.dns
    }

    /// Serves forever.
    pub(crate) async fn serve(self) {
        let cases = Arc::clone(&self.shared.cases);
        tokio::join!(
            accept(&self.plain, &self.shared, false),
            accept(&self.tls, &self.shared, true),
            names::serve(self.names, cases),
        );
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, tls: bool) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely there are no file descriptors left; some will come back.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let Ok(IpAddr::V4(ip)) = stream.local_addr().map(|addr| addr.ip()) else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(welcome(stream, ip, Arc::clone(shared), tls));
    }
}

async fn welcome(stream: TcpStream, ip: Ipv4Addr, shared: Arc<Shared>, tls: bool) {
    if matches!(ip.octets(), [127, 91, ..]) && !tls {
        return endless(stream, &shared).await;
    }
    let number = shared.cases.iter().position(|case| case.ip() == ip);
    let case = number.and_then(|number| Some((number, shared.cases.get(number)?)));
    let Some((number, case)) = case else {
        shared.tally.trespass(format!("a connection to {ip}"));
        return;
    };
    let mut visit = Visit {
        shared: &shared,
        case,
        number,
        turn: 0,
    };
    let connection = shared.tally.connected(number);
    let greeting = case
        .greet
        .map(|greet| greet(connection))
        .unwrap_or_default();
    match shared.identities.acceptor(ip).filter(|_| tls) {
        // A failed handshake is what many of these cases are about.
        Some(acceptor) => {
            if let Ok(mut stream) = acceptor.accept(stream).await
                && visit.talk(&mut stream, greeting).await == Ending::Reset
            {
                // Without the goodbye of TLS.
                let _ = stream.get_ref().0.set_zero_linger();
            }
        }
        None => {
            let mut stream = stream;
            match visit.talk(&mut stream, greeting).await {
                Ending::Reset => drop(stream.set_zero_linger()),
                Ending::Closed => drop(stream.shutdown().await),
                Ending::Gone => {}
            }
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The client went.
    Gone,
    /// We close.
    Closed,
    /// We break off.
    Reset,
}

/// One connection to a case.
struct Visit<'a> {
    shared: &'a Shared,
    case: &'a Case,
    number: usize,
    turn: u64,
}

impl Visit<'_> {
    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        greeting: Vec<Act>,
    ) -> Ending {
        if let Err(ending) = self.act(stream, greeting).await {
            return ending;
        }
        let mut input = Vec::new();
        loop {
            let Some(len) = read_head(stream, &mut input).await else {
                return Ending::Gone;
            };
            let head: Vec<u8> = input.drain(..len).collect();
            let Some(ask) = self.understand(&head) else {
                let words = String::from_utf8_lossy(&head).into_owned();
                self.shared
                    .tally
                    .trespass(format!("{}: {words}", self.case.name));
                return Ending::Closed;
            };
            let script = match ask.target.as_str() {
                "/robots.txt" => self.case.robots,
                _ => self.case.script,
            };
            self.turn += 1;
            if let Err(ending) = self.act(stream, script(&ask)).await {
                return ending;
            }
        }
    }

    /// Reads a request, and none when there is something in it that does not belong there.
    fn understand(&self, head: &[u8]) -> Option<Ask> {
        let request = request::parse(head)?;
        let text = std::str::from_utf8(head).ok()?.to_ascii_lowercase();
        let count = |name: &str| {
            text.split("\r\n")
                .filter(|line| line.starts_with(name))
                .count()
        };
        let foreign = count("cookie:") + count("authorization:") + count("x-injected:") > 0;
        let host = match self.case.door {
            Door::Named => self.case.host_name(),
            _ => self.case.ip().to_string(),
        };
        let named = request
            .authority
            .rsplit_once(':')
            .is_some_and(|(name, _)| name == host);
        if foreign || count("host:") != 1 || !named || request.method != "GET" {
            return None;
        }
        Some(Ask {
            target: request.target.to_owned(),
            authority: request.authority.to_owned(),
            port: self.shared.ports.plain,
            before: self.shared.tally.asked(self.number, request.target),
            turn: self.turn,
        })
    }

    async fn act<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        acts: Vec<Act>,
    ) -> Result<(), Ending> {
        for act in acts {
            match act {
                Act::Send(bytes) => self.send(stream, &bytes).await?,
                Act::Forever(bytes) => loop {
                    self.send(stream, &bytes).await?;
                },
                Act::Drip(bytes) => loop {
                    for byte in &bytes {
                        if !wait(stream, DRIP).await {
                            return Err(Ending::Gone);
                        }
                        self.send(stream, &[*byte]).await?;
                    }
                },
                Act::Pause(time) => {
                    if !wait(stream, time).await {
                        return Err(Ending::Gone);
                    }
                }
                Act::Silence => {
                    let mut taken = [0; 1024];
                    while matches!(stream.read(&mut taken).await, Ok(1..)) {}
                    return Err(Ending::Gone);
                }
                Act::Close => return Err(Ending::Closed),
                Act::Reset => return Err(Ending::Reset),
            }
        }
        Ok(())
    }

    async fn send<S: AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        bytes: &[u8],
    ) -> Result<(), Ending> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Ok(written @ 1..) = stream.write(rest).await else {
                return Err(Ending::Gone);
            };
            self.shared.tally.sent(self.number, written);
            rest = rest.get(written..).unwrap_or_default();
        }
        stream.flush().await.map_err(|_| Ending::Gone)
    }
}

/// Lets time pass; false when the client goes meanwhile. What it says meanwhile is lost: nobody who
/// waits for an answer says anything.
async fn wait<S: AsyncRead + Unpin>(stream: &mut S, time: Duration) -> bool {
    let mut taken = [0; 1024];
    tokio::select! {
        () = sleep(time) => true,
        read = stream.read(&mut taken) => matches!(read, Ok(1..)),
    }
}

/// Waits until a head is there. None when the client has gone or sends no end of it.
async fn read_head<S: AsyncRead + Unpin>(stream: &mut S, input: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(len) = request::head_len(input) {
            return Some(len);
        }
        if input.len() > MAX_HEAD || !matches!(stream.read_buf(input).await, Ok(1..)) {
            return None;
        }
    }
}

/// A host without a case: nothing but a body without end.
async fn endless(mut stream: TcpStream, shared: &Shared) {
    let mut input = Vec::new();
    while let Some(len) = read_head(&mut stream, &mut input).await {
        let head: Vec<u8> = input.drain(..len).collect();
        let target = request::parse(&head).map(|request| request.target.to_owned());
        let Some(target) = target.filter(|target| target != "/robots.txt") else {
            let none = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
            if stream.write_all(none).await.is_err() {
                return;
            }
            continue;
        };
        let (coding, begin, unit) = cases::endless_body(target.trim_start_matches('/'));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{coding}Connection: close\r\n\r\n"
        );
        let _counted = shared.tally.endless_begins();
        let mut sending = [head.into_bytes(), begin].concat();
        while stream.write_all(&sending).await.is_ok() {
            sending.clone_from(&unit);
        }
        return;
    }
}
