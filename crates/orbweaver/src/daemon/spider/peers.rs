//! A URL server on the line: its orders are read as fast as they can be taken, and no faster.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::{Notify, mpsc, watch};
use tracing::{info, warn};

use orbweaver_wire::conversation::write_all_of;
use orbweaver_wire::line::{LineTooLong, read_order};
use orbweaver_wire::{Complaints, Connection, Dialect, FromSpider, Lines};

use super::bench::Bench;
use super::tickets::{Peer, Waiter};

/// URL servers that are connected, among which the places are divided in pull mode.
static CONNECTED: AtomicUsize = AtomicUsize::new(0);

/// Talks with a URL server until one of both is gone.
pub(super) async fn converse(
    connection: Connection,
    bench: Arc<Bench>,
    mut stopped: watch::Receiver<bool>,
) {
    let address = connection.peer();
    info!(peer = %address, "URL server connected");
    CONNECTED.fetch_add(1, Ordering::Relaxed);
    let (reader, writer) = tokio::io::split(connection);
    let (words, queue) = mpsc::channel(2 * bench.concurrency + 64);
    let dialect = bench.dialect;
    let writing = tokio::spawn(write_all_of(queue, writer, move |word: FromSpider, out| {
        word.write(dialect, out);
    }));
    let mut listener = Listener {
        reader,
        peer: Arc::new(Peer {
            words,
            open: AtomicUsize::new(0),
            freed: Notify::new(),
        }),
        lines: Lines::new(),
        complaints: Complaints::default(),
        credit: 0,
        bench,
    };
    let ended = tokio::select! {
        ended = listener.listen() => ended.map_err(|error| error.to_string()),
        // The other half of the connection failed, or the peer does not read.
        written = writing => Err(match written {
            Ok(Err(error)) => error.to_string(),
            _ => "closed".into(),
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
        Ok(()) => info!(peer = %address, open, dropped, "URL server disconnected"),
        Err(why) => warn!(peer = %address, open, dropped, why, "URL server lost"),
    }
}

struct Listener {
    reader: ReadHalf<Connection>,
    peer: Arc<Peer>,
    lines: Lines,
    complaints: Complaints,
    /// Orders that were asked for with GET and have not come.
    credit: usize,
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
        let read = read_order(line).map_err(|bad| (bad.trans, bad.why));
        let read = read.and_then(|order| match bench.errand(&order) {
            Ok(errand) => Ok((order, errand)),
            Err(why) => Err((Some(order.trans), why)),
        });
        self.credit = self.credit.saturating_sub(1);
        if let Err((_, why)) = &read
            && let Some(count) = self.complaints.count((bench.clock)())
        {
            warn!(why, count, "orders not understood");
        }
        Ok(Some(async move {
            match read {
                Ok((order, errand)) => {
                    let trans = order.trans;
                    bench.take(order, errand, Waiter { trans, peer }).await;
                }
                Err((Some(trans), _)) => {
                    // It would be sent again for ever.
                    let _ = peer.words.send(FromSpider::Done(trans)).await;
                }
                Err((None, _)) => {}
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
