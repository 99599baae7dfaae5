//! The archive of this process, as those who fetch see it.

use std::cell::RefCell;
use std::sync::Arc;

use orbweaver_intake::surt;
use orbweaver_model::{CrawlUrl, FetchResult, Outcome, Visit};
use orbweaver_store::{Archive, Archivist, Capture, Captured, Scratch};

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

    /// Hands the exchange of a page to the archive; `ack` makes the acknowledgement, knowing the digest of the payload.
    pub(crate) fn page(
        &self,
        visit: &Visit,
        outcome: &Outcome,
        ack: impl FnOnce(Option<&str>) -> orbweaver_store::Ack,
    ) {
        let candidate = &visit.candidate;
        let capture = Capture {
            url: &candidate.url,
            of: Captured::Page(candidate),
            result: &visit.result,
            unchanged_since: candidate.revisit.as_ref().map(|before| before.captured),
            surt: &surt(&candidate.url),
            outcome,
            via: None,
        };
        self.put(&capture, ack);
    }

    /// The same for a robots.txt.
    pub(crate) fn robots(
        &self,
        url: &CrawlUrl,
        result: &FetchResult,
        ack: impl FnOnce(Option<&str>) -> orbweaver_store::Ack,
    ) {
        let capture = Capture {
            url,
            of: Captured::Robots,
            result,
            unchanged_since: None,
            surt: &surt(url),
            outcome: &result.outcome,
            via: None,
        };
        self.put(&capture, ack);
    }

    fn put(&self, capture: &Capture<'_>, ack: impl FnOnce(Option<&str>) -> orbweaver_store::Ack) {
        let prepare = || {
            SCRATCH.with_borrow_mut(|scratch| {
                let scratch = scratch.get_or_insert_with(|| self.archivist.scratch());
                self.archivist.prepare(capture, scratch)
            })
        };
        let on_disk = (capture.result)
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
