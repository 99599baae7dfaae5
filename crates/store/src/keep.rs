//! What a crawl needs of an archive, whatever form the archive has.
//!
//! [`crate::Archive`] is the form in WARC files. Nothing here says how an exchange is stored: a form in plain files or in an
//! object store has the same five duties, keep, enter, read back, say how it goes, and close.

use std::sync::{Arc, OnceLock};

use orbweaver_model::{Archived, CapturePlace, Purpose, Timestamp};

use crate::capture::Capture;
use crate::digest::Digest;
use crate::error::StoreError;
use crate::exchange::StoredExchange;
use crate::results::Results;

/// An archive at work. Shared by all who submit.
pub trait Keep: Send + Sync {
    /// Keeps an exchange and enters it in the results, together with `note`, which is the caller's own; waits while too much
    /// is on its way. `ack` hears when both are durable. What is returned will say where the exchange lies.
    fn put(&self, capture: &Capture<'_>, note: &[u8], ack: Ack) -> Placed;

    /// Enters an attempt in the results that brought nothing to keep, or what is kept already.
    fn enter(&self, attempt: &Attempt<'_>, ack: Ack);

    /// The exchange at a place. Of its response only the first `max` bytes are taken into memory; all of it is verified.
    fn read(&self, place: CapturePlace, max: u64) -> Result<StoredExchange, StoreError>;

    /// The results, for those who follow them.
    fn results(&self) -> &Results;

    /// Bytes that wait to be written.
    fn backlog(&self) -> usize;

    /// Why nothing can be written, while that is so.
    fn trouble(&self) -> Option<StoreError>;

    /// Writes and acknowledges all that was submitted, and ends. When the disk fails it tries once more, then answers what
    /// is left with the error.
    fn close(&self) -> Result<(), StoreError>;
}

/// Called once for each submission, in the order of submission: with what was kept when it is durable, with an error when it
/// never will be. It runs on the thread of the archive, must be quick, and must submit nothing.
pub type Ack = Box<dyn FnOnce(Result<Kept, StoreError>) + Send>;

/// What is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The position of the entry among the results.
    pub position: u64,
    /// Where the exchange lies; none when there was nothing to keep.
    pub place: Option<CapturePlace>,
    /// The digest of the payload; none when there is no payload to have one.
    pub digest: Option<Digest>,
}

impl Kept {
    /// The same for the doc index; none when there was nothing to keep.
    pub fn archived(&self) -> Option<Archived> {
        let position = self.position;
        self.place.map(|place| Archived { place, position })
    }
}

/// An attempt that brought nothing new to keep.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// When it ended.
    pub at: Timestamp,
    /// What it was for.
    pub purpose: Purpose,
    /// What was asked for.
    pub url: &'a str,
    /// What the caller wants to have back with the entry.
    pub note: &'a [u8],
    /// The exchange that is the same, which was submitted before; none when there was nothing to keep.
    pub same: Option<&'a Placed>,
}

/// Where an exchange lies, from the moment on at which it has a place.
#[derive(Clone, Debug, Default)]
pub struct Placed(Arc<OnceLock<CapturePlace>>);

impl Placed {
    /// Of an exchange that was archived earlier.
    pub fn at(place: CapturePlace) -> Self {
        Self(Arc::new(OnceLock::from(place)))
    }

    /// The place; none before the exchange has one.
    pub fn get(&self) -> Option<CapturePlace> {
        self.0.get().copied()
    }

    /// Says the place. It is said once, for an exchange is appended once.
    pub(crate) fn set(&self, place: CapturePlace) {
        let _ = self.0.set(place);
    }
}

/// What an archive tells the one who started it, as it happens and on its own thread.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// Writing failed; it is tried again until it works.
    Failing(&'a StoreError),
    /// Writing works again.
    Working,
    /// Results up to this position can be followed.
    Durable(u64),
}

#[cfg(test)]
mod tests;
