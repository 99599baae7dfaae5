//! A disk that is full or fails under the doc index: waited for, opened again, and taken up where it failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tracing::warn;

use orbweaver_crawldir::Presence;
use orbweaver_docindex::{DocIndex, Error as Trouble};

use super::standing::Published;
use crate::error::{Error, Result};
use crate::sync::lock;

/// Time between two attempts at something for which the disk fails.
const MENDING: Duration = Duration::from_millis(500);
/// Attempts when the crawl is ending: a disk that stumbles is waited for, one that is broken is not.
const LAST_ATTEMPTS: u32 = 8;

/// What mending needs to know.
pub(super) struct Mender {
    /// Whether the crawl directory is still there; an index is not opened again in the place of one that is gone.
    pub(super) presence: Presence,
    pub(super) standing: Published,
    pub(super) stopping: Arc<AtomicBool>,
}

impl Mender {
    /// Opens the index again until that works, and takes up where it failed: what was handed out after the batch `before` did
    /// not get on its way. Told to stop meanwhile it gives up soon: what the index has not got is in the archive or will be
    /// requested again.
    pub(super) fn mend(&self, index: &mut DocIndex, error: Error, before: u64) -> Result<()> {
        let mut error = error;
        let mut last_attempts = 0;
        loop {
            let Error::Index(known) = &error else {
                return Err(error);
            };
            if !known.is_trouble() {
                return Err(error);
            }
            if !self.presence.holds() {
                return Err(self.presence.gone().into());
            }
            self.complain(&error);
            last_attempts += u32::from(self.stopping.load(Ordering::Relaxed));
            let mended = index.recover(known).and_then(|()| index.take_back(before));
            match mended {
                Ok(()) => break,
                Err(_) if last_attempts >= LAST_ATTEMPTS => return Err(error),
                // The first complaint says what happened; that the index is closed since then is no news.
                Err(Trouble::Stopped | Trouble::InUse(_)) => {}
                Err(other) => error = other.into(),
            }
            thread::sleep(MENDING);
        }
        warn!("the doc index works again");
        Ok(())
    }

    fn complain(&self, error: &Error) {
        let said = error.to_string();
        let mut standing = lock(&self.standing);
        if standing.trouble.as_ref() != Some(&said) {
            warn!(error = said, "the doc index waits for its disk");
            standing.trouble = Some(said);
        }
    }
}

/// Reads from an index that nobody writes to any more, a few times when the disk fails.
pub(crate) fn read_at_last<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut attempts = 1;
    loop {
        match read() {
            Err(Error::Index(trouble)) if attempts < LAST_ATTEMPTS && trouble.is_trouble() => {
                attempts += 1;
                thread::sleep(MENDING);
            }
            read => return read,
        }
    }
}
