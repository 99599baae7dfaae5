//! The spider: it takes a request, holds one exchange, and brings back a result, whatever happens.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::Empty;
use orbweaver_model::{
    Clock, Exchange, FetchRequest, FetchResult, HostRequest, Limits, Method, Outcome, OutcomeClass,
    Scheme, Spooled,
};

use crate::budget::Share;
use crate::chunks::ChunkWalk;
use crate::connect::{Connector, Goal};
use crate::deadline::Deadline;
use crate::error::SpiderError;
use crate::exchange::{Answer, Errand, Failure, Times, is_text};
use crate::gate::{Gate, Refused};
use crate::gather::Gather;
use crate::link::{Link, Wire};
use crate::options::SpiderOptions;
use crate::outcome_of;
use crate::pool::Pool;
use crate::reread::reread;
use crate::spool;
use crate::tls;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pages first, anything else too: servers choose what to send by this.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// What `decode` can undo.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// What the framing of a body may take of the part that is read back.
const FRAMING: usize = 64 << 10;

/// Fetches. It keeps nothing but open connections; one serves any number of fetches at once.
pub struct Spider {
    options: SpiderOptions,
    user_agent: HeaderValue,
    connector: Connector,
    pool: Pool,
    clock: Clock,
    /// The place of the one large body that is being read.
    reading: Arc<Semaphore>,
}

/// A large body that is being read, and its place.
struct Read {
    body: Bytes,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Read {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// One fetch under way.
struct Trip<'a> {
    request: &'a FetchRequest,
    /// How much is taken from its host.
    limits: &'a Limits,
    gate: &'a dyn Gate,
    unannounced: bool,
    deadline: Deadline,
    times: Times,
    connected: Option<IpAddr>,
    wire_bytes: u64,
    /// The memory of the fetch, until its exchange has it.
    share: Option<Share>,
    /// Why it cannot go on, when that is our own doing.
    ours: Option<String>,
}

/// What came of asking, and whether the connection can be asked again.
type Asked = (Result<Answer, Failure>, bool);

/// Why there is no answer.
enum Unanswered {
    /// What became of the request.
    Failed(Outcome),
    /// The gate kept it from being written.
    Refused,
}

impl From<Outcome> for Unanswered {
    fn from(outcome: Outcome) -> Self {
        Self::Failed(outcome)
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        match outcome_of::failure(failure) {
            Some(outcome) => Self::Failed(outcome),
            None => Self::Refused,
        }
    }
}

impl Spider {
    /// A spider that tells the time by `clock`.
    pub fn new(options: SpiderOptions, clock: Clock) -> Result<Self, SpiderError> {
        let user_agent =
            HeaderValue::from_str(&options.user_agent).map_err(|_| SpiderError::UserAgent)?;
        let tls = tls::client_config(&options.tls)?;
        let policy = options.policy.clone();
        Ok(Self {
            user_agent,
            connector: Connector::new(
                policy,
                tls,
                &options.limits,
                Arc::clone(&clock),
                Arc::clone(&options.shortages),
            ),
            pool: Pool::new(options.max_idle_connections, options.idle_keep),
            options,
            clock,
            reading: Arc::new(Semaphore::new(1)),
        })
    }

    /// Carries a request out. Whatever happens to it is the result's outcome; there is none only when `gate`, which is
    /// asked before the first byte is written, refuses. Dropping the future ends the fetch and its connection.
    pub async fn fetch(
        &self,
        request: &FetchRequest,
        gate: &dyn Gate,
    ) -> Result<FetchResult, Refused> {
        // What cannot be held is not begun.
        let share = self.options.memory.start().await;
        let started = (self.clock)();
        let limits = self.limits(request);
        let mut trip = Trip {
            request,
            limits,
            gate,
            unannounced: request.announce,
            deadline: Deadline::new(limits.total_timeout),
            times: Times::default(),
            connected: None,
            wire_bytes: 0,
            share: Some(share),
            ours: None,
        };
        let (outcome, exchange) = match self.ask(&mut trip).await {
            Ok(answer) => {
                let mut outcome = outcome_of::answer(&answer, request);
                if self.is_read_in_part(&answer, &outcome, limits) {
                    outcome.reason = outcome_of::IN_PART.into();
                }
                (
                    outcome,
                    Some(self.exchanged(request, answer, &mut trip.deadline).await),
                )
            }
            Err(Unanswered::Failed(outcome)) => (outcome, None),
            Err(Unanswered::Refused) => return Err(Refused),
        };
        let cut = exchange.as_ref().and_then(|it| it.truncated);
        let ours = trip.ours.take();
        let blame = outcome_of::blame(&outcome, cut, ours, &mut trip.deadline);
        let (outcome, exchange) = match blame {
            Some(ours) => (ours, None),
            None => (outcome, exchange),
        };
        // An answer that waited for us says nothing about how fast the server is, and the time is not its own.
        let ours = trip.deadline.ours();
        let waited = ours >= outcome_of::STALLED;
        let first_byte = trip.times.first_byte.filter(|_| !waited);
        let ended = (self.clock)();
        let started = match waited {
            true => started.after(ours).min(ended),
            false => started,
        };
        Ok(FetchResult {
            outcome,
            started,
            sent: trip.times.sent,
            first_byte,
            ended,
            wire_bytes: trip.wire_bytes,
            connected: trip.connected,
            exchange,
        })
    }

    async fn ask(&self, trip: &mut Trip<'_>) -> Result<Answer, Unanswered> {
        let (ip, url) = (trip.request.ip, &trip.request.url);
        self.connector.check(ip, url.port())?;
        let address = SocketAddr::new(ip, url.port());
        let place = self.pool.place(address, url);
        while let Some(mut link) = self.pool.take(place) {
            // Checked again, for the policy is about every fetch and not about every connection.
            self.connector.check(link.peer, url.port())?;
            if let Wire::Http1(http1) = &mut link.wire
                && !http1.is_ready().await
            {
                continue;
            }
            match self.ask_again(&mut link, trip).await? {
                // The server closed it meanwhile: that is no answer, and a new connection is due. Unless
                // gaps are counted: it may have seen the request, and would see the next too early.
                (Err(Failure::Unanswered), _)
                    if !trip.request.announce || trip.times.sent.is_none() =>
                {
                    break;
                }
                (result, reusable) => {
                    match (&link.wire, reusable) {
                        (Wire::Http1(_), true) => self.pool.park(place, link),
                        (Wire::Http1(_), false) => {}
                        // A shared connection has not left the pool.
                        (Wire::Http2(_), true) => {}
                        (Wire::Http2(_), false) => self.pool.discard(place),
                    }
                    return result.map_err(Unanswered::from);
                }
            }
        }
        let mut link = self.connect(address, trip).await?;
        trip.times = Times::default();
        let (result, reusable) = self.exchange(&mut link, trip).await?;
        trip.wire_bytes = link.count.get();
        if reusable {
            self.pool.park(place, link);
        }
        result.map_err(Unanswered::from)
    }

    /// Asks on a connection that was used before.
    async fn ask_again(&self, link: &mut Link, trip: &mut Trip<'_>) -> Result<Asked, Outcome> {
        trip.connected = Some(link.peer);
        let before = link.count.get();
        let (result, reusable) = self.exchange(link, trip).await?;
        trip.wire_bytes = match (&link.wire, &result) {
            (Wire::Http1(_), _) => link.count.get() - before,
            // What a shared connection read cannot be divided among its fetches: the rendered answer
            // stands for it.
            (Wire::Http2(_), Ok(answer)) => {
                let spooled = answer.spooled.as_ref().map_or(0, |it| it.size());
                answer.response.len() as u64 + spooled
            }
            (Wire::Http2(_), Err(_)) => 0,
        };
        Ok((result, reusable))
    }

    async fn connect(&self, address: SocketAddr, trip: &mut Trip<'_>) -> Result<Link, Outcome> {
        let mut connected = None;
        let url = &trip.request.url;
        let goal = Goal {
            address,
            url,
            timeout: trip.limits.connect_timeout,
        };
        let link = self
            .connector
            .connect(goal, &mut trip.deadline, &mut connected, &self.pool)
            .await;
        if let Some((peer, count)) = &connected {
            trip.connected = Some(*peer);
            trip.wire_bytes = count.get();
        }
        link
    }

    /// Holds the exchange on `link`. The error is a URL that no request can ask for.
    async fn exchange(&self, link: &mut Link, trip: &mut Trip<'_>) -> Result<Asked, Outcome> {
        let share = match trip.share.take() {
            Some(share) => share,
            // The one before was used on a connection that came to nothing.
            None => trip.deadline.pause(self.options.memory.start()).await,
        };
        let discard = self.options.discard_decoded;
        let errand = Errand {
            limits: trip.limits,
            request: trip.request,
            deadline: &mut trip.deadline,
            gather: Gather::new(share, discard, self.options.spool.is_some()),
            spool_dir: self.options.spool.as_ref(),
            spool: None,
            walk: ChunkWalk::new(),
            ours: &mut trip.ours,
            times: &mut trip.times,
            gate: trip.gate,
            unannounced: &mut trip.unannounced,
            max_body: 0,
            discard,
        };
        let unaskable = || {
            let class = OutcomeClass::FailedProtocol;
            Outcome::because(class, "no request can be written for this URL")
        };
        Ok(match &mut link.wire {
            Wire::Http1(http1) => {
                let request = self.http1_request(trip.request).ok_or_else(unaskable)?;
                http1.exchange(request, errand).await
            }
            Wire::Http2(http2) => {
                let request = self.http2_request(trip.request).ok_or_else(unaskable)?;
                let result = http2.exchange(request, errand, &*self.clock).await;
                (result, http2.is_ready())
            }
        })
    }

    async fn exchanged(
        &self,
        asked: &FetchRequest,
        answer: Answer,
        deadline: &mut Deadline,
    ) -> Exchange {
        let limits = self.limits(asked);
        let body = match &answer.spooled {
            Some(spooled) if !self.options.discard_decoded && is_text(&answer.headers) => {
                deadline
                    .pause(self.read_back(&answer, spooled, limits))
                    .await
            }
            Some(_) => Bytes::new(),
            None => answer.gathered.decoded.unwrap_or(answer.raw),
        };
        let read = body.len().min(limits.max_decoded_bytes);
        Exchange {
            method: asked.method,
            request: match self.credentials(asked) {
                Some(_) => without_credentials(&answer.request),
                None => answer.request,
            },
            response: answer.response,
            spooled: answer.spooled,
            head_len: answer.head_len,
            status: answer.status,
            headers: answer.headers,
            body: body.slice(..read),
            protocol: answer.protocol,
            truncated: answer.cut,
        }
    }

    /// True when a document is whole, but its reader gets only the beginning.
    fn is_read_in_part(&self, answer: &Answer, outcome: &Outcome, limits: &Limits) -> bool {
        let on_disk = answer.spooled.as_ref().map_or(0, |it| it.size());
        let size = on_disk.max(answer.raw.len() as u64);
        let plain = answer.gathered.decoded.is_none();
        let beyond = size > limits.max_decoded_bytes as u64;
        outcome.class == OutcomeClass::Success
            && outcome.reason.is_empty()
            && (answer.gathered.over || (plain && beyond && is_text(&answer.headers)))
            && !self.options.discard_decoded
    }

    /// The beginning of a body on disk, as its reader wants it. One at a time, for it is in memory up to three
    /// times: as it came, without its framing, and decoded. What cannot be read is not read for links.
    async fn read_back(&self, answer: &Answer, spooled: &Arc<Spooled>, limits: &Limits) -> Bytes {
        let Ok(place) = Arc::clone(&self.reading).acquire_owned().await else {
            return Bytes::new();
        };
        let Ok(wire) =
            spool::read_back(spooled, limits.max_decoded_bytes.saturating_add(FRAMING)).await
        else {
            return Bytes::new();
        };
        let message: Bytes = [&answer.response, wire.as_slice()].concat().into();
        drop(wire);
        let read = reread(Bytes::new(), message, answer.protocol, answer.cut, limits);
        let body = read.map(|read| read.body).unwrap_or_default();
        Bytes::from_owner(Read {
            body,
            _place: place,
        })
    }

    fn http1_request(&self, asked: &FetchRequest) -> Option<Request<Empty<Bytes>>> {
        let url = &asked.url;
        let mut request = Request::new(Empty::new());
        *request.method_mut() = method(asked);
        *request.uri_mut() = Uri::from(PathAndQuery::try_from(url.target()).ok()?);
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(HOST, HeaderValue::from_str(url.authority()).ok()?);
        self.add_headers(asked, &mut headers);
        *request.headers_mut() = headers;
        Some(request)
    }

    fn http2_request(&self, asked: &FetchRequest) -> Option<Request<Empty<Bytes>>> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = method(asked);
        *request.uri_mut() = Uri::try_from(asked.url.as_str()).ok()?;
        self.add_headers(asked, request.headers_mut());
        Some(request)
    }

    /// What its host has of its own.
    fn own(&self, asked: &FetchRequest) -> Option<&HostRequest> {
        self.options.hosts.get(asked.url.host())
    }

    /// How much is taken from its host.
    fn limits(&self, asked: &FetchRequest) -> &Limits {
        let own = self.own(asked).and_then(|own| own.limits.as_deref());
        own.unwrap_or(&self.options.limits)
    }

    /// What its host is to know us by. Each request has those of its own host, so that none go along with a redirect.
    fn credentials(&self, asked: &FetchRequest) -> Option<&HeaderValue> {
        let own = self.own(asked)?.credentials.as_ref()?;
        let secret = asked.url.scheme() == Scheme::Https || own.over_http;
        secret.then_some(&own.value)
    }

    fn add_headers(&self, asked: &FetchRequest, headers: &mut HeaderMap) {
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT, ACCEPTED);
        headers.insert(ACCEPT_ENCODING, ENCODINGS);
        if let Some(own) = self.own(asked) {
            for (name, value) in &own.headers {
                headers.insert(name, value.clone());
            }
        }
        if let Some(value) = self.credentials(asked) {
            headers.insert(AUTHORIZATION, value.clone());
        }
        let Some(known) = &asked.known else {
            return;
        };
        // Both, because a server may know only one of them; one that knows both goes by the ETag
        // (RFC 9110, 13.2.2). What came as a header can be written as one, save for odd bytes.
        let conditions = [
            (IF_NONE_MATCH, &known.etag),
            (IF_MODIFIED_SINCE, &known.last_modified),
        ];
        for (name, value) in conditions {
            let value = value.as_deref().map(HeaderValue::from_str);
            if let Some(Ok(value)) = value {
                headers.insert(name, value);
            }
        }
    }
}

fn method(asked: &FetchRequest) -> http::Method {
    match asked.method {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
    }
}

/// A request as it went over the wire, for the archive: that credentials were sent is kept, and not which.
fn without_credentials(request: &[u8]) -> Bytes {
    let name = b"authorization:";
    let mut kept = Vec::with_capacity(request.len());
    for line in request.split_inclusive(|byte| *byte == b'\n') {
        match line.get(..name.len()) {
            Some(start) if start.eq_ignore_ascii_case(name) => {
                kept.extend_from_slice(start);
                kept.extend_from_slice(b" (not archived)\r\n");
            }
            _ => kept.extend_from_slice(line),
        }
    }
    kept.into()
}
