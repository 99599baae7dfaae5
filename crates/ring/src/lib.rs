//! Orbweaver as a library: a web crawler that is polite, archives what it fetches, and can be killed at any moment.
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
pub mod json;
mod log;
mod machine;
mod notices;
mod pages;
mod reading;
mod redirect;
mod rejudge;
mod repair;
mod results;
mod retry;
mod revisit;
mod ring;
mod seeds;
mod summary;
mod sync;
mod view;
mod watch;

pub use orbweaver_config::{Config, Settings, Sources};
pub use orbweaver_intake::LinkRule;
pub use orbweaver_model::{CrawlUrl, Link, LinkKind, Outcome, OutcomeClass};

pub use orbweaver_crawldir::{CrawlDir, Error as DirectoryError};

pub use clock::steady;
pub use control::changes::{Change, Entry as ChangeEntry};
pub use control::hosts::Said;
pub use control::question::Question;
pub use crawl::{Crawl, CrawlBuilder};
pub use error::{Error, Kind, Result};
pub use fetchers::line::Elsewhere;
pub use inlet::{Inlet, Offered};
pub use machine::{Descriptors, allow_many_files};
pub use pages::{Page, PageLink, Pages};
pub use redirect::resolve;
pub use summary::{Cut, Limit, Summary};
pub use view::{Seen, View};
pub use watch::check::IndexLine;
pub use watch::hosts::{HostLine, HostStates, Hosts};
pub use watch::progress::Progress;
pub use watch::slow::Slow;
pub use watch::status::{Serving, Status};
pub use watch::why::Why;
