//! One budget of bytes for all bodies in flight, and for those that wait to be stored.
//!
//! A fetch begins when there is room for what every fetch needs, `START_BYTES`; what cannot be held is not
//! begun. Beyond that it takes slices from a second part of the budget and waits when that is empty; who waits
//! does not read, so that TCP holds the server back. Fetches that each hold a part and wait for the rest would wait for
//! ever, so one of them at a time is the *finisher*: it may go on without the pool, up to the largest that
//! one fetch can take, which is set aside for it. When a fetch ends, it keeps what its answer really takes
//! until the answer is dropped. So the memory for bodies is at most the budget, and somebody can always go on.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a permit stands for.
const UNIT: usize = 4 << 10;

/// What a fetch needs to begin: 64 KiB for its answer, and the buffers of its connection.
pub(crate) const START_BYTES: usize = 128 << 10;

/// What a fetch may hold of its answer without asking. Most pages are smaller.
pub(crate) const FREE_BYTES: usize = 64 << 10;

/// What is taken at a time beyond that: a body of 8 MiB asks 128 times.
const SLICE_BYTES: usize = 64 << 10;

/// A budget of bytes, shared by all its clones.
#[derive(Clone, Debug)]
pub struct ByteBudget {
    starts: Arc<Semaphore>,
    pool: Arc<Semaphore>,
    finisher: Arc<Semaphore>,
}

impl ByteBudget {
    /// A budget of `bytes`, of which one fetch takes at most `largest`. It is as large as asked for when
    /// `largest` is at most half of it; a larger one goes beyond it by what it is larger.
    pub fn new(bytes: usize, largest: usize) -> Self {
        let rest = bytes.saturating_sub(largest).max(bytes / 2);
        let rest = rest.max(8 * START_BYTES);
        // Most of it may be taken by beginnings: most answers need no more, and of those who do one can always go on.
        let starts = (rest / 5 * 4).max(4 * START_BYTES) / START_BYTES * START_BYTES;
        let units = |bytes: usize| (bytes / UNIT).min(Semaphore::MAX_PERMITS);
        Self {
            starts: Arc::new(Semaphore::new(units(starts))),
            pool: Arc::new(Semaphore::new(units(rest - starts))),
            finisher: Arc::new(Semaphore::new(1)),
        }
    }

    /// Fetches that can be begun at once, when nothing is held. More requests at once would wait for each other here, and the
    /// time of a server would pass meanwhile in the eyes of whoever has sent the order.
    pub fn fetches(&self) -> usize {
        self.starts.available_permits() / (START_BYTES / UNIT)
    }

    /// Bytes that nobody holds.
    pub fn available(&self) -> usize {
        (self.starts.available_permits() + self.pool.available_permits()) * UNIT
    }

    /// The share of one fetch, once there is room to begin it.
    pub(crate) async fn start(&self) -> Share {
        let units = (START_BYTES / UNIT) as u32;
        // The semaphore is never closed; if it were, going on beats waiting forever.
        let start = Arc::clone(&self.starts).acquire_many_owned(units).await;
        Share {
            budget: self.clone(),
            granted: FREE_BYTES,
            start: start.ok(),
            slices: None,
            finisher: None,
        }
    }
}

/// What one fetch may hold. Dropping it gives everything back; `keep` ties it to a buffer instead.
#[derive(Debug)]
pub(crate) struct Share {
    budget: ByteBudget,
    granted: usize,
    start: Option<OwnedSemaphorePermit>,
    slices: Option<OwnedSemaphorePermit>,
    finisher: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Bytes this fetch may hold now.
    pub(crate) fn granted(&self) -> usize {
        self.granted
    }

    /// Takes one slice more if there is one.
    pub(crate) fn try_grow(&mut self) -> bool {
        if self.finisher.is_none() {
            let units = (SLICE_BYTES / UNIT) as u32;
            let Ok(slice) = Arc::clone(&self.budget.pool).try_acquire_many_owned(units) else {
                return false;
            };
            self.add(slice);
        }
        self.granted += SLICE_BYTES;
        true
    }

    /// Takes one slice more, waiting for it if need be.
    pub(crate) async fn grow(&mut self) {
        if self.finisher.is_none() {
            let pool = Arc::clone(&self.budget.pool);
            let finisher = Arc::clone(&self.budget.finisher);
            // Neither semaphore is ever closed; if one were, going on beats waiting forever.
            tokio::select! {
                biased;
                slice = pool.acquire_many_owned((SLICE_BYTES / UNIT) as u32) => {
                    if let Ok(slice) = slice {
                        self.add(slice);
                    }
                }
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

    /// Ties what `size` bytes take to `bytes`: it comes back when the last view of them is dropped. The rest
    /// comes back now.
    pub(crate) fn keep(&mut self, bytes: Bytes, size: usize) -> Bytes {
        let mut needed = size.div_ceil(UNIT);
        // The finisher's place is worth more than any slice.
        let finisher = match needed > self.held() {
            true => self.finisher.take(),
            false => None,
        };
        let kept = Kept {
            bytes,
            _slices: part(&mut self.slices, &mut needed),
            _start: part(&mut self.start, &mut needed),
            _finisher: finisher,
        };
        Bytes::from_owner(kept)
    }

    /// Units held.
    fn held(&self) -> usize {
        let of = |permit: &Option<OwnedSemaphorePermit>| {
            permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
        };
        of(&self.start) + of(&self.slices)
    }
}

/// As much of a permit as is needed.
fn part(
    permit: &mut Option<OwnedSemaphorePermit>,
    needed: &mut usize,
) -> Option<OwnedSemaphorePermit> {
    let whole = permit.as_mut()?;
    let count = whole.num_permits().min(*needed);
    *needed -= count;
    whole.split(count)
}

/// Bytes and the share they fill.
struct Kept {
    bytes: Bytes,
    _slices: Option<OwnedSemaphorePermit>,
    _start: Option<OwnedSemaphorePermit>,
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

    /// What a crawl has by default is enough for the requests that it makes at once by default.
    #[test]
    fn the_usual_budget_can_begin_the_usual_number_of_fetches() {
        let fetches = ByteBudget::new(128 << 20, 44 << 20).fetches();
        assert!(fetches >= 512, "{fetches}");
        assert!(ByteBudget::new(0, 44 << 20).fetches() >= 4);
    }

    /// A budget with room for so many slices besides what some beginnings need.
    fn with_slices(slices: usize) -> ByteBudget {
        let budget = ByteBudget::new(32 * START_BYTES, 0);
        let spare = budget.pool.available_permits() - slices * (SLICE_BYTES / UNIT);
        budget.pool.forget_permits(spare);
        budget
    }

    #[tokio::test]
    async fn a_kept_share_comes_back_with_the_last_view() {
        let budget = with_slices(4);
        let all = budget.available();
        let mut share = budget.start().await;
        share.grow().await;
        share.grow().await;
        assert_eq!(share.granted(), FREE_BYTES + 2 * SLICE_BYTES);
        assert_eq!(budget.available(), all - START_BYTES - 2 * SLICE_BYTES);
        let kept = share.keep(Bytes::from_static(b"page"), SLICE_BYTES + 1);
        drop(share);
        // What is not needed is back at once.
        assert_eq!(budget.available(), all - SLICE_BYTES - UNIT);
        let view = kept.slice(1..);
        drop(kept);
        assert_eq!(budget.available(), all - SLICE_BYTES - UNIT);
        drop(view);
        assert_eq!(budget.available(), all);
    }

    #[tokio::test]
    async fn fetches_that_hold_everything_still_finish() {
        let budget = with_slices(2);
        let (mut first, mut second) = (budget.start().await, budget.start().await);
        first.grow().await;
        second.grow().await;
        // The pool is empty and both want more: one becomes the finisher, the other waits for it.
        for _ in 0..10 {
            first.grow().await;
        }
        assert!(!is_ready(second.grow()).await, "grew beyond the budget");
        drop(first);
        second.grow().await;
        second.grow().await;
        assert_eq!(second.granted(), FREE_BYTES + 3 * SLICE_BYTES);
    }

    #[tokio::test]
    async fn what_cannot_be_held_is_not_begun() {
        let budget = ByteBudget::new(0, 1 << 20);
        let mut begun = Vec::new();
        for _ in 0..budget.fetches() {
            begun.push(budget.start().await);
        }
        assert!(!is_ready(budget.start()).await);
        let mut first = begun.remove(0);
        let answer = first.keep(Bytes::from_static(b"page"), 4);
        drop(first);
        // An answer that waits to be stored takes what it takes, but no place of a beginning.
        assert!(!is_ready(budget.start()).await);
        drop(answer);
        assert!(is_ready(budget.start()).await);
    }

    /// Whether a future is ready without anybody else doing anything.
    async fn is_ready<T>(work: impl Future<Output = T>) -> bool {
        tokio::select! {
            biased;
            _ = work => true,
            () = tokio::task::yield_now() => false,
        }
    }
}
