//! The outbox: results go out to the store, answers come back, and what is not answered is sent again over
//! the next connection. A store may answer one document before another; records of the same document, the
//! hops of a redirect, are answered in their order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, buf::Chain};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use orbweaver_wire::conversation::random;
use orbweaver_wire::{Answer, Answers, Backoff, Connection, Record, Verdict};

use orbweaver_wire::Place;

/// Records that may be on their way without an answer.
const WINDOW: usize = 256;

/// With records unanswered and nothing heard for so long, the store counts as gone.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a record waits that the store could not take.
const LATER: Duration = Duration::from_secs(1);

/// Where fetches hand in their results. Clones share one link.
#[derive(Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<Outgoing>,
    held: Arc<watch::Sender<usize>>,
}

/// A record on its way.
struct Outgoing {
    doc_id: u32,
    /// Numbers and URLs.
    first: Bytes,
    data: Bytes,
    done: oneshot::Sender<()>,
}

impl Outbox {
    /// Brings a record to the store and returns when it is there, or when the store does not want it.
    pub(super) async fn deliver(&self, record: Record) {
        let Some(head) = record.head() else {
            warn!(
                url = record.url,
                "a result is too large to be sent and is dropped"
            );
            return;
        };
        let size = record.data.len();
        let first = [&head, record.url.as_bytes(), record.new_url.as_bytes()].concat();
        let (done, delivered) = oneshot::channel();
        let outgoing = Outgoing {
            doc_id: record.doc_id,
            first: first.into(),
            data: record.data,
            done,
        };
        self.held.send_modify(|held| *held += size);
        if self.queue.send(outgoing).await.is_ok() {
            let _ = delivered.await;
        }
        self.held
            .send_modify(|held| *held = held.saturating_sub(size));
    }

    /// Bytes of data that the store has not acknowledged.
    pub(super) fn held(&self) -> usize {
        *self.held.borrow()
    }

    /// Waits until not more than `most` bytes are held.
    pub(super) async fn room(&self, most: usize) {
        let _ = self.held.subscribe().wait_for(|held| *held <= most).await;
    }
}

/// A link, and the task that works it. There are never more records in it than places for fetches.
pub(super) fn link(store: Place, places: usize) -> (Outbox, impl Future<Output = ()>) {
    let (queue, receiver) = mpsc::channel(places);
    let outbox = Outbox {
        queue,
        held: Arc::new(watch::channel(0).0),
    };
    let link = Link {
        store,
        queue: receiver,
        waiting: VecDeque::new(),
        sent: VecDeque::new(),
        later: VecDeque::new(),
        answered: 0,
    };
    (outbox, link.run())
}

struct Link {
    store: Place,
    queue: mpsc::Receiver<Outgoing>,
    /// To be sent. This and the next two hold a record for each place at most, together.
    waiting: VecDeque<Outgoing>,
    /// Sent, or being sent, and not answered, oldest first.
    sent: VecDeque<Outgoing>,
    /// To be sent again at their time.
    later: VecDeque<(Instant, Outgoing)>,
    /// Answers so far.
    answered: u64,
}

/// A connection at work.
struct Talk {
    reader: ReadHalf<Connection>,
    writer: WriteHalf<Connection>,
    answers: Answers,
    /// What is being written.
    out: Option<Chain<Bytes, Bytes>>,
    unflushed: bool,
    /// When something last moved.
    moved: Instant,
}

impl Link {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let host = self.store.host.clone();
            match self.store.port.connect(&host, self.store.number).await {
                Ok(connection) => {
                    info!(store = %connection.peer(), again = self.sent.len(), "connected to the store");
                    let answered = self.answered;
                    let why = self.talk(connection).await;
                    warn!(
                        why,
                        unanswered = self.sent.len(),
                        "connection to the store lost"
                    );
                    // A store that takes connections and drops them is no better than none.
                    if self.answered > answered {
                        backoff.reset();
                    }
                }
                Err(error) => warn!(%error, "no connection to the store; retrying"),
            }
            // Unanswered ones first, in their order.
            while let Some(outgoing) = self.sent.pop_back() {
                self.waiting.push_front(outgoing);
            }
            tokio::time::sleep(backoff.next(random())).await;
        }
    }

    /// Sends and hears until the connection is of no use, and says why.
    async fn talk(&mut self, connection: Connection) -> String {
        let (reader, writer) = tokio::io::split(connection);
        let mut talk = Talk {
            reader,
            writer,
            answers: Answers::new(),
            out: None,
            unflushed: false,
            moved: Instant::now(),
        };
        loop {
            if let Err(why) = self.step(&mut talk).await {
                return why;
            }
        }
    }

    /// Waits for one thing to happen, and does what follows from it.
    async fn step(&mut self, talk: &mut Talk) -> Result<(), String> {
        self.load(talk);
        let mut piece = [0; 4096];
        let later = self.later.front().map_or(talk.moved, |(at, _)| *at);
        let silent = talk.moved + SILENCE;
        let failed = |error: std::io::Error| error.to_string();
        tokio::select! {
            read = talk.reader.read(&mut piece) => match read.map_err(failed)? {
                0 => return Err("closed".into()),
                read => {
                    talk.moved = Instant::now();
                    talk.answers.feed(piece.get(..read).unwrap_or_default());
                    self.hear(talk)?;
                }
            },
            wrote = write(&mut talk.writer, &mut talk.out, talk.unflushed) => {
                wrote.map_err(failed)?;
                talk.moved = Instant::now();
                talk.unflushed = match &talk.out {
                    Some(out) if !out.has_remaining() => {
                        talk.out = None;
                        true
                    }
                    Some(_) => true,
                    None => false,
                };
            },
            Some(outgoing) = self.queue.recv() => self.waiting.push_back(outgoing),
            () = tokio::time::sleep_until(later), if !self.later.is_empty() => {
                let due = self.later.pop_front();
                self.waiting.extend(due.map(|(_, outgoing)| outgoing));
            }
            () = tokio::time::sleep_until(silent), if !self.sent.is_empty() => {
                return Err(format!("no answer for {} s", SILENCE.as_secs()));
            }
        }
        Ok(())
    }

    /// Begins to write the next record, when the one before is written.
    fn load(&mut self, talk: &mut Talk) {
        if talk.out.is_some() || self.sent.len() >= WINDOW {
            return;
        }
        if let Some(outgoing) = self.waiting.pop_front() {
            if self.sent.is_empty() {
                // The silence counts from the first that waits for an answer.
                talk.moved = Instant::now();
            }
            talk.out = Some(outgoing.first.clone().chain(outgoing.data.clone()));
            self.sent.push_back(outgoing);
        }
    }

    fn hear(&mut self, talk: &mut Talk) -> Result<(), String> {
        while let Some(answer) = talk.answers.next() {
            let answer = answer.map_err(|bytes| format!("not an answer: {bytes:02x?}"))?;
            let whole = self.sent.len() - usize::from(talk.out.is_some());
            let asked = self.sent.iter().take(whole);
            let place = (asked.map(|outgoing| outgoing.doc_id)).position(|id| id == answer.doc_id);
            let outgoing = place.and_then(|place| self.sent.remove(place));
            let outgoing = outgoing.ok_or("an answer without a record")?;
            self.settle(outgoing, answer);
        }
        Ok(())
    }

    fn settle(&mut self, outgoing: Outgoing, answer: Answer) {
        self.answered += 1;
        match answer.verdict {
            Verdict::Stored | Verdict::AlreadyHad => {}
            Verdict::Refused => warn!(doc_id = answer.doc_id, "the store refused a result"),
            Verdict::TryLater => {
                self.later.push_back((Instant::now() + LATER, outgoing));
                return;
            }
        }
        // Whoever fetched it waits for this.
        let _ = outgoing.done.send(());
    }
}

/// Writes some of what is to be written, or flushes what was, or waits forever when there is neither.
/// Dropping the future loses nothing.
async fn write(
    writer: &mut WriteHalf<Connection>,
    out: &mut Option<Chain<Bytes, Bytes>>,
    unflushed: bool,
) -> std::io::Result<()> {
    match out {
        Some(out) => match writer.write_buf(out).await? {
            0 => Err(std::io::ErrorKind::WriteZero.into()),
            _ => Ok(()),
        },
        None if unflushed => writer.flush().await,
        None => std::future::pending().await,
    }
}
