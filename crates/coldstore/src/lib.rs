//! The files of an embedded store (fjall) read as they lie there, without opening it: nothing is written, nothing that is
//! damaged stops it, and everything that is damaged is named.
//!
//! The store that somebody works with takes a lock, replays its journals, removes what it does not know, and ends at the
//! first damaged block. That is right for whoever writes. Reading needs none of it: a keyspace is its tables and what
//! the journals add to them, and of two versions of a key the one with the higher sequence number counts. Where a table
//! or a list of tables is damaged, older versions of what was lost come to light.
//!
//! [`stream`] is the other form in which the records of a store lie in a file: written to be carried elsewhere.
//!
//! Nothing here knows what the records mean. The formats are those of the exact versions that the manifest names.

mod damage;
mod error;
mod files;
mod journal;
mod manifest;
mod space;
pub mod stream;
pub mod survey;
mod table;

pub use damage::{Damage, Damages, hex};
pub use error::{Error, Result};
pub use files::{ColdStore, Hold};
pub use space::{Merge, Space};
pub use table::Keys;
