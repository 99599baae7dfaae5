//! The port for records: each connection is read as far as memory and its window allow, and answered in
//! the order of its records.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tracing::{info, warn};

use orbweaver_wire::conversation::write_in_time;
use orbweaver_wire::{Answer, Complaints, Connection, Decoded, Records, Verdict};

use super::super::acceptor::{Acceptor, RefusalLog};
use super::receive::Receiver;

/// Records of one connection that may wait for their answers.
const WINDOW: usize = 512;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// How long a spider may be silent in the middle of a record.
const SILENCE: Duration = Duration::from_secs(60);

/// An answer that is due: the record's number, and where the verdict comes from.
type Due = (u32, oneshot::Receiver<Verdict>);

/// Accepts spiders until the end.
pub(super) async fn accept(mut acceptor: Acceptor, store: Arc<Receiver>) {
    loop {
        let connection = acceptor.next().await;
        tokio::spawn(converse(connection, Arc::clone(&store), acceptor.log()));
    }
}

async fn converse(connection: Connection, store: Arc<Receiver>, refusals: RefusalLog) {
    let peer = connection.peer();
    let (reader, writer) = tokio::io::split(connection);
    let (due, answers) = mpsc::channel(WINDOW);
    let writing = tokio::spawn(answer(answers, writer));
    let mut complaints = Complaints::default();
    let mut refused = |why| {
        if let Some(count) = complaints.count((store.clock)()) {
            warn!(%peer, why, count, "records refused");
        }
    };
    let mut is_known = false;
    let mut known = || {
        if !std::mem::replace(&mut is_known, true) {
            info!(%peer, "spider connected");
        }
    };
    let read = read(reader, &due, &store, &mut known, &mut refused).await;
    // What was read is still answered, if anybody listens.
    drop(due);
    let written = writing.await.unwrap_or(Ok(()));
    match read.and(written).map_err(anyhow::Error::from) {
        Err(error) if refusals.knows(&error) => {}
        // Nobody in particular.
        Ok(()) if !is_known => {}
        Ok(()) => info!(%peer, refused = complaints.total(), "spider disconnected"),
        Err(error) => {
            warn!(%peer, %error, refused = complaints.total(), "connection to the spider lost")
        }
    }
}

async fn read(
    mut reader: ReadHalf<Connection>,
    due: &mpsc::Sender<Due>,
    store: &Receiver,
    known: &mut (dyn FnMut() + Send),
    refused: &mut (dyn FnMut(&'static str) + Send),
) -> std::io::Result<()> {
    let mut records = Records::new(store.max_data);
    let mut permit: Option<OwnedSemaphorePermit> = None;
    loop {
        while let Some(decoded) = records.next() {
            let verdict = match decoded {
                Decoded::Record(record) => {
                    let doc_id = record.doc_id;
                    // Compressing takes its time, and the archive may have to be waited for.
                    (doc_id, tokio::task::block_in_place(|| store.take(record)))
                }
                Decoded::Refused { doc_id, why } => {
                    refused(why);
                    let (reply, verdict) = oneshot::channel();
                    let _ = reply.send(Verdict::Refused);
                    (doc_id, verdict)
                }
            };
            permit = None;
            if due.send(verdict).await.is_err() {
                return Ok(());
            }
        }
        // A record of more than one piece needs its place in memory before it is read.
        let size = records.size();
        if size > PIECE && permit.is_none() {
            let budget = Arc::clone(&store.budget);
            permit = budget.acquire_many_owned(store.permits(size)).await.ok();
        }
        let amid = records.is_amid();
        let buffer = records.buffer();
        buffer.reserve(PIECE);
        let read = tokio::select! {
            read = reader.read_buf(buffer) => read?,
            () = due.closed() => return Ok(()),
            // Between two records a spider may be silent; within one it holds memory.
            () = tokio::time::sleep(SILENCE), if amid => return Err(std::io::ErrorKind::TimedOut.into()),
        };
        if read == 0 {
            return match records.is_amid() {
                true => Err(std::io::ErrorKind::UnexpectedEof.into()),
                false => Ok(()),
            };
        }
        known();
    }
}

/// Writes each answer when its verdict is there, together with those that are there too.
async fn answer(
    mut due: mpsc::Receiver<Due>,
    mut writer: WriteHalf<Connection>,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    while let Some((doc_id, mut verdict)) = due.recv().await {
        let verdict = match verdict.try_recv() {
            Ok(verdict) => Ok(verdict),
            Err(_) => {
                write_in_time(&mut writer, &bytes).await?;
                bytes.clear();
                verdict.await
            }
        };
        // Not stored and never to be: without an answer the spider keeps it for the next store.
        let Ok(verdict) = verdict else {
            break;
        };
        bytes.extend(Answer { doc_id, verdict }.encode());
        if due.is_empty() {
            write_in_time(&mut writer, &bytes).await?;
            bytes.clear();
        }
    }
    write_in_time(&mut writer, &bytes).await?;
    writer.shutdown().await
}
