//! Links to URLs that are known already.
//!
//! What is fetched must not depend on which link to a URL is found first. So the record of a URL keeps the best of all its
//! links: as a page rather than as a requisite, from nearer rather than from farther away, as a seed before all. A URL that
//! was refused is queued when a link is found for which it is accepted; one that was fetched by a worse link is marked, so
//! that its own links are judged again by the better one.

use orbweaver_model::{Link, LinkKind, OutcomeClass, UrlKey};

use super::Fold;
use super::chains::leads_on;
use super::urls::revisit_of;
use crate::error::Result;
use crate::keyspaces::{due_key, queue_key};
use crate::record::{Fate, LinkRecord};
use crate::tx::Tx;

impl Fold {
    /// Takes in another link to a known URL, with what the rules say of it.
    pub(super) fn meet_again(
        &mut self,
        key: UrlKey,
        link: &Link,
        accepted: bool,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let Some(known) = tx.link(key)? else {
            return Ok(());
        };
        let fate = tx.fate(key)?.filter(|fate| fate.due.is_none());
        match fate {
            Some(fate) if fate.refused && !accepted => {
                // Judged again when the rules change, and then by its best link.
                if let Some(better) = improved(&known, link) {
                    tx.put(&tx.store().urls, &key.to_bytes(), &better);
                }
                Ok(())
            }
            Some(fate) if accepted && deserves_another_chance(&fate, link.kind) => {
                self.readmit(key, known, link, &fate, tx)
            }
            fate if accepted => match improved(&known, link) {
                Some(better) => self.improve(key, &known, better, tx),
                None if link.kind.is_requisite() && known.shown.is_none() => {
                    let shown = Some(link.kind);
                    let record = LinkRecord { shown, ..known };
                    tx.put(&tx.store().urls, &key.to_bytes(), &record);
                    match fate.is_some_and(|fate| leads_on(fate.report.outcome.class)) {
                        true => self.follow_as_shown(key, &record, tx),
                        false => Ok(()),
                    }
                }
                None => Ok(()),
            },
            _ => {
                if let Some(latent) = latent(&known, link) {
                    let latent = Some(latent);
                    let record = LinkRecord { latent, ..known };
                    tx.put(&tx.store().urls, &key.to_bytes(), &record);
                }
                Ok(())
            }
        }
    }

    /// A URL that was refused, or that could not be reached, is queued.
    fn readmit(
        &mut self,
        key: UrlKey,
        known: LinkRecord,
        link: &Link,
        fate: &Fate,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let host = self.hosts.get(key.host);
        if host.is_some_and(|host| host.record.spent.is_some()) {
            return Ok(());
        }
        self.forgive(&known.chain, tx)?;
        let is_requisite = link.kind.is_requisite();
        let record = LinkRecord {
            kind: link.kind,
            depth: link.depth,
            priority: link.priority,
            via: link.via,
            chain: link.chain.clone(),
            latent: (is_requisite && !known.kind.is_requisite())
                .then_some((known.kind, known.depth))
                .or(known.latent.filter(|_| is_requisite)),
            shown: known.shown.or(Some(link.kind).filter(|_| is_requisite)),
            ..known
        };
        tx.put(&tx.store().urls, &key.to_bytes(), &record);
        if record.kind == LinkKind::Seed {
            tx.mark(&tx.store().seeds, record.url.as_str().as_bytes());
        }
        if let Some(due) = fate.revisit.as_ref().and_then(|revisit| revisit.due) {
            tx.remove(&tx.store().visits, &due_key(due, key));
        }
        tx.remove(&tx.store().fates, &key.to_bytes());
        self.ledger.reopen(&fate.report.outcome);
        self.hosts.touch(key.host).record.queued += 1;
        let waiting = record.queued(key, 0, None);
        self.enqueue(key, &record, waiting, tx);
        Ok(())
    }

    /// A URL that was accepted before turns out to have a better link.
    fn improve(
        &mut self,
        key: UrlKey,
        known: &LinkRecord,
        better: LinkRecord,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        tx.put(&tx.store().urls, &key.to_bytes(), &better);
        if better.kind == LinkKind::Seed {
            tx.mark(&tx.store().seeds, better.url.as_str().as_bytes());
        }
        let place = queue_key(key.host, known.rank());
        if tx.contains(&tx.store().queue, &place)? {
            return self.requeue(key, &place, &better, tx);
        }
        // What waits for a repetition is queued by its record. What is with the URL server, or was, has its links judged by
        // what was known when it was handed out.
        let waits = tx.fate(key)?.is_some_and(|fate| fate.due.is_some());
        if waits && !self.claimed.contains_key(&key) {
            return Ok(());
        }
        self.reconsider(&[key], tx)
    }

    /// A page that redirects, and that other pages show as a picture or the like, leads on as both.
    pub(super) fn follow_as_shown(
        &mut self,
        key: UrlKey,
        link: &LinkRecord,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        match link.shown.is_some() && !link.kind.is_requisite() {
            true => self.reconsider(&[key], tx),
            false => Ok(()),
        }
    }

    /// Moves a URL that waits in the queue of its host to the place that its record now gives it.
    pub(super) fn requeue(
        &mut self,
        key: UrlKey,
        place: &[u8],
        better: &LinkRecord,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let fate = tx.fate(key)?;
        let attempts = fate.as_ref().map_or(0, |fate| fate.attempts);
        tx.remove(&tx.store().queue, place);
        let host = self.hosts.touch(key.host);
        host.waiting = host.waiting.saturating_sub(1);
        let waiting = better.queued(key, attempts, revisit_of(fate));
        self.enqueue(key, better, waiting, tx);
        Ok(())
    }
}

/// What the record of a URL becomes by another link to it that is judged like those before; none when it is no better.
fn improved(known: &LinkRecord, link: &Link) -> Option<LinkRecord> {
    let (is_page, was_page) = (!link.kind.is_requisite(), !known.kind.is_requisite());
    let is_better = match (is_page, was_page) {
        (false, _) => false,
        (true, false) => true,
        (true, true) => {
            let becomes_seed = link.kind == LinkKind::Seed && known.kind != LinkKind::Seed;
            becomes_seed || link.depth < known.depth
        }
    };
    if !is_better {
        return None;
    }
    let stays_seed = known.kind == LinkKind::Seed;
    Some(LinkRecord {
        kind: if stays_seed { known.kind } else { link.kind },
        depth: match was_page {
            true => known.depth.min(link.depth),
            false => link.depth,
        },
        // What has moved up for its many links stays there.
        priority: known.priority.min(link.priority),
        via: link.via,
        chain: known.chain.clone(),
        url: known.url.clone(),
        latent: None,
        ..*known
    })
}

/// The link by which a requisite would be a page if the rules let it.
fn latent(known: &LinkRecord, link: &Link) -> Option<(LinkKind, u16)> {
    let is_first = known.latent.is_none_or(|(_, depth)| link.depth < depth);
    let is_page = known.kind.is_requisite() && !link.kind.is_requisite();
    (is_first && is_page).then_some((link.kind, link.depth))
}

/// Whether a finished URL is asked for because of a link that the rules accept. Naming it as a seed, as every run begins
/// with, gives another chance to a URL whose server, or its robots.txt, could not be reached. What was answered, and what a
/// robots.txt denies, stays as it is.
fn deserves_another_chance(fate: &Fate, kind: LinkKind) -> bool {
    if fate.refused {
        return true;
    }
    kind == LinkKind::Seed
        && match fate.report.outcome.class {
            OutcomeClass::DeniedPolicy => fate.attempts == 0,
            OutcomeClass::FailedConnect | OutcomeClass::FailedTimeout | OutcomeClass::FailedDns => {
                true
            }
            // A chance that would come by itself comes at once.
            _ => fate.is_chance(),
        }
}
