//! A URL server on the line: its orders are read as they come, for it has to hear of each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::{Notify, mpsc, watch};
use tracing::{info, warn};

use orbweaver_wire::conversation::write_all_of;
use orbweaver_wire::line::{LineTooLong, read_order};
use orbweaver_wire::{Complaints, Connection, Dialect, FromSpider, Lines};

use super::super::door::DoorLog;
use super::bench::Bench;
use super::tickets::{Peer, Waiter};

/// URL servers that are connected, among which the places are divided in pull mode.
static CONNECTED: AtomicUsize = AtomicUsize::new(0);

/// Talks with a URL server until one of both is gone.
pub(super) async fn converse(
    connection: Connection,
    bench: Arc<Bench>,
    door: DoorLog,
    mut stopped: watch::Receiver<bool>,
) {
    let address = connection.peer();
    CONNECTED.fetch_add(1, Ordering::Relaxed);
    let (reader, writer) = tokio::io::split(connection);
    let (words, queue) = mpsc::channel(2 * bench.max_orders + 64);
    let dialect = bench.dialect;
    let writing = tokio::spawn(write_all_of(queue, writer, move |word: FromSpider, out| {
        word.write(dialect, false, out);
    }));
    let mut listener = Listener {
        reader,
        address,
        peer: Arc::new(Peer {
            words,
            open: AtomicUsize::new(0),
            freed: Notify::new(),
        }),
        lines: Lines::new(),
        complaints: Complaints::default(),
        credit: 0,
        is_known: false,
        bench,
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
        Err(error) if door.knows(&error) => {}
        // Nobody in particular.
        Ok(()) if !listener.is_known => {}
        Ok(()) => info!(peer = %address, open, dropped, "URL server disconnected"),
        Err(error) => warn!(peer = %address, open, dropped, why = %error, "URL server lost"),
    }
}

struct Listener {
    reader: ReadHalf<Connection>,
    address: SocketAddr,
    peer: Arc<Peer>,
    lines: Lines,
    complaints: Complaints,
    /// Orders that were asked for with GET and have not come.
    credit: usize,
    /// It has said something that is of the protocol.
    is_known: bool,
    bench: Arc<Bench>,
}

impl Listener {
    async fn listen(&mut self) -> anyhow::Result<()> {
        let peer = Arc::clone(&self.peer);
        let mut piece = vec![0; 16 << 10];
        loop {
            self.ask();
            let read = tokio::select! {
                read = self.reader.read(&mut piece) => read?,
                // A place is free, or there may be room again: time to ask for more.
                () = peer.freed.notified(), if self.bench.dialect == Dialect::Pull => continue,
            };
            if read == 0 {
                return Ok(());
            }
            if !std::mem::replace(&mut self.is_known, true) {
                info!(peer = %self.address, "URL server connected");
            }
            self.lines.feed(piece.get(..read).unwrap_or_default());
            while let Some(order) = self.next_order()? {
                order.await;
            }
        }
    }

    /// The next line, as the work that it makes.
    fn next_order(&mut self) -> Result<Option<impl Future<Output = ()> + use<>>, LineTooLong> {
        let bench = Arc::clone(&self.bench);
        let peer = Arc::clone(&self.peer);
        let Some(line) = self.lines.next()? else {
            return Ok(None);
        };
        let read = read_order(line).map(|order| (bench.errand(&order), order));
        self.credit = self.credit.saturating_sub(1);
        let wrong = match &read {
            Ok(((_, why), _)) => *why,
            Err(bad) => Some(bad.why),
        };
        if let Some(why) = wrong
            && let Some(count) = self.complaints.count((bench.clock)())
        {
            warn!(why, count, "orders not understood");
        }
        Ok(Some(async move {
            match read {
                Ok(((errand, _), order)) => {
                    let trans = order.trans;
                    bench.take(order, errand, Waiter { trans, peer }).await;
                }
                Err(bad) => {
                    // It would be sent again for ever.
                    if let Some(trans) = bad.trans {
                        let _ = peer.words.send(FromSpider::Done(trans)).await;
                    }
                }
            }
        }))
    }

    /// In pull mode: asks for as many orders as this URL server's share of the places has room for, a
    /// quarter of the share at a time, so that a free place does not cost a line each.
    fn ask(&mut self) {
        if self.bench.dialect == Dialect::Push || self.bench.is_full() {
            return;
        }
        let peers = CONNECTED.load(Ordering::Relaxed).max(1);
        let share = self.bench.concurrency.div_ceil(peers);
        let open = self.peer.open.load(Ordering::Relaxed);
        let room = share.saturating_sub(self.credit + open);
        if room == 0 || (room < share / 4 && self.credit > 0) {
            return;
        }
        let count = u32::try_from(room).unwrap_or(u32::MAX);
        if self.peer.words.try_send(FromSpider::Get(count)).is_ok() {
            self.credit += room;
        }
    }
}
