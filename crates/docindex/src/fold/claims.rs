//! Claims of this very process, taken up again after its store was closed and opened.

use std::collections::HashMap;

use orbweaver_model::UrlKey;
use xxhash_rust::xxh3::Xxh3Builder;

use super::{Claim, Fold};
use crate::error::Result;
use crate::keyspaces::{Keyspaces, queue_key};
use crate::record::{ClaimRecord, decode};

/// URLs that are handed out.
pub(crate) type Claims = HashMap<UrlKey, Claim, Xxh3Builder>;

/// Reads which URLs are handed out.
pub(crate) fn open_claims(store: &Keyspaces) -> Result<Claims> {
    let mut claims = Claims::default();
    for row in store.claims.iter() {
        let (number, urls) = row.into_inner()?;
        let Ok(batch) = number.as_ref().try_into().map(u64::from_be_bytes) else {
            continue;
        };
        for claim in decode::<ClaimRecord>("claims", &urls)?.urls {
            // A batch goes on naming URLs that were returned, until the last of it is answered.
            let returned = store
                .queue
                .contains_key(queue_key(claim.key.host, claim.rank))?;
            let fate = store.fate(claim.key)?;
            if !returned && Fold::is_open(&claim, fate.as_ref()) {
                let attempts = claim.attempts;
                // Batches come in order: a URL that was returned and claimed again belongs to the last.
                claims.insert(claim.key, Claim { batch, attempts });
            }
        }
    }
    Ok(claims)
}

impl Fold {
    /// Takes URLs that are handed out for handed out, instead of returning them as a new epoch does.
    pub(crate) fn keep_claims(&mut self, claims: Claims) {
        for (key, claim) in &claims {
            *self.open_batches.entry(claim.batch).or_default() += 1;
            self.hosts.reclaim(key.host);
        }
        self.claimed = claims;
    }

    /// URLs that are handed out in batches after this one.
    pub(crate) fn claimed_after(&self, batch: u64) -> Vec<UrlKey> {
        let later = self.claimed.iter().filter(|(_, claim)| claim.batch > batch);
        later.map(|(key, _)| *key).collect()
    }
}
