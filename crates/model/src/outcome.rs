//! What became of a URL: the eighteen words used in listings, metrics, records and tests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text;

/// The column of the ledger in which a finished URL is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// A document, or a redirect that led somewhere.
    Done,
    /// An attempt was made and there is no document.
    Failed,
    /// Never asked for, or never to be requested again, because a rule says so.
    Refused,
    /// Still to be asked for.
    Queued,
}

macro_rules! outcome_classes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal => $column:ident,)+) => {
        /// The class of an outcome.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum OutcomeClass {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl OutcomeClass {
            /// Every class, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Where the ledger counts it.
            pub const fn column(self) -> Column {
                match self { $(Self::$variant => Column::$column,)+ }
            }
        }
    };
}

outcome_classes! {
    /// A document was received whole.
    Success = "success" => Done,
    /// The answer was good and had no body.
    SuccessEmpty = "success_empty" => Done,
    /// A part of the document was received, kept, and marked as cut.
    Truncated = "truncated" => Done,
    /// The server answered with an error status.
    HttpError = "http_error" => Failed,
    /// The server pointed elsewhere and that way was taken.
    RedirectFollowed = "redirect_followed" => Done,
    /// The server pointed somewhere this crawl does not go.
    RedirectRefused = "redirect_refused" => Refused,
    /// Too many redirects, or a loop of them.
    RedirectLimit = "redirect_limit" => Failed,
    /// robots.txt says no, or was unavailable.
    DeniedRobots = "denied_robots" => Refused,
    /// Scope, address policy, or a budget says no.
    DeniedPolicy = "denied_policy" => Refused,
    /// The server asked for patience; the URL is still queued.
    Deferred = "deferred" => Queued,
    /// One of an endless family of URLs that was cut short.
    TrapBounded = "trap_bounded" => Refused,
    /// No connection could be made.
    FailedConnect = "failed_connect" => Failed,
    /// A time limit passed.
    FailedTimeout = "failed_timeout" => Failed,
    /// What was received is not HTTP, or broke off.
    FailedProtocol = "failed_protocol" => Failed,
    /// The content encoding could not be undone.
    FailedDecode = "failed_decode" => Failed,
    /// The document could not be read as what it says it is.
    FailedParse = "failed_parse" => Failed,
    /// TLS or the certificate failed.
    FailedTls = "failed_tls" => Failed,
    /// The name could not be resolved.
    FailedDns = "failed_dns" => Failed,
}

impl OutcomeClass {
    /// True when a document, whole or cut, was received and kept.
    pub const fn is_document(self) -> bool {
        matches!(self, Self::Success | Self::SuccessEmpty | Self::Truncated)
    }

    /// True when the server is in trouble and is to be asked less: no connection, no answer in time, or one with a
    /// status of 5xx. What is deferred without a status failed in one of these ways.
    pub fn is_trouble(self, status: Option<u16>) -> bool {
        match self {
            Self::FailedConnect | Self::FailedTimeout => true,
            Self::Deferred if status.is_none() => true,
            _ => status.is_some_and(|status| status >= 500),
        }
    }
}

impl fmt::Display for OutcomeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OutcomeClass {
    type Err = UnknownClass;

    fn from_str(word: &str) -> Result<Self, UnknownClass> {
        Self::ALL
            .iter()
            .copied()
            .find(|class| class.as_str() == word)
            .ok_or(UnknownClass)
    }
}

/// The word names no outcome class.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an outcome class")]
pub struct UnknownClass;

/// A class and, where the class alone does not say it, the reason in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The class.
    pub class: OutcomeClass,
    /// Why, in one phrase; empty when the class says it all.
    pub reason: String,
    /// It is refused because it does not belong to the crawl, by the scope that the user has set. What address policy,
    /// a budget or robots.txt denies does belong to it.
    pub out_of_scope: bool,
}

impl Outcome {
    /// An outcome that its class explains.
    pub const fn plain(class: OutcomeClass) -> Self {
        Self {
            class,
            reason: String::new(),
            out_of_scope: false,
        }
    }

    /// An outcome with its reason, which may hold text from outside: it is kept bounded and without hidden characters.
    pub fn because(class: OutcomeClass, reason: impl Into<String>) -> Self {
        Self {
            class,
            reason: text::bounded(reason.into(), text::MAX_REASON),
            out_of_scope: false,
        }
    }

    /// The outcome of a URL that does not belong to the crawl.
    pub fn out_of_scope(reason: impl Into<String>) -> Self {
        Self {
            out_of_scope: true,
            ..Self::because(OutcomeClass::DeniedPolicy, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_classes_are_one_to_one() {
        for class in OutcomeClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(*class));
        }
        assert_eq!(OutcomeClass::ALL.len(), 18);
        assert_eq!("successful".parse::<OutcomeClass>(), Err(UnknownClass));
    }
}
