//! The store: what was fetched, durable before it is acknowledged, and the results that others follow.
//!
//! [`Keep`] is what a crawl needs of an archive. Its form in WARC files: [`Archivist::prepare`] turns an exchange into a
//! finished group of gzip members on any thread; [`Archive`] appends groups and their entries in the [`Results`], syncs many
//! at once and only then acknowledges; [`Writer`] keeps the files and makes them whole after a crash; [`read_place`],
//! [`newest`] and [`Records`] read them back; [`check`] and [`check_results`] read everything and say what is wrong.
//!
//! Inside a crawl directory: `warc/<stem>.warc.gz` and `cdxj/<stem>.cdxj`, with `.open` at the end of
//! both names while they are being written, and `results/`. This crate does not fetch, does not make SURT keys, does
//! not decode bodies, and does not lock the directory: whoever owns the crawl does.

// The samples of the integration tests serve the unit tests too; they name this crate as others do.
#[cfg(test)]
extern crate self as orbweaver_store;

mod archive;
mod capture;
mod cdxj;
mod check;
mod date;
mod digest;
mod error;
mod exchange;
mod files;
mod http_head;
mod keep;
mod numbers;
mod options;
mod places;
mod repair;
mod results;
#[cfg(test)]
#[path = "../tests/it/sample.rs"]
#[allow(dead_code, reason = "the unit tests need a part of it")]
mod sample;
mod warc;

pub use archive::Archive;
pub use capture::{Capture, Captured};
pub use cdxj::{IndexLine, each_capture, lookup};
pub use check::{Finding, Severity, Summary, check};
pub use digest::Digest;
pub use error::StoreError;
pub use exchange::{Found, StoredExchange, captured_at, get, line_at, newest, read_place};
pub use keep::{Ack, Attempt, Keep, Kept, Notice, Placed};
pub use numbers::place_in;
pub use options::StoreOptions;
pub use places::{Place, Places};
pub use repair::repair;
pub use results::{Begin, Entry, Follower, Reading, Results, Standing, check_results};
pub use warc::prepare::{Archivist, Prepared, Scratch};
pub use warc::reader::{RecordHead, Records, StoredRecord, read_at};
pub use warc::recover::{Cut, Recovery, Skipped};
pub use warc::writer::{Location, Writer};
