//! The crawl directory: its paths, its lock, the stored settings, and whether it is still there.
//!
//! | path | what |
//! |---|---|
//! | `orbweaver-crawl` | one line that names the format; locked by the process that crawls |
//! | `orbweaver-demo` | there when `demo` made all of it, and may replace it |
//! | `crawl.toml` | the settings of the crawl, as given; a resumed crawl starts from them |
//! | `index/` | the doc index |
//! | `warc/`, `cdxj/` | what was fetched |
//! | `results/` | the journal of results |
//! | `log/` | one line per request |
//! | `changes.jsonl` | what operators changed, and when |
//! | `control.sock` | while a crawl runs: where it answers questions |

mod dir;
mod error;
mod held;
pub mod json;
mod space;

pub use dir::CrawlDir;
pub use error::{Error, Result};
pub use held::{Held, Presence};
pub use space::Space;
