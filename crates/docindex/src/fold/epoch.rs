//! The beginning of an index and of each epoch, and what else is said once and counts from then on.

use orbweaver_model::{Archived, CapturePlace, Claimed, Epoch, KeySeed, Timestamp};

use super::Fold;
use super::claims::open_claims;
use super::urls::revisit_of;
use crate::error::{Error, Result};
use crate::record::Fate;
use crate::tx::Tx;

impl Fold {
    /// The secret of the crawl, which every event after the first needs.
    pub(super) fn key_seed(&self) -> Result<KeySeed> {
        self.seed.ok_or(Error::NotBegun)
    }

    /// The index begins; once.
    pub(super) fn begin(&mut self, seed: KeySeed, tx: &mut Tx<'_>) {
        let seed = self.seed.get_or_insert(seed);
        tx.meta("seed", seed);
    }

    /// An epoch begins: claims of the one before return to the queue. One that is not later than the current one came
    /// from somebody who did not know of that, and means nothing.
    pub(super) fn epoch(&mut self, epoch: &Epoch, at: Timestamp, tx: &mut Tx<'_>) -> Result<()> {
        let current = self.epoch.as_ref().map_or(0, |current| current.number);
        if epoch.number <= current {
            return Ok(());
        }
        self.set_clock(at, tx)?;
        for (key, claim) in open_claims(tx)? {
            if let Some(link) = tx.link(key)? {
                let waiting = link.queued(key, claim.attempts, revisit_of(tx.fate(key)?));
                self.enqueue(key, &link, waiting, tx);
            }
        }
        for guard in tx.iter(&tx.store().claims) {
            tx.remove(&tx.store().claims, &guard.key()?);
        }
        for key in std::mem::take(&mut self.claimed).into_keys() {
            self.hosts.unclaim(key.host);
        }
        self.open_batches.clear();
        // Written in every epoch, for without it all is lost, and one place on a disk is soon damaged.
        tx.meta("seed", &self.key_seed()?);
        tx.meta("epoch", epoch);
        self.epoch = Some(epoch.clone());
        Ok(())
    }

    /// Takes note that an exchange is in the archive, and how far its results are folded by that; where it lies.
    pub(super) fn archived(&mut self, archived: Option<Archived>) -> Option<CapturePlace> {
        let Archived { place, position } = archived?;
        self.followed = Some(position);
        Some(place)
    }

    /// True when a claim was never answered: neither finished nor put off since it was made.
    pub(crate) fn is_open(claim: &Claimed, fate: Option<&Fate>) -> bool {
        fate.is_none_or(|fate| fate.due.is_some() && fate.attempts <= claim.attempts)
    }
}
