//! What an HTTP/2 connection may read in all, by what it has brought.
//!
//! An HTTP/1 connection is read into the record of its exchange, and that has limits. Frames are consumed where nobody
//! sees them: without a count a server could send settings, pings and empty data for as long as it has time.
//! Every exchange adds what its head may take, every piece of a body what it is worth; a connection that has read
//! more than that is ended.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::stream::ReadCount;

/// What may come besides answers: settings, pings, acknowledgements, and the frames of heads.
const BESIDES: u64 = 128 << 10;

/// What a piece of data may cost beyond its length: the head of its frame, and some padding.
const PER_PIECE: u64 = 64;

/// The count of one connection; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Meter(Arc<Count>);

#[derive(Debug)]
struct Count {
    read: AtomicU64,
    allowed: AtomicU64,
    tripped: AtomicBool,
}

impl Meter {
    /// Nothing read, and as much allowed as a window holds.
    pub(crate) fn new(window: u32) -> Self {
        Self(Arc::new(Count {
            read: AtomicU64::new(0),
            allowed: AtomicU64::new(BESIDES + u64::from(window)),
            tripped: AtomicBool::new(false),
        }))
    }

    /// An exchange begins whose head may have so many bytes.
    pub(crate) fn begin(&self, max_head: usize) {
        self.allow(max_head as u64 + BESIDES / 2);
    }

    /// A piece of a body has come. An empty one is worth nothing.
    pub(crate) fn earn(&self, piece: usize) {
        let piece = piece as u64;
        if piece > 0 {
            self.allow(piece + piece / 8 + PER_PIECE);
        }
    }

    /// True when more was read than allowed.
    pub(crate) fn is_tripped(&self) -> bool {
        self.0.tripped.load(Ordering::Relaxed)
    }

    fn allow(&self, bytes: u64) {
        self.0.allowed.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl ReadCount for Meter {
    fn add(&self, read: usize) -> io::Result<()> {
        let before = self.0.read.fetch_add(read as u64, Ordering::Relaxed);
        if before + read as u64 > self.0.allowed.load(Ordering::Relaxed) {
            self.0.tripped.store(true, Ordering::Relaxed);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    }
}
