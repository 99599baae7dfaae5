//! The one road of results: a journal with one small entry for each exchange that was archived and each attempt that has to be
//! reported, in order, and those who follow it.
//!
//! The archive's own thread writes it (`archive.rs`), in the same group as the exchanges. The doc index is the first follower:
//! it keeps its position itself. Others are registered by name and keep theirs beside the journal. All read at their own
//! pace, and a segment is forgotten when all have passed it. `docs/formats/results.md` has the layout.

mod audit;
mod entry;
mod follow;
mod past;
mod writing;

pub use self::audit::check_results;
pub(crate) use self::entry::Draft;
pub use self::entry::{Entry, Standing};
pub use self::follow::{Begin, Follower, Reading, Results};
pub(crate) use self::writing::Writing;
