//! The life of a URL: found, queued, claimed, answered, put off, finished.

use orbweaver_model::{
    CapturePlace, Claimed, LinkKind, NewLink, OutcomeClass, Report, Revisit, Spent, Timestamp,
    UrlKey,
};

use super::budget::{refusal, unasked};
use super::chains::{breaks_chain, leads_on};
use super::{Claim, Fold};
use crate::error::Result;
use crate::keyspaces::{due_key, queue_key};
use crate::record::{ClaimRecord, Fate, LinkRecord, QueueRecord};
use crate::tx::Tx;

impl Fold {
    pub(super) fn links(
        &mut self,
        links: &[NewLink],
        at: Timestamp,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let seed = self.key_seed()?;
        for NewLink { link, refused } in links {
            let key = link.url.key(seed);
            let is_new = self.seen.insert(key)?;
            self.seen.note(key, link.kind.role(link.depth));
            if !is_new {
                self.meet_again(key, link, refused.is_none(), tx)?;
                continue;
            }
            self.last_doc = self.last_doc.wrapping_add(1).max(1);
            let record = LinkRecord {
                doc_id: self.last_doc,
                url: link.url.clone(),
                kind: link.kind,
                depth: link.depth,
                priority: link.priority,
                via: link.via,
                chain: link.chain.clone(),
                seen: at,
                latent: None,
                shown: Some(link.kind).filter(|kind| kind.is_requisite()),
            };
            tx.put(&tx.store().urls, &key.to_bytes(), &record);
            if record.kind == LinkKind::Seed {
                tx.mark(&tx.store().seeds, record.url.as_str().as_bytes());
            }
            self.ledger.accept();
            let host = self.hosts.meet(key.host, link.url.host());
            host.record.queued += 1;
            // A chain of redirects that was begun is followed: the page it began with is in the budget.
            let exempt = !record.chain.is_empty();
            let spent = (host.record.spent)
                .filter(|spent| !(exempt && *spent == Spent::Pages))
                .map(|spent| refusal(spent, &record.url));
            let by_rule = refused.is_some();
            match refused.clone().or(spent) {
                Some(outcome) => {
                    let fate = Fate {
                        refused: by_rule,
                        ..unasked(outcome, at)
                    };
                    self.finish(key, fate, tx);
                    self.blame(key, &record.chain, tx)?;
                }
                None => {
                    let waiting = record.queued(key, 0, None);
                    self.enqueue(key, &record, waiting, tx);
                }
            }
        }
        Ok(())
    }

    pub(super) fn enqueue(
        &mut self,
        key: UrlKey,
        link: &LinkRecord,
        waiting: QueueRecord,
        tx: &mut Tx<'_>,
    ) {
        if waiting.is_visit() {
            self.hosts.visit(key.host);
        }
        tx.put(
            &tx.store().queue,
            &queue_key(key.host, link.rank()),
            &waiting,
        );
        self.hosts.waits(key.host, link.rank());
    }

    pub(super) fn claim(&mut self, number: u64, at: Timestamp, urls: &[Claimed], tx: &mut Tx<'_>) {
        for claim in urls {
            tx.remove(&tx.store().queue, &queue_key(claim.key.host, claim.rank));
            self.claimed.insert(
                claim.key,
                Claim {
                    batch: number,
                    attempts: claim.attempts,
                },
            );
            self.hosts.claim(claim.key.host, claim.rank);
        }
        self.open_batches.insert(number, urls.len());
        let urls = urls.to_vec();
        let record = ClaimRecord { at, urls };
        tx.put(&tx.store().claims, &number.to_be_bytes(), &record);
        self.last_batch = number;
    }

    /// Finishes a URL; false when it was finished already, and then nothing happens.
    pub(super) fn done(
        &mut self,
        key: UrlKey,
        report: &Report,
        revisit: Option<&Revisit>,
        capture: Option<CapturePlace>,
        tx: &mut Tx<'_>,
    ) -> Result<bool> {
        let Some(attempts) = self.release(key, tx)? else {
            return Ok(false);
        };
        let mut report = report.clone();
        let asked = report.ip.is_some();
        let first = revisit.is_none_or(|revisit| revisit.visits <= 1);
        // Most URLs have no attempt before this one, and nothing is read for those. What nobody is asked for now may have
        // been captured by an earlier visit.
        let before = match attempts > 0 || !first || !asked {
            true => tx.fate(key)?,
            false => None,
        };
        let was_asked = before.as_ref().is_some_and(|fate| fate.asked);
        self.hosts.learn(key.host, &report, asked && !was_asked);
        self.ledger.attempts += u64::from(asked);
        self.ledger.bytes += report.bytes;
        if report.outcome.class == OutcomeClass::RedirectFollowed {
            self.judge_redirect(key, &mut report, tx)?;
        }
        let class = report.outcome.class;
        let is_page = before.as_ref().is_some_and(Fate::brought_something);
        self.ledger.pages += u64::from(class.is_document() && !is_page);
        let fate = Fate {
            attempts: attempts.saturating_add(u8::from(asked)),
            asked: asked || was_asked,
            refused: false,
            due: None,
            capture: newest(capture, before.as_ref(), report.status),
            report,
            earlier: before.map(Fate::into_earlier).unwrap_or_default(),
            revisit: revisit.cloned().map(Box::new),
        };
        if let Some(due) = revisit.and_then(|revisit| revisit.due) {
            self.plan(key, due, tx);
        }
        self.finish(key, fate, tx);
        if leads_on(class)
            && let Some(link) = tx.link(key)?
        {
            if breaks_chain(class) {
                self.blame(key, &link.chain, tx)?;
            }
            self.follow_as_shown(key, &link, tx)?;
        }
        Ok(true)
    }

    pub(super) fn retry(
        &mut self,
        key: UrlKey,
        report: &Report,
        due: Timestamp,
        capture: Option<CapturePlace>,
        tx: &mut Tx<'_>,
    ) -> Result<()> {
        let Some(attempts) = self.release(key, tx)? else {
            return Ok(());
        };
        self.ledger.attempts += u64::from(report.ip.is_some());
        self.ledger.bytes += report.bytes;
        let before = tx.fate(key)?;
        let asked = report.ip.is_some();
        let was_asked = before.as_ref().is_some_and(|fate| fate.asked);
        // A URL counts for the budget of pages with its first request, whatever comes of that.
        self.hosts.learn(key.host, report, asked && !was_asked);
        let fate = Fate {
            asked: asked || was_asked,
            refused: false,
            revisit: before.as_ref().and_then(|fate| fate.revisit.clone()),
            capture: newest(capture, before.as_ref(), report.status),
            earlier: before.map(Fate::into_earlier).unwrap_or_default(),
            attempts: attempts.saturating_add(1),
            due: Some(due),
            report: report.clone(),
        };
        tx.put(&tx.store().fates, &key.to_bytes(), &fate);
        tx.mark(&tx.store().due, &due_key(due, key));
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
        Ok(())
    }

    pub(super) fn give_back(&mut self, keys: &[UrlKey], tx: &mut Tx<'_>) -> Result<()> {
        for key in keys
            .iter()
            .filter(|key| self.claimed.contains_key(key))
            .copied()
            .collect::<Vec<_>>()
        {
            let attempts = self.release(key, tx)?.unwrap_or(0);
            if let Some(link) = tx.link(key)? {
                let waiting = link.queued(key, attempts, revisit_of(tx.fate(key)?));
                self.enqueue(key, &link, waiting, tx);
            }
        }
        Ok(())
    }

    /// Takes a URL out of the hands of the URL server, or out of the queue when an earlier process has
    /// fetched it; how many attempts it had. None when it is finished or unknown.
    pub(super) fn release(&mut self, key: UrlKey, tx: &mut Tx<'_>) -> Result<Option<u8>> {
        if let Some(claim) = self.claimed.remove(&key) {
            self.hosts.unclaim(key.host);
            if let Some(open) = self.open_batches.get_mut(&claim.batch) {
                *open = open.saturating_sub(1);
                if *open == 0 {
                    self.open_batches.remove(&claim.batch);
                    tx.remove(&tx.store().claims, &claim.batch.to_be_bytes());
                }
            }
            return Ok(Some(claim.attempts));
        }
        let Some(link) = tx.link(key)? else {
            return Ok(None);
        };
        let fate = tx.fate(key)?;
        match fate.as_ref().map(|fate| fate.due) {
            Some(None) => return Ok(None),
            Some(Some(due)) => tx.remove(&tx.store().due, &due_key(due, key)),
            None => {}
        }
        let place = queue_key(key.host, link.rank());
        if tx.contains(&tx.store().queue, &place)? {
            tx.remove(&tx.store().queue, &place);
            let host = self.hosts.touch(key.host);
            host.waiting = host.waiting.saturating_sub(1);
        }
        Ok(Some(fate.map_or(0, |fate| fate.attempts)))
    }

    pub(super) fn finish(&mut self, key: UrlKey, fate: Fate, tx: &mut Tx<'_>) {
        self.ledger.finish(&fate.report.outcome);
        let host = self.hosts.touch(key.host);
        host.record.queued = host.record.queued.saturating_sub(1);
        tx.put(&tx.store().fates, &key.to_bytes(), &fate);
    }
}

/// The newest capture of a URL with this attempt. An answer that the document is as it was (304) has none in it, so that
/// the capture before stays the one to read.
fn newest(
    capture: Option<CapturePlace>,
    before: Option<&Fate>,
    status: Option<u16>,
) -> Option<CapturePlace> {
    match status {
        Some(304) => captured(before).or(capture),
        _ => capture.or(captured(before)),
    }
}

/// The newest capture of a URL before this attempt.
fn captured(before: Option<&Fate>) -> Option<CapturePlace> {
    before.and_then(|fate| fate.capture)
}

pub(super) fn revisit_of(fate: Option<Fate>) -> Option<Box<Revisit>> {
    fate.and_then(|fate| fate.revisit)
}
