//! The port for results: a follower names its position and hears every entry behind it, each with its data
//! read back from the archive, forever.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, ReadHalf, WriteHalf};
use tokio::sync::watch;
use tracing::{info, warn};

use orbweaver_store::Reading;
use orbweaver_wire::conversation::write_in_time;
use orbweaver_wire::{Command, Connection, Lines};

use super::super::acceptor::{Acceptor, RefusalLog};
use super::receive::Receiver;

/// Accepts followers until the end.
pub(super) async fn accept(mut acceptor: Acceptor, store: Arc<Receiver>) {
    loop {
        let connection = acceptor.next().await;
        tokio::spawn(follow(connection, Arc::clone(&store), acceptor.log()));
    }
}

async fn follow(connection: Connection, store: Arc<Receiver>, refusals: RefusalLog) {
    let peer = connection.peer();
    let (reader, writer) = tokio::io::split(connection);
    let (from, begin) = watch::channel(None);
    let ended = tokio::select! {
        ended = hear(reader, from, &store) => ended,
        ended = tell(writer, begin, &store) => ended,
    };
    match ended {
        Err(error) if refusals.knows(&error) => {}
        Ok(()) => info!(%peer, "follower disconnected"),
        Err(error) => warn!(%peer, "connection to the follower lost: {error:#}"),
    }
}

/// Takes what the follower says. Ends when it says no more.
async fn hear(
    mut reader: ReadHalf<Connection>,
    from: watch::Sender<Option<u64>>,
    store: &Receiver,
) -> Result<()> {
    let mut lines = Lines::new();
    let mut piece = [0; 1024];
    loop {
        while let Some(line) = lines.next()? {
            // Who says what is not of this protocol is no follower, whatever else it says.
            match Command::read(line).context("a line that is neither FOLLOW nor HAVE")? {
                Command::Follow(position) => {
                    from.send_replace(Some(position));
                }
                Command::Have(position) => forget(store, position),
            }
        }
        match reader.read(&mut piece).await? {
            0 => return Ok(()),
            read => lines.feed(piece.get(..read).unwrap_or_default()),
        }
    }
}

fn forget(store: &Receiver, position: u64) {
    let results = store.results();
    match tokio::task::block_in_place(|| results.folded(position)) {
        Ok(0) => {}
        Ok(files) => info!(files, position, "journal files forgotten"),
        Err(error) => warn!(%error, "cannot remove journal files"),
    }
}

/// Sends entries from where the follower asked; a second FOLLOW begins anew from there.
async fn tell(
    mut writer: WriteHalf<Connection>,
    mut begin: watch::Receiver<Option<u64>>,
    store: &Receiver,
) -> Result<()> {
    let mut durable = store.durable();
    let mut reading: Option<Reading> = None;
    loop {
        if begin.has_changed().unwrap_or(false)
            && let Some(position) = *begin.borrow_and_update()
        {
            let last = *durable.borrow();
            anyhow::ensure!(
                position <= last,
                "it has processed {position} results, but this store has only {last}; is this another store?"
            );
            info!(position, last, "follower began");
            reading = Some(store.results().after(position)?);
        }
        durable.borrow_and_update();
        let next = reading
            .as_mut()
            .map(|reading| tokio::task::block_in_place(|| next(reading, store)));
        match next.transpose()?.flatten() {
            Some(entry) => {
                for part in entry {
                    write_in_time(&mut writer, &part).await?;
                }
            }
            None => tokio::select! {
                changed = durable.changed() => changed?,
                changed = begin.changed() => {
                    changed?;
                    // Seen, but not acted on yet.
                    begin.mark_changed();
                }
            },
        }
    }
}

/// The next entry as it goes over the wire.
fn next(reading: &mut Reading, store: &Receiver) -> Result<Option<[Bytes; 2]>> {
    let Some((position, entry)) = reading.next_entry()? else {
        return Ok(None);
    };
    let record = store.read_back(&entry)?;
    let head = record
        .head()
        .context("a journal entry cannot be encoded as a record")?;
    let first = [
        &position.to_be_bytes()[..],
        &head,
        record.url.as_bytes(),
        record.new_url.as_bytes(),
    ];
    Ok(Some([first.concat().into(), record.data]))
}
