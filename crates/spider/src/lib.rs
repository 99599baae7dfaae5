//! The spider: a request in, a result out. It keeps nothing but caches: open connections and the
//! addresses of names.
//!
//! It connects to the address the request names and to no other, asks once more whether it may send it, holds one HTTP
//! exchange under limits, and returns request and response as they went over the wire together with the decoded body. It
//! follows no redirect, retries nothing that the server saw, and knows no politeness: all that is
//! decided where orders are made. Start reading at `fetch`.

pub mod address_policy;
pub mod budget;
mod chunks;
mod connect;
mod deadline;
mod decode;
pub mod dns;
pub mod error;
mod exchange;
pub mod fetch;
mod framing;
mod gate;
mod gather;
mod http1;
mod http2;
mod link;
mod meter;
pub mod options;
mod outcome_of;
mod pool;
mod reread;
mod shortage;
mod spool;
pub mod status;
mod stream;
mod tap;
mod tls;

pub use address_policy::{AddressPolicy, Refusal};
pub use budget::ByteBudget;
pub use dns::{ResolveError, Resolved, Resolver, ResolverOptions};
pub use error::SpiderError;
pub use fetch::Spider;
pub use gate::{Gate, Open, Refused};
pub use options::{SpiderOptions, TlsOptions};
pub use outcome_of::IN_PART;
pub use reread::reread;
pub use shortage::Shortages;
pub use spool::SpoolDir;
pub use status::{Action, action};
