//! The wire: what the three daemons say to each other, spelled and read back, and the ports on which
//! they say it.
//!
//! [`line`] spells orders and statuses between URL server and spider, [`extension`] what both add when they know it, [`record`] results on their way
//! from spider to store, [`results`] the same results on their way from the store to the doc index, and
//! [`codes`] the two enumerations in a result. These are pure: bytes in, messages out, bounded, total.
//! [`keyed`] opens and accepts connections, [`stranger`] tells by the first words who does not belong there, [`conversation`] holds what every talker needs. What a
//! message leads to is decided elsewhere; nothing here fetches, schedules or stores.

pub mod codes;
pub mod conversation;
mod error;
pub mod extension;
pub mod follower;
pub mod keyed;
pub mod line;
mod place;
pub mod record;
pub mod results;
mod service;
pub mod stranger;

pub use codes::{HttpCode, outcome_code, outcome_of_code};
pub use conversation::{Backoff, Complaints};
pub use error::WireError;
pub use extension::{HeadAnswer, Terms, ToSpider, Word};
pub use follower::{Followed, Follower};
pub use keyed::{Connection, Key, Listener, Port, PortOptions};
pub use line::{Dialect, FromSpider, Lines, OrderLine};
pub use place::{Place, Places};
pub use record::{Answer, Answers, Data, Decoded, Record, Records, Verdict};
pub use results::{Command, Entries};
pub use service::Service;
