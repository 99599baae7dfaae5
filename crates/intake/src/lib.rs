//! Links in: canonical form, SURT keys, registered domains, scope, traps, seed lists, outlinks.
//!
//! Whatever wants to enter the crawl comes through here and leaves as a `Link` with a verdict.
//! Nothing here does I/O or knows what is already known: the doc index is asked through a callback.

pub mod canonical;
pub mod domain;
mod fast;
mod generations;
mod inlinks;
pub mod outlinks;
mod pattern;
mod rule;
pub mod scope;
pub mod seeds;
mod session;
pub mod surt;
pub mod traps;

pub use canonical::{CanonicalError, CanonicalOptions, Canonicalizer, QueryEncoding};
pub use domain::{domain_or_host, registered_domain};
pub use outlinks::{Found, Outlinks, PageLinks, PageRef, priority};
pub use rule::LinkRule;
pub use scope::{Scope, ScopeKind, ScopeOptions};
pub use seeds::parse_seeds;
pub use surt::surt;
pub use traps::{TrapOptions, Traps, pattern_of};

/// Why intake cannot start: always something the user wrote.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// An include or exclude pattern is no regular expression: correct it.
    #[error("the {rule} pattern {pattern:?} is not a regular expression: {reason}")]
    Pattern {
        /// `include` or `exclude`.
        rule: &'static str,
        /// The pattern as written.
        pattern: String,
        /// What the regex compiler says about it.
        reason: String,
    },
    /// Lines of a seed list are no URLs: correct or remove them.
    #[error("{}", seeds::describe(.0))]
    Seeds(Vec<seeds::BadSeed>),
}
