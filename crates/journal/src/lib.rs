//! A log of opaque payloads in segment files: checksummed, numbered without gaps, read by followers at their own pace.
//!
//! [`Writer`] appends: entries are gathered in memory and brought out together, either to the operating system
//! ([`Writer::flush`]) or to the disk itself ([`Writer::sync`]). [`Cursor`] reads from any position while the writer works.
//! [`Followers`] keeps how far each named reader has come, and [`Segments::forget`] removes the segments that all of them
//! have passed. [`audit`] reads everything and says what is wrong.
//!
//! This crate does not know what a payload means, has no thread and never waits or retries: whoever owns the writer does.
//! `docs/formats/journal.md` has the layout.

mod audit;
mod cursor;
mod error;
mod followers;
mod segment;
mod segments;
mod writer;

pub use audit::{Finding, Whole, audit};
pub use cursor::Cursor;
pub use error::Error;
pub use followers::Followers;
pub use segments::Segments;
pub use writer::{OnDamage, Writer};

/// What a journal is and how it is cut into files. `Default` is the only place the sizes live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Eight bytes in the head of each segment that name what the payloads are and the version of their form, so that a
    /// journal of another kind is not taken for this one.
    pub kind: [u8; 8],
    /// Bytes after which a segment is finished and the next begun.
    pub segment_bytes: u64,
    /// The largest payload; a longer one is refused, and a longer length found in a file is damage.
    pub max_payload: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: *b"payloads",
            // Tens of thousands of small entries: a cursor finds its place in a moment, and files are forgotten in
            // pieces that do not matter.
            segment_bytes: 8 << 20,
            max_payload: 256 << 10,
        }
    }
}
