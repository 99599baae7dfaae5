//! The doc index: the only durable truth about URLs.
//!
//! It changes in one way, by the fold of events ([`DocIndex::apply`]), and hands out work in one way, by
//! [`DocIndex::candidates`]. It is synchronous: whoever owns it gives it a thread of its own, because a
//! commit can take seconds on a busy disk. It knows nothing of HTTP, of politeness, or of files.

mod budgets;
mod candidates;
mod check;
mod cold;
mod damage;
mod domains;
mod error;
mod faults;
mod fold;
mod hosts;
mod index;
mod journal;
mod keyspaces;
mod ledger;
mod load;
mod log;
mod reader;
mod reconsider;
mod record;
mod repair;
mod salvage;
mod seen;
mod survey;
mod tables;
mod tx;
mod visits;

pub use candidates::Wanted;
pub use check::{Finding, check};
pub use damage::Damage;
pub use domains::DomainOf;
pub use error::{Error, Result};
pub use index::{DocIndex, IndexOptions};
pub use ledger::Ledger;
pub use log::{KeptLog, LocalLog, PartitionLog};
pub use orbweaver_model::{Budget, Budgets};
pub use reader::{Entry, Reader, Rest};
pub use record::{Attempt, FORMAT, Fate, HostRecord, LinkRecord};
pub use repair::repair;
pub use seen::{Seen, Tracking};
