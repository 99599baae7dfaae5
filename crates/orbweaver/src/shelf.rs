//! The archive of this process, as those who fetch see it.

use std::cell::RefCell;
use std::sync::Arc;

use orbweaver_intake::surt;
use orbweaver_model::{FetchResult, Outcome};
use orbweaver_store::{Archive, Archivist, Capture, Scratch};

/// Above this backlog a worker that submits is likely to wait, and must not hold up its neighbours.
const BUSY_BACKLOG: usize = 4 << 20;

thread_local! {
    /// The compressor's buffers; one a worker.
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// The archive of this process.
pub(crate) struct Shelf {
    pub(crate) archive: Arc<Archive>,
    pub(crate) archivist: Archivist,
}

impl Shelf {
    /// On this archive.
    pub(crate) fn new(archive: Arc<Archive>) -> Self {
        Self {
            archivist: archive.archivist(),
            archive,
        }
    }

    /// Hands an exchange to the archive; `ack` makes the acknowledgement, knowing the digest of the payload.
    pub(crate) fn put(
        &self,
        result: &FetchResult,
        outcome: &Outcome,
        ack: impl FnOnce(Option<&str>) -> orbweaver_store::Ack,
    ) {
        let key = surt(result.order.url());
        let capture = Capture {
            result,
            surt: &key,
            outcome,
            via: None,
        };
        let prepare = || {
            SCRATCH.with_borrow_mut(|scratch| {
                let scratch = scratch.get_or_insert_with(|| self.archivist.scratch());
                self.archivist.prepare(&capture, scratch)
            })
        };
        let on_disk = result
            .exchange
            .as_ref()
            .is_some_and(|it| it.spooled.is_some());
        let prepared = match on_disk {
            // Read twice and compressed: that takes its time.
            true => tokio::task::block_in_place(prepare),
            false => prepare(),
        };
        let prepared = match prepared {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return,
            Err(error) => return ack(None)(Err(error)),
        };
        let ack = ack(prepared.digest());
        if self.archive.backlog() > BUSY_BACKLOG {
            tokio::task::block_in_place(|| self.archive.submit(prepared, ack));
        } else {
            self.archive.submit(prepared, ack);
        }
    }
}
