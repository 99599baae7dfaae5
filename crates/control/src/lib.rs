//! Talking to a crawl that runs: what can be asked and changed, the socket in its directory, and the log of all changes.
//!
//! What is answered is decided by the one who listens; here is what both sides say. Changes to single hosts can also be made
//! while no crawl runs.

pub mod changes;
mod error;
pub mod hosts;
mod question;
pub mod socket;

pub use changes::{Change, Changes};
pub use error::{Error, Kind, Result};
pub use hosts::{HostChange, Said};
pub use question::Question;
