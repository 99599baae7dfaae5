//! What the user of the library decides about links, beyond the scope.

use std::fmt;
use std::sync::Arc;

use orbweaver_model::{Link, LinkKind, Outcome, OutcomeClass};

/// A rule of the user's own about links.
///
/// It is asked for every link that the scope accepts, from many threads, and must say the same of the same link whenever it
/// is asked: what is fetched would depend on the order of answers otherwise. Seeds are never refused.
pub trait LinkRule: Send + Sync {
    /// A name that changes when the rule does: links that it refused in an earlier run are then judged again.
    fn name(&self) -> &str;

    /// Why a link is not followed, in a few words; none when it is.
    fn refuse(&self, link: &Link) -> Option<String> {
        let _ = link;
        None
    }

    /// The priority among the URLs of the link's host: lower numbers are fetched first, 16 is that of a link on a page.
    fn priority(&self, link: &Link) -> u8 {
        link.priority
    }
}

/// The rule in use, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Rule(Option<Arc<dyn LinkRule>>);

impl Rule {
    pub(crate) fn new(rule: Arc<dyn LinkRule>) -> Self {
        Self(Some(rule))
    }

    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or("", |rule| rule.name())
    }

    /// The rule's verdict.
    pub(crate) fn verdict(&self, link: &Link) -> Result<(), Outcome> {
        let rule = self.0.as_ref().filter(|_| link.kind != LinkKind::Seed);
        match rule.and_then(|rule| rule.refuse(link)) {
            Some(why) => Err(Outcome::because(OutcomeClass::DeniedPolicy, why)),
            None => Ok(()),
        }
    }

    /// Gives a link the rule's priority.
    pub(crate) fn rank(&self, link: &mut Link) {
        if let Some(rule) = &self.0 {
            link.priority = rule.priority(link);
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({:?})", self.name())
    }
}
