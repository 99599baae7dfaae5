//! Chains of redirects: what a hop counts as follows from where the chain ends.

use orbweaver_model::{Column, CrawlUrl, Outcome, OutcomeClass, Report, UrlKey};

use super::Fold;
use crate::error::Result;
use crate::tx::Tx;

/// Longest chain of redirects that is followed to find a loop. Longer ones are ended by the hop limit.
const LOOP_SEARCH: usize = 32;

impl Fold {
    /// A redirect counts as followed only while its target can be reached: not when it closes a loop, and
    /// not when the target is known to be refused.
    pub(super) fn judge_redirect(
        &mut self,
        key: UrlKey,
        report: &mut Report,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let seed = self.key_seed()?;
        let mut walked = Vec::new();
        let mut target = report.redirect.clone();
        for _ in 0..LOOP_SEARCH {
            let Some(next) = target
                .as_deref()
                .and_then(|text| CrawlUrl::from_canonical(text).ok())
            else {
                return Ok(());
            };
            let next = next.key(seed);
            if next == key {
                report.outcome = Outcome::because(OutcomeClass::RedirectLimit, "redirect loop");
                for hop in walked {
                    self.amend(hop, &report.outcome, tx)?;
                }
                return Ok(());
            }
            let Some(fate) = tx.fate(next)? else {
                return Ok(());
            };
            match fate.report.outcome.class {
                OutcomeClass::DeniedPolicy | OutcomeClass::RedirectRefused => {
                    report.outcome = refused_target(&fate.report.outcome);
                    return Ok(());
                }
                OutcomeClass::RedirectLimit => {
                    report.outcome = fate.report.outcome;
                    return Ok(());
                }
                _ => {}
            }
            walked.push(next);
            target = fate.report.redirect;
        }
        Ok(())
    }

    /// The URLs whose redirects led to a refused or endless one did not lead anywhere either.
    pub(super) fn blame(&mut self, key: UrlKey, chain: &[UrlKey], tx: &mut Tx<'_>) -> Result<()> {
        if chain.is_empty() {
            return Ok(());
        }
        let Some(fate) = tx.fate(key)? else {
            return Ok(());
        };
        let outcome = match fate.report.outcome.class {
            OutcomeClass::RedirectLimit => fate.report.outcome,
            _ => refused_target(&fate.report.outcome),
        };
        for hop in chain {
            self.amend(*hop, &outcome, tx)?;
        }
        Ok(())
    }

    /// The URLs whose redirects led to a refused URL have led somewhere after all.
    pub(super) fn forgive(&mut self, chain: &[UrlKey], tx: &mut Tx<'_>) -> Result<()> {
        for hop in chain {
            let Some(mut fate) = tx.fate(*hop)?.filter(|fate| fate.due.is_none()) else {
                continue;
            };
            if fate.report.outcome.class == OutcomeClass::RedirectRefused {
                let followed = Outcome::plain(OutcomeClass::RedirectFollowed);
                self.ledger.amend(&fate.report.outcome, &followed);
                fate.report.outcome = followed;
                tx.put(&tx.store().fates, &hop.to_bytes(), &fate);
            }
        }
        Ok(())
    }

    fn amend(&mut self, key: UrlKey, outcome: &Outcome, tx: &mut Tx<'_>) -> Result<()> {
        let Some(mut fate) = tx.fate(key)? else {
            return Ok(());
        };
        let before = fate.report.outcome.class;
        if before == OutcomeClass::RedirectFollowed && fate.due.is_none() {
            debug_assert_ne!(outcome.class.column(), Column::Queued);
            self.ledger.amend(&fate.report.outcome, outcome);
            fate.report.outcome = outcome.clone();
            tx.put(&tx.store().fates, &key.to_bytes(), &fate);
        }
        Ok(())
    }
}

/// True when the URLs that redirected here have led nowhere.
pub(super) fn breaks_chain(class: OutcomeClass) -> bool {
    matches!(
        class,
        OutcomeClass::DeniedPolicy | OutcomeClass::RedirectLimit | OutcomeClass::RedirectRefused
    )
}

/// True when there may be a target, followed or not; a superset of the classes that break a chain.
pub(super) fn leads_on(class: OutcomeClass) -> bool {
    class == OutcomeClass::RedirectFollowed || breaks_chain(class)
}

fn refused_target(target: &Outcome) -> Outcome {
    const SAYS: &str = "its target is refused: ";
    // Said once, however long the chain is.
    let reason = target.reason.strip_prefix(SAYS).unwrap_or(&target.reason);
    Outcome::because(OutcomeClass::RedirectRefused, format!("{SAYS}{reason}"))
}
