//! The doc index: the only durable truth about URLs.
//!
//! It changes in one way, by the fold of events ([`Replica::fold`]), which an [`Owner`] appends to a [`Log`] first, and
//! hands out work in one way, by [`Owner::candidates`]. It is synchronous: whoever owns it gives it a thread of its own, because a
//! commit can take seconds on a busy disk. It knows nothing of HTTP, of politeness, or of files.

mod budgets;
mod check;
mod cold;
mod domains;
mod error;
mod faults;
mod fold;
mod hosts;
mod keyspaces;
mod load;
mod log;
mod options;
mod owner;
mod reader;
mod record;
mod repair;
mod replica;
mod salvage;
mod snapshot;
mod store;
mod tables;
mod tx;

pub use check::{Finding, check};
pub use domains::DomainOf;
pub use error::{Error, Result};
pub use log::{Append, Batch, KeptLog, LocalLog, Log, LogError};
pub use options::IndexOptions;
pub use orbweaver_coldstore::Damage;
pub use orbweaver_model::{Budget, Budgets, Ledger};
pub use orbweaver_seen::Tracking;
pub use owner::{DocIndex, Owner, Standing, Wanted};
pub use reader::{Entry, Reader, Rest, Seen};
pub use record::{Attempt, FORMAT, Fate, HostRecord, LinkRecord};
pub use repair::repair;
pub use replica::{Damaged, Replica};
pub use snapshot::import;
