//! The words every stage of the ring speaks: URL, link, order, result, outcome, event, time, limits.
//!
//! Nothing here does I/O, waits, or reads the clock. A type lives here when two stages name it;
//! what only one stage knows stays in that stage's crate.

pub mod address;
pub mod budget;
pub mod capture;
pub mod clock;
pub mod event;
pub mod fetch;
pub mod fingerprint;
pub mod ledger;
pub mod limits;
pub mod link;
pub mod order;
pub mod outcome;
pub mod pace;
pub mod per_host;
pub mod recrawl;
pub mod text;
pub mod url;

pub use address::machine;
pub use budget::{Budget, Budgets, Room, Used};
pub use capture::{Archived, CapturePlace};
pub use clock::{Clock, Timestamp};
pub use event::{Claimed, Epoch, Event, HostSetting, NewLink, Report, RobotsRecord, Rules, Spent};
pub use fetch::{
    Conditions, Exchange, FetchRequest, FetchResult, Method, Protocol, Purpose, Spooled, Truncation,
};
pub use fingerprint::Fingerprint;
pub use ledger::Ledger;
pub use limits::Limits;
pub use link::{Link, LinkKind, Role};
pub use order::{Candidate, Order, Subject, TransId, Visit};
pub use outcome::{Column, Outcome, OutcomeClass};
pub use pace::Pace;
pub use per_host::{Credentials, HostPolicy, HostRequest, PerHost};
pub use recrawl::{ChangeRate, RecrawlBounds, Revisit};
pub use url::{CrawlUrl, KeySeed, Scheme, UrlError, UrlKey};
