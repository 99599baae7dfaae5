//! The HTTP server: one loop per connection, written by hand because it must cost less than the
//! client it serves. Half the time of a request would go into a library's generality.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::Served;
use crate::answer::{self, Effect};
use crate::count::bump;
use crate::request::{self, MAX_HEAD};

/// A crawl of thousands of hosts opens as many connections at once; with a short queue some would wait
/// a second for their SYN to be sent again.
const BACKLOG: u32 = 8192;

/// Listens on every address of the loopback network.
pub(crate) fn listen(port: u16, shared_port: bool) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    if shared_port {
        socket.set_reuseport(true)?;
    }
    // Only the wildcard answers for all of 127.0.0.0/8. Tying the socket to the loopback interface
    // keeps other machines out where the system lets us; `accept` looks at the address in any case.
    #[cfg(target_os = "linux")]
    let _ = socket.bind_device(Some(b"lo"));
    socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
    socket.listen(BACKLOG)
}

/// Accepts connections forever.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Served>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely there are no file descriptors left; some will come back.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let local = stream.local_addr().map(|addr| addr.ip());
        if let Ok(IpAddr::V4(local)) = local
            && local.is_loopback()
            && stream.set_nodelay(true).is_ok()
        {
            bump(&shared.counters.tally().connections);
            tokio::spawn(serve(stream, local, Arc::clone(&shared)));
        }
    }
}

async fn serve(stream: TcpStream, local: Ipv4Addr, shared: Arc<Served>) {
    let ip = shared.web.layout.ip_number(local);
    let mut connection = Connection {
        stream,
        input: Vec::with_capacity(2048),
        output: Vec::new(),
        last: Effect::Nothing,
    };
    while connection.exchange(&shared, ip).await {}
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// What the last answer meant; taken back when the client turns out not to have read it.
    last: Effect,
}

impl Connection {
    /// Reads one request and answers it; false when the connection is over.
    async fn exchange(&mut self, shared: &Served, ip: Option<u32>) -> bool {
        let counters = &shared.counters;
        let Some(len) = self.read_head(shared).await else {
            return false;
        };
        let head = self.input.get(..len).unwrap_or_default();
        let Some(request) = request::parse(head) else {
            let first = head.split(|b| *b == b'\r').next().unwrap_or_default();
            counters.malformed(String::from_utf8_lossy(first).into_owned());
            let _ = self.stream.write_all(MALFORMED).await;
            return false;
        };
        let mut plan = answer::plan(&shared.web, counters, &request, ip);
        self.input.drain(..len);
        if !plan.wait.is_zero() && !self.wait(plan.wait).await {
            bump(&counters.tally().aborted);
            return false;
        }
        self.output.clear();
        let effect = plan.write(&shared.web, counters, &mut self.output);
        if effect == Effect::Reset {
            let _ = self.stream.set_zero_linger();
            return false;
        }
        // The client may act on the answer, or somebody ask for the counts, before the write returns
        // here. So everything is said before it, and taken back if it was wrong.
        drop(plan.in_flight.take());
        self.settle(shared, effect);
        let whole = self.stream.write_all(&self.output).await.is_ok();
        if !whole {
            self.take_back(shared);
        }
        whole && !plan.close
    }

    /// Waits until a head is there. None when the client has gone or sends no end of it.
    async fn read_head(&mut self, shared: &Served) -> Option<usize> {
        loop {
            if let Some(len) = request::head_len(&self.input) {
                return Some(len);
            }
            if self.input.len() > MAX_HEAD {
                shared.counters.malformed("a head without end".to_owned());
                return None;
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(_) => {
                    self.take_back(shared);
                    return None;
                }
            }
        }
    }

    /// Lets time pass; false when the client goes meanwhile.
    async fn wait(&self, time: Duration) -> bool {
        let sleeping = sleep(time);
        tokio::pin!(sleeping);
        let mut byte = [0];
        tokio::select! {
            () = &mut sleeping => return true,
            peeked = self.stream.peek(&mut byte) => {
                if !matches!(peeked, Ok(1..)) {
                    return false;
                }
            }
        }
        // The next request is already here and waits its turn.
        sleeping.await;
        true
    }

    fn settle(&mut self, shared: &Served, effect: Effect) {
        let counters = &shared.counters;
        counters.sent(self.output.len());
        self.last = effect;
        match effect {
            Effect::Robots(host) => counters.robots_answered(host),
            Effect::Page(index) => counters.delivered(index),
            Effect::NotModified(index) => counters.not_modified(index),
            Effect::Nothing | Effect::Reset => {}
        }
    }

    /// A kernel that closes a socket with unread bytes sends a reset, and one that has handed
    /// everything to its program an orderly end. So a reset says that the last answer, though written
    /// whole on this side, was not read whole on the other.
    fn take_back(&mut self, shared: &Served) {
        if let Effect::Page(index) = self.last {
            shared.counters.not_delivered(index);
            bump(&shared.counters.tally().aborted);
        }
        self.last = Effect::Nothing;
    }
}

const MALFORMED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
