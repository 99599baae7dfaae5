//! The spider: it takes an order, holds one exchange, and brings back a result, whatever happens.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Empty;
use orbweaver_model::{
    Clock, Exchange, FetchResult, Order, Outcome, OutcomeClass, Timestamp, TransId, Truncation,
};

use crate::connect::{Connector, Link, Wire};
use crate::deadline::Deadline;
use crate::error::SpiderError;
use crate::exchange::{Announce, Answer, Errand, Failure, Times};
use crate::gather::Gather;
use crate::options::SpiderOptions;
use crate::outcome_of;
use crate::pool::Pool;
use crate::tls;

/// Pages first, anything else too: servers choose what to send by this.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// What `decode` can undo.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Fetches. It keeps nothing but open connections; one serves any number of fetches at once.
pub struct Spider {
    options: SpiderOptions,
    user_agent: HeaderValue,
    connector: Connector,
    pool: Pool,
    clock: Clock,
}

/// One fetch under way.
struct Trip<'a> {
    order: &'a Order,
    announce: Announce<'a>,
    unannounced: bool,
    deadline: Deadline,
    times: Times,
    connected: Option<IpAddr>,
    wire_bytes: u64,
}

/// What came of asking, and whether the connection can be asked again.
type Asked = (Result<Answer, Failure>, bool);

impl Spider {
    /// A spider that tells the time by `clock`.
    pub fn new(options: SpiderOptions, clock: Clock) -> Result<Self, SpiderError> {
        let user_agent =
            HeaderValue::from_str(&options.user_agent).map_err(|_| SpiderError::UserAgent)?;
        let tls = tls::client_config(&options.tls)?;
        let policy = options.policy.clone();
        Ok(Self {
            user_agent,
            connector: Connector::new(policy, tls, &options.limits, Arc::clone(&clock)),
            pool: Pool::new(options.max_idle_connections, options.idle_keep),
            options,
            clock,
        })
    }

    /// Carries an order out. Never fails: whatever happened is the result's outcome. `announce` is called
    /// once, when the request has been written, if the order asks for it. Dropping the future ends the
    /// fetch and its connection.
    pub async fn fetch(
        &self,
        order: Order,
        announce: &(dyn Fn(TransId, Timestamp) + Sync),
    ) -> FetchResult {
        let started = (self.clock)();
        let mut trip = Trip {
            order: &order,
            announce,
            unannounced: order.announce,
            deadline: Deadline::new(self.options.limits.total_timeout),
            times: Times::default(),
            connected: None,
            wire_bytes: 0,
        };
        let (outcome, exchange) = match self.ask(&mut trip).await {
            Ok(answer) => {
                let outcome = outcome_of::answer(&answer, &order);
                (outcome, Some(exchange(answer)))
            }
            Err(outcome) => (outcome, None),
        };
        FetchResult {
            outcome,
            started,
            sent: trip.times.sent,
            first_byte: trip.times.first_byte,
            ended: (self.clock)(),
            wire_bytes: trip.wire_bytes,
            connected: trip.connected,
            exchange,
            order,
        }
    }

    async fn ask(&self, trip: &mut Trip<'_>) -> Result<Answer, Outcome> {
        let (ip, url) = (trip.order.ip, trip.order.url());
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
                    if !trip.order.announce || trip.times.sent.is_none() =>
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
                    return result.map_err(outcome_of::failure);
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
        result.map_err(outcome_of::failure)
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
            (Wire::Http2(_), Ok(answer)) => answer.response.len() as u64,
            (Wire::Http2(_), Err(_)) => 0,
        };
        Ok((result, reusable))
    }

    async fn connect(&self, address: SocketAddr, trip: &mut Trip<'_>) -> Result<Link, Outcome> {
        let mut connected = None;
        let url = trip.order.url();
        let link = self
            .connector
            .connect(address, url, &mut trip.deadline, &mut connected)
            .await;
        if let Some((peer, count)) = &connected {
            trip.connected = Some(*peer);
            trip.wire_bytes = count.get();
        }
        link
    }

    /// Holds the exchange on `link`. The error is a URL that no request can ask for.
    async fn exchange(&self, link: &mut Link, trip: &mut Trip<'_>) -> Result<Asked, Outcome> {
        let errand = Errand {
            limits: &self.options.limits,
            purpose: trip.order.purpose,
            deadline: &mut trip.deadline,
            gather: Gather::new(self.options.memory.share()),
            times: &mut trip.times,
            announce: trip.announce,
            trans: trip.order.trans,
            unannounced: &mut trip.unannounced,
            max_body: 0,
        };
        let unaskable = || {
            let class = OutcomeClass::FailedProtocol;
            Outcome::because(class, "no request can be written for this URL")
        };
        Ok(match &mut link.wire {
            Wire::Http1(http1) => {
                let request = self.http1_request(trip.order).ok_or_else(unaskable)?;
                http1.exchange(request, errand).await
            }
            Wire::Http2(http2) => {
                let request = self.http2_request(trip.order).ok_or_else(unaskable)?;
                let result = http2.exchange(request, errand, &*self.clock).await;
                (result, http2.is_ready())
            }
        })
    }

    fn http1_request(&self, order: &Order) -> Option<Request<Empty<Bytes>>> {
        let url = order.url();
        let mut request = Request::new(Empty::new());
        *request.method_mut() = self.method(order);
        *request.uri_mut() = Uri::from(PathAndQuery::try_from(url.target()).ok()?);
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(HOST, HeaderValue::from_str(url.authority()).ok()?);
        self.add_headers(order, &mut headers);
        *request.headers_mut() = headers;
        Some(request)
    }

    fn http2_request(&self, order: &Order) -> Option<Request<Empty<Bytes>>> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = self.method(order);
        *request.uri_mut() = Uri::try_from(order.url().as_str()).ok()?;
        self.add_headers(order, request.headers_mut());
        Some(request)
    }

    /// A repeated attempt asks for the document: either HEAD failed, or it told of a change.
    fn method(&self, order: &Order) -> Method {
        let candidate = &order.candidate;
        match self.options.head_first && candidate.attempts == 0 && candidate.revisit.is_some() {
            true => Method::HEAD,
            false => Method::GET,
        }
    }

    fn add_headers(&self, order: &Order, headers: &mut HeaderMap) {
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT, ACCEPTED);
        headers.insert(ACCEPT_ENCODING, ENCODINGS);
        let Some(before) = &order.candidate.revisit else {
            return;
        };
        // Both, because a server may know only one of them; one that knows both goes by the ETag
        // (RFC 9110, 13.2.2). What came as a header can be written as one, save for odd bytes.
        let conditions = [
            (IF_NONE_MATCH, &before.etag),
            (IF_MODIFIED_SINCE, &before.last_modified),
        ];
        for (name, value) in conditions {
            let value = value.as_deref().map(HeaderValue::from_str);
            if let Some(Ok(value)) = value {
                headers.insert(name, value);
            }
        }
    }
}

fn exchange(answer: Answer) -> Exchange {
    let over = answer.gathered.over.then_some(Truncation::Length);
    Exchange {
        request: answer.request,
        response: answer.response,
        head_len: answer.head_len,
        status: answer.status,
        headers: answer.headers,
        body: answer.gathered.decoded.unwrap_or(answer.raw),
        protocol: answer.protocol,
        truncated: answer.cut.or(over),
    }
}
