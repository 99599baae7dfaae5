//! One budget of bytes for all bodies in flight.
//!
//! Every fetch may hold `FREE_BYTES` without asking, so that small pages never meet a lock. Beyond
//! that it takes slices from the pool and waits when the pool is empty. Fetches that each hold a part
//! and wait for the rest would wait for ever, so one of them at a time is the *finisher*: it may go on
//! without the pool, up to what the limits allow one fetch. When it ends, its slices come back. So
//! the memory for bodies is at most fetches × `FREE_BYTES` + pool + one largest body, and somebody can
//! always go on.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a fetch holds without asking. Most pages are smaller; a thousand fetches at once make 64 MiB.
pub(crate) const FREE_BYTES: usize = 64 << 10;

/// A slice of the pool. Large enough that a body of 8 MiB asks 128 times, small enough to waste little.
const SLICE_BYTES: usize = 64 << 10;

/// A budget of bytes, shared by all its clones.
#[derive(Clone, Debug)]
pub struct ByteBudget {
    pool: Arc<Semaphore>,
    finisher: Arc<Semaphore>,
}

impl ByteBudget {
    /// A budget of about `bytes`, counted in slices of 64 KiB; 0 leaves the free bytes of each fetch
    /// and lets one fetch at a time go beyond them.
    pub fn new(bytes: usize) -> Self {
        let slices = (bytes / SLICE_BYTES).min(Semaphore::MAX_PERMITS);
        Self {
            pool: Arc::new(Semaphore::new(slices)),
            finisher: Arc::new(Semaphore::new(1)),
        }
    }

    /// Bytes of the pool that nobody holds.
    pub fn available(&self) -> usize {
        self.pool.available_permits() * SLICE_BYTES
    }

    /// The share of one fetch, with its free bytes in it.
    pub(crate) fn share(&self) -> Share<'_> {
        Share {
            budget: self,
            granted: FREE_BYTES,
            slices: None,
            finisher: None,
        }
    }
}

/// What one fetch may hold. Dropping it gives everything back; `keep` ties it to a buffer instead.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    budget: &'a ByteBudget,
    granted: usize,
    slices: Option<OwnedSemaphorePermit>,
    finisher: Option<OwnedSemaphorePermit>,
}

impl Share<'_> {
    /// Bytes this fetch may hold now.
    pub(crate) fn granted(&self) -> usize {
        self.granted
    }

    /// Takes one slice more, waiting for it if need be.
    pub(crate) async fn grow(&mut self) {
        if self.finisher.is_none() {
            let pool = Arc::clone(&self.budget.pool);
            let finisher = Arc::clone(&self.budget.finisher);
            // Neither semaphore is ever closed; if one were, going on beats waiting for ever.
            tokio::select! {
                biased;
                slice = pool.acquire_owned() => if let Ok(slice) = slice { self.add(slice) },
                place = finisher.acquire_owned() => self.finisher = place.ok(),
            }
        }
        self.granted += SLICE_BYTES;
    }

    fn add(&mut self, slice: OwnedSemaphorePermit) {
        match &mut self.slices {
            Some(slices) => slices.merge(slice),
            None => self.slices = Some(slice),
        }
    }

    /// Ties what is held to `bytes`: it comes back when the last view of them is dropped.
    pub(crate) fn keep(&mut self, bytes: Bytes) -> Bytes {
        match (self.slices.take(), self.finisher.take()) {
            (None, None) => bytes,
            (slices, finisher) => Bytes::from_owner(Kept {
                bytes,
                _slices: slices,
                _finisher: finisher,
            }),
        }
    }
}

/// Bytes and the share they fill.
struct Kept {
    bytes: Bytes,
    _slices: Option<OwnedSemaphorePermit>,
    _finisher: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kept_share_comes_back_with_the_last_view() {
        let budget = ByteBudget::new(4 * SLICE_BYTES);
        let mut share = budget.share();
        share.grow().await;
        share.grow().await;
        assert_eq!(share.granted(), FREE_BYTES + 2 * SLICE_BYTES);
        let kept = share.keep(Bytes::from_static(b"page"));
        drop(share);
        let view = kept.slice(1..);
        drop(kept);
        assert_eq!(budget.available(), 2 * SLICE_BYTES);
        drop(view);
        assert_eq!(budget.available(), 4 * SLICE_BYTES);
    }

    #[tokio::test]
    async fn fetches_that_hold_everything_still_finish() {
        let budget = ByteBudget::new(2 * SLICE_BYTES);
        let (mut first, mut second) = (budget.share(), budget.share());
        first.grow().await;
        second.grow().await;
        // The pool is empty and both want more: one becomes the finisher, the other waits for it.
        for _ in 0..10 {
            first.grow().await;
        }
        let waiting = tokio::spawn(async {
            tokio::task::yield_now().await;
        });
        tokio::select! {
            biased;
            () = second.grow() => panic!("grew beyond the budget"),
            done = waiting => done.unwrap(),
        }
        drop(first);
        second.grow().await;
        second.grow().await;
        assert_eq!(second.granted(), FREE_BYTES + 3 * SLICE_BYTES);
    }
}
