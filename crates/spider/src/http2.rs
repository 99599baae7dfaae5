//! One HTTP/2 connection, shared by the fetches of its origin.
//!
//! HTTP/2 exists over TLS only. The wire holds frames and compressed headers, which no archive format
//! can keep, so request and response are rendered as HTTP/1.1 messages. Unlike an HTTP/1 connection
//! this one is driven by a task, for it belongs to no single fetch; the task ends with the connection.

use std::future::poll_fn;
use std::io::Write;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::response::Parts;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::Empty;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use orbweaver_model::{Limits, Protocol, Timestamp, Truncation};
use tokio::sync::watch;

use crate::exchange::{Answer, Errand, Failure};
use crate::meter::Meter;
use crate::spool::{SHORT_BYTES, SPOOL_BYTES};
use crate::stream::{Counted, Stream};

/// What a server may send before it must wait for us, per stream and per connection: the memory that
/// h2 may hold of one origin beyond what the fetches took.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 128 << 10;

/// How long a connection that nobody wants any more may take to say goodbye. A server that does not
/// read would keep it, and its socket, forever.
const GOODBYE: Duration = Duration::from_secs(2);

/// An open connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: SendRequest<Empty<Bytes>>,
    shared: Arc<SharedConnection>,
}

/// What the clones share. The connection's tasks hear when the last of them is gone.
struct SharedConnection {
    /// Nothing more is to be asked here.
    spoiled: AtomicBool,
    meter: Meter,
    _wanted: watch::Sender<()>,
}

/// Runs the tasks of one connection.
#[derive(Clone)]
struct Tasks {
    wanted: watch::Receiver<()>,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut wanted = self.wanted.clone();
        tokio::spawn(async move {
            let mut task = pin!(task);
            tokio::select! {
                () = &mut task => {}
                _gone = wanted.changed() => {
                    let _ended = tokio::time::timeout(GOODBYE, task).await;
                }
            }
        });
    }
}

/// hyper's HTTP/2, with bounded windows and heads.
fn builder(limits: &Limits, tasks: Tasks) -> Builder<Tasks> {
    let mut builder = Builder::new(tasks);
    builder
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(64 << 10);
    builder
}

impl Http2 {
    /// Speaks HTTP/2 over `stream`.
    pub(crate) async fn open(limits: &Limits, stream: Stream) -> Option<Self> {
        let (wanted, receiver) = watch::channel(());
        let tasks = Tasks { wanted: receiver };
        let builder = builder(limits, tasks.clone());
        let meter = Meter::new(CONNECTION_WINDOW);
        let stream = Counted::new(stream, meter.clone());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.ok()?;
        tasks.execute(async move {
            // How it ends is seen by those who use it.
            let _ended = connection.await;
        });
        let shared = Arc::new(SharedConnection {
            spoiled: AtomicBool::new(false),
            meter,
            _wanted: wanted,
        });
        Some(Self { sender, shared })
    }

    /// True while the connection can take a request.
    pub(crate) fn is_ready(&self) -> bool {
        self.sender.is_ready() && !self.shared.spoiled.load(Ordering::Relaxed)
    }

    /// Sends a request and reads the answer. When that is given up, the connection is spoiled: whether
    /// the server ever stops to send what is no longer wanted, or is still there, nobody knows.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Empty<Bytes>>,
        errand: Errand<'_>,
        now: &(dyn Fn() -> Timestamp + Sync),
    ) -> Result<Answer, Failure> {
        let result = self.converse(request, errand, now).await;
        let given_up = match &result {
            Ok(answer) => matches!(answer.cut, Some(Truncation::Length | Truncation::Time)),
            Err(failure) => matches!(failure, Failure::Timeout(_)),
        };
        if given_up {
            self.shared.spoiled.store(true, Ordering::Relaxed);
        }
        result
    }

    async fn converse(
        &mut self,
        request: Request<Empty<Bytes>>,
        mut errand: Errand<'_>,
        now: &(dyn Fn() -> Timestamp + Sync),
    ) -> Result<Answer, Failure> {
        let rendered = render_request(&request);
        self.shared.meter.begin(errand.limits.max_header_bytes);
        errand.deadline.step(errand.limits.header_timeout);
        let (head, mut body) = self.head(request, &mut errand, now).await?.into_parts();
        errand.times.first_byte = Some(now());
        if head.status.is_informational() {
            return Err(Failure::Protocol("interim response instead of a final one"));
        }
        errand.begin_body(head.status.as_u16(), &head.headers);
        let mut record = render_head(&head);
        let head_len = record.len();
        if head_len > errand.limits.max_header_bytes
            || head.headers.len() > errand.limits.max_headers
        {
            return Err(Failure::Protocol("response head too large"));
        }
        let meter = &self.shared.meter;
        let mut cut = read_body(&mut body, &mut record, head_len, &mut errand, meter)
            .await
            .err();
        if errand.spool.is_some() && record.len() > head_len {
            let rest = record.split_off(head_len).freeze();
            cut = cut.or(errand.spill(rest).await.err());
        }
        Ok(answer(
            rendered,
            head,
            record.freeze(),
            head_len,
            cut,
            errand,
        ))
    }

    async fn head(
        &mut self,
        request: Request<Empty<Bytes>>,
        errand: &mut Errand<'_>,
        now: &(dyn Fn() -> Timestamp + Sync),
    ) -> Result<http::Response<Incoming>, Failure> {
        let timeout = Failure::Timeout("no response in time");
        match errand.deadline.bound(self.sender.ready()).await {
            Some(Ok(())) => {}
            Some(Err(_)) => return Err(Failure::Unanswered),
            None => return Err(timeout),
        }
        errand.may_send()?;
        let mut response = pin!(self.sender.send_request(request));
        // The first poll hands the request to the connection's task, which writes it at once.
        let early = poll_fn(|cx| Poll::Ready(response.as_mut().poll(cx))).await;
        let sent = now();
        errand.times.sent = Some(sent);
        errand.announce(sent);
        let result = match early {
            Poll::Ready(result) => Some(result),
            Poll::Pending => errand.deadline.bound(response).await,
        };
        match result {
            Some(Ok(response)) => Ok(response),
            Some(Err(_)) if self.shared.meter.is_tripped() => {
                Err(Failure::Protocol("too many frames for one response"))
            }
            Some(Err(_)) => Err(Failure::Unanswered),
            None => Err(timeout),
        }
    }
}

async fn read_body(
    body: &mut Incoming,
    record: &mut BytesMut,
    head_len: usize,
    errand: &mut Errand<'_>,
    meter: &Meter,
) -> Result<(), Truncation> {
    let limit = errand.max_body_end(head_len);
    // Bytes of the body so far.
    let mut given = 0;
    loop {
        errand.deadline.step(errand.limits.idle_timeout);
        let piece = poll_fn(|cx| poll_data(body, cx));
        let piece = match errand.deadline.bound(piece).await {
            Some(Some(Ok(piece))) => piece,
            Some(Some(Err(_))) if meter.is_tripped() => return Err(Truncation::Length),
            Some(Some(Err(_))) => return Err(Truncation::Disconnect),
            Some(None) => return Ok(()),
            None => return Err(Truncation::Time),
        };
        // What adds nothing meets no limit on bytes, and what always comes at once none on time.
        if piece.is_empty() && errand.deadline.is_over() {
            return Err(Truncation::Time);
        }
        meter.earn(piece.len());
        let room = limit - head_len - given;
        record.put_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            return Err(Truncation::Length);
        }
        given += piece.len();
        if errand.should_spill(record.len(), head_len + SPOOL_BYTES) || errand.gather.wants_spill()
        {
            errand.spill(record.split_off(head_len).freeze()).await?;
        }
        while record.len() > errand.gather.allowance() {
            if errand.gather.try_grow() {
                continue;
            }
            match errand.should_spill(record.len(), head_len + SHORT_BYTES) {
                true => errand.spill(record.split_off(head_len).freeze()).await?,
                false => errand.gather.grow(errand.deadline).await,
            }
        }
        errand.earn_time(given);
        errand
            .gather
            .take(piece, record.len(), errand.deadline)
            .await?;
    }
}

fn poll_data(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
    loop {
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
            return Poll::Pending;
        };
        match frame {
            Some(Ok(frame)) => {
                // Trailers are passed over.
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}

fn answer(
    request: Bytes,
    head: Parts,
    record: Bytes,
    head_len: usize,
    cut: Option<Truncation>,
    mut errand: Errand<'_>,
) -> Answer {
    let raw = record.slice(head_len..);
    let spooled = errand.spool.take().map(|spool| {
        let len = spool.len();
        spool.finish(len)
    });
    let raw_len = raw.len() + usize::from(spooled.is_some());
    let recorded = record.len();
    let (response, gathered) = errand.gather.finish(record, recorded, raw_len);
    Answer {
        protocol: Protocol::Http2,
        request,
        response,
        head_len,
        status: head.status.as_u16(),
        headers: head.headers,
        raw,
        gathered,
        spooled,
        cut,
    }
}

/// The request as HTTP/1.1 would have sent it.
fn render_request(request: &Request<Empty<Bytes>>) -> Bytes {
    let mut out = BytesMut::with_capacity(512).writer();
    let target = request.uri().path_and_query().map_or("/", |it| it.as_str());
    let host = request.uri().authority().map_or("", |it| it.as_str());
    // Writing to memory does not fail.
    let _written = write!(
        out,
        "{} {target} HTTP/1.1\r\nHost: {host}\r\n",
        request.method()
    );
    let mut out = out.into_inner();
    render_headers(request.headers(), &mut out);
    out.freeze()
}

/// The head as HTTP/1.1 would have sent it.
fn render_head(head: &Parts) -> BytesMut {
    let mut out = BytesMut::with_capacity(1024).writer();
    let reason = StatusCode::canonical_reason(&head.status).unwrap_or_default();
    let _written = write!(out, "HTTP/1.1 {} {reason}\r\n", head.status.as_str());
    let mut out = out.into_inner();
    render_headers(&head.headers, &mut out);
    out
}

fn render_headers(headers: &HeaderMap, out: &mut BytesMut) {
    for (name, value) in headers {
        // A rendering must not promise a framing that the rendered body does not have.
        if name == header::TRANSFER_ENCODING {
            continue;
        }
        out.put_slice(name.as_str().as_bytes());
        out.put_slice(b": ");
        out.put_slice(value.as_bytes());
        out.put_slice(b"\r\n");
    }
    out.put_slice(b"\r\n");
}
