//! What follows from a result: where a page leads, where a redirect leads, whether it is tried again, and when it is
//! visited again.
//!
//! Decisions over values, without I/O: [`PageReader`] reads pages and judges links by what the crawl knows, the other modules
//! are tables. What is done about a decision is the ring's business.

mod reader;
mod redirect;
pub mod retry;
pub mod revisit;

pub use reader::{Aside, PageReader, Reading};
pub use redirect::{location, resolve};
pub use retry::Decision;
