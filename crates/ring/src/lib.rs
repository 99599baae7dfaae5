//! Orbweaver as a library: a web crawler that limits its request rate per host, archives what it fetches, and can be killed at any moment.
//!
//! ```no_run
//! use orbweaver_ring::Crawl;
//!
//! # fn main() -> Result<(), orbweaver_ring::Error> {
//! let crawl = Crawl::builder("example")
//!     .seed("https://example.org/")
//!     .contact("mailto:me@example.org")
//!     .pages(100)
//!     .start()?;
//! let summary = crawl.wait()?;
//! println!("{} pages", summary.pages);
//! # Ok(())
//! # }
//! ```

mod addresses;
mod archiving;
mod clock;
mod control;
mod crawl;
mod error;
mod fetchers;
mod harvest;
mod indexer;
mod inlet;
mod machine;
mod notices;
mod pages;
mod rejudge;
mod repair;
mod results;
mod ring;
mod sync;
mod view;
mod watch;

pub use orbweaver_config::{Config, Settings, Sources};
pub use orbweaver_control::changes::Entry as ChangeEntry;
pub use orbweaver_control::{Change, Kind, Question, Said};
pub use orbweaver_intake::LinkRule;
pub use orbweaver_model::{CrawlUrl, Link, LinkKind, Outcome, OutcomeClass};

pub use orbweaver_crawldir::{CrawlDir, Error as DirectoryError, json};
pub use orbweaver_reading::resolve;
pub use orbweaver_watch::check::IndexLine;
pub use orbweaver_watch::hosts::{HostLine, HostStates, Hosts};
pub use orbweaver_watch::progress::Progress;
pub use orbweaver_watch::slow::Slow;
pub use orbweaver_watch::status::{Serving, Status};
pub use orbweaver_watch::summary::{Cut, Limit, Summary};
pub use orbweaver_watch::why::Why;

pub use clock::steady;
pub use crawl::{Crawl, CrawlBuilder};
pub use error::{Error, Result};
pub use fetchers::line::Elsewhere;
pub use inlet::{Inlet, Offered};
pub use machine::{Descriptors, allow_many_files};
pub use pages::{Page, PageLink, Pages};
pub use view::{Seen, View};
