//! One per-host queue: what it holds, what goes out next, and what is out.
//!
//! A slot knows what it holds. Whether it may go, and when, is the dispatcher's decision.

use std::collections::VecDeque;

use orbweaver_model::{Candidate, Timestamp, UrlKey};

use crate::host::Host;
use crate::origins::RobotsJob;
use crate::window::Window;

/// A slot in a line, with the stamp by which an entry that has become stale is known.
pub(crate) type Stamped = (u32, u64);

/// What a slot does next.
#[derive(Debug)]
pub(crate) enum Work {
    /// A URL that its robots.txt allows, and until when that holds: a long gap may outlast it.
    Page(Candidate, Timestamp),
    /// A robots.txt.
    Robots(RobotsJob),
}

/// One per-host queue.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Hash of the host, for the reject list; none while only a robots.txt of another host is asked
    /// for here.
    hash: Option<u64>,
    /// URLs in the order in which they will be asked for, at most `queue_len` together with the
    /// parked ones. Filled by candidates and from the leftover queue, emptied by the dispatcher.
    queue: VecDeque<Candidate>,
    /// robots.txt files to ask this host for; they go first. At most one per origin that waits.
    jobs: VecDeque<RobotsJob>,
    /// What goes out next, taken from the two above and found to be allowed.
    next: Option<Work>,
    /// A question to the resolver is open.
    asked_resolver: bool,
    /// URLs of this host are in the leftover queue.
    has_leftover: bool,
    /// The slot is on the reject list.
    laden: bool,
    /// The last verdict of its host's rules was costly, so that the next ones are given in turn.
    is_costly: bool,
    /// An order has gone out since the host got this slot.
    served: bool,
    /// Orders that are out.
    pub(crate) window: Window,
}

impl Slot {
    /// Hash of the host, once a URL of it has come.
    pub(crate) fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// A URL of the host has come.
    pub(crate) fn name(&mut self, hash: u64) {
        self.hash = Some(hash);
    }

    /// URLs that the slot holds, those parked with its host's origins included.
    pub(crate) fn holds(&self, host: &Host) -> usize {
        let next = matches!(self.next, Some(Work::Page(..)));
        self.queue.len() + usize::from(next) + host.origins.parked()
    }

    /// Whether URLs wait to be looked at.
    pub(crate) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether nothing is to be asked for but what waits for a robots.txt.
    pub(crate) fn is_idle(&self) -> bool {
        self.next.is_none() && self.queue.is_empty() && self.jobs.is_empty()
    }

    pub(crate) fn push(&mut self, candidate: Candidate) {
        self.queue.push_back(candidate);
    }

    pub(crate) fn push_first(&mut self, candidate: Candidate) {
        self.queue.push_front(candidate);
    }

    /// URLs come back to the front of the queue, in their order.
    pub(crate) fn put_back(&mut self, candidates: VecDeque<Candidate>) {
        for candidate in candidates.into_iter().rev() {
            self.queue.push_front(candidate);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Candidate> {
        self.queue.pop_front()
    }

    pub(crate) fn pop_last(&mut self) -> Option<Candidate> {
        self.queue.pop_back()
    }

    pub(crate) fn has_leftover(&self) -> bool {
        self.has_leftover
    }

    pub(crate) fn set_leftover(&mut self, has_leftover: bool) {
        self.has_leftover = has_leftover;
    }

    /// robots.txt files are to be asked for here.
    pub(crate) fn add_jobs(&mut self, jobs: impl IntoIterator<Item = RobotsJob>) {
        self.jobs.extend(jobs);
    }

    /// Whether every robots.txt that is to be asked for here is the host's own.
    pub(crate) fn has_own_jobs_only(&self, host: &Host) -> bool {
        let next = self.next.iter().filter_map(|next| match next {
            Work::Robots(job) => Some(job),
            Work::Page(..) => None,
        });
        next.chain(&self.jobs).all(|job| job.host == *host.name())
    }

    pub(crate) fn next(&self) -> Option<&Work> {
        self.next.as_ref()
    }

    /// A page goes out next, which is allowed until then.
    pub(crate) fn choose(&mut self, page: Candidate, until: Timestamp) {
        self.next = Some(Work::Page(page, until));
    }

    /// A robots.txt goes out next, if one is to be asked for; true when it does.
    pub(crate) fn choose_job(&mut self) -> bool {
        self.next = self.jobs.pop_front().map(Work::Robots);
        self.next.is_some()
    }

    /// A page that was to go out next and is no longer known to be allowed goes back to the queue; true when one does.
    pub(crate) fn reconsider(&mut self, now: Timestamp) -> bool {
        match self.next.take() {
            Some(Work::Page(candidate, until)) if until <= now => {
                self.queue.push_front(candidate);
                true
            }
            next => {
                self.next = next;
                false
            }
        }
    }

    pub(crate) fn take_next(&mut self) -> Option<Work> {
        self.next.take()
    }

    /// Takes every URL and every robots.txt that is not out, those that wait with the host's origins included.
    pub(crate) fn take_all(&mut self, host: &mut Host) -> (Vec<Candidate>, Vec<RobotsJob>) {
        let mut urls = Vec::new();
        let mut jobs: Vec<_> = self.jobs.drain(..).collect();
        match self.next.take() {
            Some(Work::Page(candidate, _)) => urls.push(candidate),
            Some(Work::Robots(job)) => jobs.push(job),
            None => {}
        }
        host.origins.take_all_parked(&mut urls);
        urls.extend(self.queue.drain(..));
        (urls, jobs)
    }

    /// Whether the resolver is to be asked, because no question to it is open; one is from then on.
    pub(crate) fn ask_resolver(&mut self) -> bool {
        !std::mem::replace(&mut self.asked_resolver, true)
    }

    pub(crate) fn resolver_answered(&mut self) {
        self.asked_resolver = false;
    }

    /// Whether the queue has enough has changed, and the reject list is to be told of this host.
    pub(crate) fn mark(&mut self, laden: bool) -> Option<u64> {
        let hash = self.hash?;
        let before = std::mem::replace(&mut self.laden, laden);
        (before != laden).then_some(hash)
    }

    /// Whether verdicts of its host's rules are given in turn.
    pub(crate) fn is_costly(&self) -> bool {
        self.is_costly
    }

    /// The last verdict was costly, or was not.
    pub(crate) fn set_costly(&mut self, is_costly: bool) {
        self.is_costly = is_costly;
    }

    /// Whether an order has gone out since the host got this slot.
    pub(crate) fn is_served(&self) -> bool {
        self.served
    }

    /// An order goes out.
    pub(crate) fn serve(&mut self) {
        self.served = true;
    }

    /// The host goes; its hash, which the reject list is to forget.
    pub(crate) fn reset(&mut self) -> Option<u64> {
        self.asked_resolver = false;
        self.has_leftover = false;
        self.laden = false;
        self.is_costly = false;
        self.served = false;
        self.hash.take()
    }

    /// Whether a page goes out next.
    pub(crate) fn is_next(&self, key: UrlKey) -> bool {
        matches!(&self.next, Some(Work::Page(page, _)) if page.key == key)
    }

    /// What goes out before this URL, if it is in the queue.
    pub(crate) fn position(&self, key: UrlKey) -> Option<usize> {
        let ahead = self.queue.iter().position(|waiting| waiting.key == key)?;
        Some(ahead + usize::from(self.next.is_some()))
    }
}
