//! Which URLs are handed out, as the store tells: to return them to the queue when their process is gone, or to take
//! them up again when this very process has closed and opened its store.

use std::collections::BTreeMap;

use orbweaver_model::{Claimed, UrlKey};

use super::{Claim, Fold};
use crate::error::Result;
use crate::keyspaces::queue_key;
use crate::record::{ClaimRecord, decode};
use crate::tx::Tx;

/// URLs that are handed out.
pub(crate) type Claims = BTreeMap<UrlKey, Claim>;

/// Reads which URLs are handed out: named by a batch, not answered since, and not returned to the queue. Batches
/// come in order, so that a URL that was returned and claimed again belongs to the last.
pub(crate) fn open_claims(tx: &Tx<'_>) -> Result<Claims> {
    let mut claims = Claims::new();
    for row in tx.iter(&tx.store().claims) {
        let (number, urls) = row.into_inner()?;
        let Ok(batch) = number.as_ref().try_into().map(u64::from_be_bytes) else {
            continue;
        };
        for claim in decode::<ClaimRecord>("claims", &urls)?.urls {
            let fate = tx.fate(claim.key)?;
            if Fold::is_open(&claim, fate.as_ref()) && !is_queued(&claim, tx)? {
                let attempts = claim.attempts;
                claims.insert(claim.key, Claim { batch, attempts });
            }
        }
    }
    Ok(claims)
}

/// Whether a URL is back in the queue of its host, at the place where it was or at a better one.
fn is_queued(claim: &Claimed, tx: &Tx<'_>) -> Result<bool> {
    let queue = &tx.store().queue;
    let at = |rank| tx.contains(queue, &queue_key(claim.key.host, rank));
    let now = tx.link(claim.key)?.map(|link| link.rank());
    match now {
        Some(now) if now != claim.rank => Ok(at(claim.rank)? || at(now)?),
        _ => at(claim.rank),
    }
}

impl Fold {
    /// Takes URLs that are handed out for handed out, instead of returning them as a new epoch does.
    pub(crate) fn keep_claims(&mut self, claims: Claims) {
        for (key, claim) in &claims {
            *self.open_batches.entry(claim.batch).or_default() += 1;
            self.hosts.reclaim(key.host);
        }
        self.claimed = claims.into_iter().collect();
    }

    /// URLs that are handed out in batches after this one.
    pub(crate) fn claimed_after(&self, batch: u64) -> Vec<UrlKey> {
        let later = self.claimed.iter().filter(|(_, claim)| claim.batch > batch);
        later.map(|(key, _)| *key).collect()
    }
}
