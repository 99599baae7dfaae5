//! A URL server on the line: its orders are read as they come, for it has to hear of each.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use orbweaver_wire::conversation::write_all_of;
use orbweaver_wire::line::{BadLine, LineTooLong, read_order};
use orbweaver_wire::{
    Complaints, Connection, Dialect, FromSpider, Lines, OrderLine, Terms, ToSpider, Word, extension,
};

use super::super::acceptor::RefusalLog;
use super::fetches::Fetches;
use super::orders::Peer;

/// URL servers that are connected, among which the places are divided in pull mode.
static CONNECTED: AtomicUsize = AtomicUsize::new(0);

/// How long a URL server that has offered the extension may take to agree: it does so at once. Orders wait meanwhile.
const AGREEMENT: Duration = Duration::from_secs(5);

/// Orders that wait for an agreement. A URL server of ours sends sixteen before it knows anything of a spider.
const MAX_HELD: usize = 1024;

/// Talks with a URL server until one of both is gone.
pub(super) async fn converse(
    connection: Connection,
    fetches: Arc<Fetches>,
    refusals: RefusalLog,
    mut stopped: watch::Receiver<bool>,
) {
    let address = connection.peer();
    CONNECTED.fetch_add(1, Ordering::Relaxed);
    let (reader, writer) = tokio::io::split(connection);
    let (words, queue) = mpsc::channel(2 * fetches.max_orders + 64);
    let dialect = fetches.dialect;
    let peer = Arc::new(Peer::new(words));
    // Held weakly: the writer ends when nobody is left who has something to say.
    let spelling = Arc::downgrade(&peer);
    let writing = tokio::spawn(write_all_of(queue, writer, move |word: Word, out| {
        let extended = spelling
            .upgrade()
            .is_some_and(|peer| peer.is_extended.load(Ordering::Relaxed));
        word.write(dialect, extended, out);
    }));
    let mut listener = Listener {
        reader,
        address,
        peer,
        lines: Lines::new(),
        complaints: Complaints::default(),
        credit: 0,
        is_known: false,
        agreement: Agreement::Open,
        terms: HashMap::new(),
        fetches,
    };
    let ended = tokio::select! {
        ended = listener.listen() => ended,
        // The other half of the connection failed, or the peer does not read.
        written = writing => Err(match written {
            Ok(Err(error)) => error.into(),
            _ => anyhow::anyhow!("closed"),
        }),
        _ = stopped.wait_for(|stop| *stop) => {
            // What is under way is still answered: the writer goes on until the last waiter is gone.
            CONNECTED.fetch_sub(1, Ordering::Relaxed);
            return;
        }
    };
    CONNECTED.fetch_sub(1, Ordering::Relaxed);
    let (open, dropped) = (
        listener.peer.open.load(Ordering::Relaxed),
        listener.complaints.total(),
    );
    match ended {
        Err(error) if refusals.knows(&error) => {}
        // Nobody in particular.
        Ok(()) if !listener.is_known => {}
        Ok(()) => info!(peer = %address, open, dropped, "URL server disconnected"),
        Err(error) => {
            warn!(peer = %address, open, dropped, why = %error, "connection to the URL server lost")
        }
    }
}

/// How far both sides have come in agreeing on the extension.
enum Agreement {
    /// No order has come yet.
    Open,
    /// The URL server knows it and has been told that we do. What it has ordered waits until it has said under which
    /// terms.
    Offered {
        held: Vec<OrderLine>,
        until: Instant,
    },
    /// Both speak it.
    Agreed,
    /// The document is spoken, and nothing else.
    Plain,
}

/// A line of a URL server.
enum Said {
    /// An order, and with `true` in the spelling that offers the extension.
    Order(OrderLine, bool),
    /// A word of the extension.
    Extended(ToSpider),
    /// A line that makes no sense.
    Nonsense(BadLine),
}

struct Listener {
    reader: ReadHalf<Connection>,
    address: SocketAddr,
    peer: Arc<Peer>,
    lines: Lines,
    complaints: Complaints,
    /// Orders that were requested with GET and have not arrived.
    credit: usize,
    /// It has said something that is of the protocol.
    is_known: bool,
    agreement: Agreement,
    /// The terms of orders that follow, or that wait for an agreement; as many as there can be orders.
    terms: HashMap<u64, Terms>,
    fetches: Arc<Fetches>,
}

impl Listener {
    async fn listen(&mut self) -> anyhow::Result<()> {
        let peer = Arc::clone(&self.peer);
        let mut piece = vec![0; 16 << 10];
        loop {
            self.ask();
            let until = match &self.agreement {
                Agreement::Offered { until, .. } => Some(*until),
                _ => None,
            };
            let read = tokio::select! {
                read = self.reader.read(&mut piece) => read?,
                // A place is free, or there may be room again: time to ask for more.
                () = peer.freed.notified(), if self.fetches.dialect == Dialect::Pull => continue,
                () = tokio::time::sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    self.agree(false).await;
                    continue;
                }
            };
            if read == 0 {
                return Ok(());
            }
            if !std::mem::replace(&mut self.is_known, true) {
                info!(peer = %self.address, "URL server connected");
            }
            self.lines.feed(piece.get(..read).unwrap_or_default());
            while let Some(said) = self.next()? {
                self.hear(said).await;
            }
        }
    }

    fn next(&mut self) -> Result<Option<Said>, LineTooLong> {
        let Some(line) = self.lines.next()? else {
            return Ok(None);
        };
        Ok(Some(match ToSpider::read(line) {
            Some(Ok(said)) => Said::Extended(said),
            Some(Err(bad)) => Said::Nonsense(bad),
            None => match read_order(line) {
                Ok(order) => Said::Order(order, extension::is_offer(line)),
                Err(bad) => Said::Nonsense(bad),
            },
        }))
    }

    async fn hear(&mut self, said: Said) {
        match said {
            Said::Order(order, offer) => {
                self.credit = self.credit.saturating_sub(1);
                self.hear_order(order, offer).await;
            }
            Said::Extended(said) => self.hear_extended(said).await,
            Said::Nonsense(bad) => {
                self.credit = self.credit.saturating_sub(1);
                self.complain(bad.why);
                // It would be sent again forever.
                if let Some(trans) = bad.trans {
                    let done = Word::Plain(FromSpider::Done(trans));
                    let _ = self.peer.words.send(done).await;
                }
            }
        }
    }

    async fn hear_order(&mut self, order: OrderLine, offer: bool) {
        match &mut self.agreement {
            Agreement::Open if offer => {
                self.peer.is_extended.store(true, Ordering::Relaxed);
                let working = Word::Plain(FromSpider::Working(order.trans));
                self.peer.mention(working);
                self.agreement = Agreement::Offered {
                    held: vec![order],
                    until: Instant::now() + AGREEMENT,
                };
            }
            Agreement::Open => {
                self.agreement = Agreement::Plain;
                self.take(order).await;
            }
            Agreement::Offered { held, .. } => {
                held.push(order);
                if held.len() > MAX_HELD {
                    self.agree(false).await;
                }
            }
            Agreement::Agreed | Agreement::Plain => self.take(order).await,
        }
    }

    async fn hear_extended(&mut self, said: ToSpider) {
        if matches!(self.agreement, Agreement::Open | Agreement::Plain) {
            return self.complain("a message of an extension that was not agreed on");
        }
        match said {
            ToSpider::If(trans, terms) => {
                if self.terms.len() < self.fetches.max_orders + MAX_HELD {
                    self.terms.insert(trans, terms);
                }
            }
            ToSpider::Agreed(version) => self.agree(version == extension::VERSION).await,
            ToSpider::Stop(trans) => self.give_up(trans, false),
            ToSpider::Recall(trans) => self.give_up(trans, true),
        }
    }

    /// The URL server has agreed, or takes too long for one that knows what it has offered: its orders begin.
    async fn agree(&mut self, agreed: bool) {
        let now = match agreed {
            true => Agreement::Agreed,
            false => Agreement::Plain,
        };
        let before = std::mem::replace(&mut self.agreement, now);
        self.peer.is_extended.store(agreed, Ordering::Relaxed);
        if let Agreement::Offered { held, .. } = before {
            for order in held {
                self.take(order).await;
            }
        }
    }

    fn give_up(&mut self, trans: u64, unless_sent: bool) {
        if let Agreement::Offered { held, .. } = &mut self.agreement {
            let before = held.len();
            held.retain(|order| order.trans != trans);
            if held.len() < before {
                self.peer.mention(Word::Stopped(trans));
            }
        }
        (self.fetches.orders).give_up(trans, &self.peer, unless_sent);
    }

    async fn take(&mut self, order: OrderLine) {
        let terms = self.terms.remove(&order.trans).unwrap_or_default();
        let (target, wrong) = self.fetches.target(&order);
        if let Some(why) = wrong {
            self.complain(why);
        }
        let peer = Arc::clone(&self.peer);
        self.fetches.take(order, target, terms, peer).await;
    }

    fn complain(&mut self, why: &'static str) {
        if let Some(count) = self.complaints.count((self.fetches.clock)()) {
            warn!(why, count, "orders not understood");
        }
    }

    /// In pull mode: asks for as many orders as this URL server's share of the places has room for, a
    /// quarter of the share at a time, so that a free place does not cost a line each.
    fn ask(&mut self) {
        if self.fetches.dialect == Dialect::Push || self.fetches.is_full() {
            return;
        }
        let held = match &self.agreement {
            Agreement::Offered { held, .. } => held.len(),
            _ => 0,
        };
        let peers = CONNECTED.load(Ordering::Relaxed).max(1);
        let share = self.fetches.concurrency.div_ceil(peers);
        let open = self.peer.open.load(Ordering::Relaxed) + held;
        let room = share.saturating_sub(self.credit + open);
        if room == 0 || (room < share / 4 && self.credit > 0) {
            return;
        }
        let count = u32::try_from(room).unwrap_or(u32::MAX);
        let get = Word::Plain(FromSpider::Get(count));
        if self.peer.words.try_send(get).is_ok() {
            self.credit += room;
        }
    }
}
