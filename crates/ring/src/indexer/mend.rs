//! A disk that is full or fails under the doc index: waited for, opened again, and taken up where it failed.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use tracing::warn;

use orbweaver_docindex::Error as Trouble;

use super::Work;

/// Time between two attempts at something for which the disk fails.
const MENDING: Duration = Duration::from_millis(500);
/// Attempts when the crawl is ending: a disk that stumbles is waited for, one that is broken is not.
const LAST_ATTEMPTS: u32 = 8;

impl Work {
    /// Opens the index again until that works, and takes up where it failed. Told to stop meanwhile it
    /// gives up soon: what the index has not got is in the archive or will be asked for again.
    pub(super) fn mend(&mut self, error: Error, before: u64) -> Result<()> {
        let mut error = error;
        let mut last_attempts = 0;
        loop {
            let Error::Index(known) = &error else {
                return Err(error);
            };
            if !known.is_trouble() {
                return Err(error);
            }
            if !self.options.presence.holds() {
                return Err(self.options.presence.gone().into());
            }
            self.complain(&error);
            last_attempts += u32::from(self.stopping.load(Ordering::Relaxed));
            match self.take_up(known, before) {
                Ok(()) => break,
                Err(_) if last_attempts >= LAST_ATTEMPTS => return Err(error),
                // The first complaint says what happened; that the index is closed since then is no news.
                Err(Trouble::Stopped | Trouble::InUse(_)) => {}
                Err(other) => error = other.into(),
            }
            thread::sleep(MENDING);
        }
        warn!("the doc index is at work again");
        self.confirm();
        self.synced = Instant::now();
        Ok(())
    }

    fn take_up(&mut self, trouble: &Trouble, before: u64) -> Result<(), Trouble> {
        self.index.recover(trouble)?;
        // Candidates that were claimed but did not get on their way.
        self.index.take_back(before)
    }

    fn complain(&self, error: &Error) {
        let said = error.to_string();
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
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
