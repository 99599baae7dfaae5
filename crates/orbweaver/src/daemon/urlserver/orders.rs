//! The orders that are out with spiders: who has which, what was heard of it, and when it counts as lost.
//!
//! Pure bookkeeping: the time is passed in, and sending is left to others. An order is over when its spider has said
//! DONE and its result has come from the store; where no store is asked, DONE alone is the end of it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use orbweaver_model::{Order, Timestamp, TransId};
use orbweaver_urlserver::Done;
use orbweaver_wire::line::{trans_number, trans_of};

/// An order that is over, and what the URL server is to hear of it.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) trans: TransId,
    pub(super) done: Done,
}

/// An order that is not over.
#[derive(Debug)]
struct Out {
    order: Order,
    /// Who has it; none while it waits for one who can take it.
    spider: Option<usize>,
    /// When it was written to a spider last.
    sent: Option<Timestamp>,
    /// When anything was heard of it last.
    heard: Timestamp,
    /// The spider has said DONE.
    is_done: bool,
    /// What its result means to the URL server, once that is here.
    word: Option<Box<Done>>,
}

/// All of them. As many as the URL server lets out, which is its `concurrency`.
#[derive(Debug)]
pub(super) struct Orders {
    /// By the number that stands for the transaction on the wire.
    out: HashMap<u64, Out>,
    /// Results name the document and the URL, not the transaction.
    by_url: HashMap<(u32, Box<str>), u64>,
    waiting: VecDeque<u64>,
    timeout: Duration,
    /// DONE is not enough: the result must come too.
    awaits_results: bool,
    /// Words about orders that are not out, or no longer under that number.
    pub(super) late: u64,
}

impl Orders {
    pub(super) fn new(timeout: Duration, awaits_results: bool) -> Self {
        Self {
            out: HashMap::new(),
            by_url: HashMap::new(),
            waiting: VecDeque::new(),
            timeout,
            awaits_results,
            late: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes an order that is to go out.
    pub(super) fn add(&mut self, order: Order, now: Timestamp) {
        // The settings keep slots and windows within what a number can say.
        let Some(number) = trans_number(order.trans) else {
            return;
        };
        self.by_url.insert(place(&order), number);
        self.out.insert(
            number,
            Out {
                order,
                spider: None,
                sent: None,
                heard: now,
                is_done: false,
                word: None,
            },
        );
        self.waiting.push_back(number);
    }

    /// The next order that waits for a spider.
    pub(super) fn next(&mut self) -> Option<&Order> {
        while let Some(number) = self.waiting.front() {
            // Its result may have come by another way meanwhile.
            if self.out.get(number).is_some_and(|out| out.spider.is_none()) {
                break;
            }
            self.waiting.pop_front();
        }
        let number = self.waiting.front()?;
        self.out.get(number).map(|out| &out.order)
    }

    /// The next order goes to this spider.
    pub(super) fn give(&mut self, spider: usize, now: Timestamp) {
        let Some(number) = self.waiting.pop_front() else {
            return;
        };
        if let Some(out) = self.out.get_mut(&number) {
            out.spider = Some(spider);
            out.sent = Some(now);
            out.heard = now;
        }
    }

    /// Orders that a spider has.
    pub(super) fn count_of(&self, spider: usize) -> usize {
        let all = self.out.values();
        all.filter(|out| out.spider == Some(spider)).count()
    }

    /// A spider is at work on an order.
    pub(super) fn working(&mut self, number: u64, now: Timestamp) {
        match self.out.get_mut(&number) {
            Some(out) => out.heard = now,
            None => self.late += 1,
        }
    }

    /// A spider is done with an order. What is over by that, and without a store the order too.
    pub(super) fn done(&mut self, number: u64, now: Timestamp) -> Option<(Over, Order)> {
        let Some(out) = self.out.get_mut(&number) else {
            self.late += 1;
            return None;
        };
        out.is_done = true;
        out.heard = now;
        if self.awaits_results && out.word.is_none() {
            return None;
        }
        self.end(number, now)
    }

    /// The order that a result answers, and when it was sent.
    pub(super) fn answered_by(
        &self,
        doc_id: u32,
        url: &str,
    ) -> Option<(u64, Order, Option<Timestamp>)> {
        let number = *self.by_url.get(&(doc_id, url.into()))?;
        let out = self.out.get(&number)?;
        Some((number, out.order.clone(), out.sent))
    }

    /// The result of an order has come, and means this. What is over by that.
    pub(super) fn result(&mut self, number: u64, word: Done, now: Timestamp) -> Option<Over> {
        let out = self.out.get_mut(&number)?;
        out.word = Some(Box::new(word));
        // One that no spider has any more will be said DONE by nobody.
        if !out.is_done && out.spider.is_some() {
            return None;
        }
        self.end(number, now).map(|(over, _)| over)
    }

    /// A spider is gone. What it had is over where its result is here, and lost where not.
    pub(super) fn gone(&mut self, spider: usize, now: Timestamp) -> (Vec<Over>, Vec<TransId>) {
        self.sort_out(now, |out| out.spider == Some(spider))
    }

    /// Orders of which nothing was heard for too long: those that are over, and those that are lost.
    pub(super) fn overdue(&mut self, now: Timestamp) -> (Vec<Over>, Vec<TransId>) {
        let timeout = self.timeout;
        self.sort_out(now, |out| {
            out.spider.is_some() && now.since(out.heard) >= timeout
        })
    }

    fn sort_out(
        &mut self,
        now: Timestamp,
        concerned: impl Fn(&Out) -> bool,
    ) -> (Vec<Over>, Vec<TransId>) {
        let numbers: Vec<u64> = (self.out.iter())
            .filter(|(_, out)| concerned(out))
            .map(|(number, _)| *number)
            .collect();
        let mut over = Vec::new();
        let mut lost = Vec::new();
        for number in numbers {
            let has_result = self.out.get(&number).is_some_and(|out| out.word.is_some());
            match has_result {
                true => over.extend(self.end(number, now).map(|(over, _)| over)),
                false => lost.push(trans_of(number)),
            }
        }
        (over, lost)
    }

    /// A lost order has a new name and waits for a spider again, before those that were never sent.
    pub(super) fn rename(&mut self, old: TransId, new: TransId) {
        let (Some(old), Some(new)) = (trans_number(old), trans_number(new)) else {
            return;
        };
        let Some(mut out) = self.out.remove(&old) else {
            return;
        };
        out.order.trans = trans_of(new);
        out.spider = None;
        out.is_done = false;
        self.by_url.insert(place(&out.order), new);
        self.out.insert(new, out);
        self.waiting.push_front(new);
    }

    /// The URL server does not know this order any more.
    pub(super) fn forget(&mut self, trans: TransId) {
        if let Some(number) = trans_number(trans) {
            self.remove(number);
        }
    }

    fn end(&mut self, number: u64, now: Timestamp) -> Option<(Over, Order)> {
        let out = self.remove(number)?;
        let done = out.word.map_or_else(
            || Done {
                sent: out.sent,
                first_byte: None,
                ended: now,
                connect_failed: false,
                failed: false,
                robots: None,
            },
            |word| *word,
        );
        let trans = out.order.trans;
        Some((Over { trans, done }, out.order))
    }

    fn remove(&mut self, number: u64) -> Option<Out> {
        let out = self.out.remove(&number)?;
        let key = place(&out.order);
        if self.by_url.get(&key) == Some(&number) {
            self.by_url.remove(&key);
        }
        Some(out)
    }
}

fn place(order: &Order) -> (u32, Box<str>) {
    (order.candidate.doc_id, order.url().as_str().into())
}
