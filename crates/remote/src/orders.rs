//! The orders that are out with spiders: who has which, what was heard of it, and when it counts as lost.
//!
//! Pure bookkeeping: the time is passed in, and sending is left to others. An order is over when its spider has said
//! DONE and its result has come from the store; where no store is asked, DONE alone is the end of it. A lost order keeps
//! its name until it goes out again, for until then its result may still come.

mod out;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use orbweaver_model::{Order, Timestamp, TransId};
use orbweaver_urlserver::Done;
use orbweaver_wire::line::{trans_number, trans_of};

use self::out::Out;
pub use self::out::{Over, Wish};

/// The patience with an order doubles each time it is sent again, this often: a setting that is too short for how a
/// spider works must not keep it from ever being done.
const MAX_DOUBLINGS: u32 = 6;

/// What a spider has said nothing of for too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Orders that it has lost.
    pub lost: usize,
    /// Its other orders of which something was heard.
    pub at_work: usize,
}

/// All of them. As many as the URL server lets out, which is its `concurrency`.
#[derive(Debug)]
pub struct Orders {
    /// By the number that stands for the transaction on the wire.
    out: HashMap<u64, Out>,
    /// Results name the document and the URL, not the transaction.
    by_url: HashMap<(u32, Box<str>), u64>,
    /// To be sent for the first time, or granted to be sent again; as many as are out at most.
    waiting: VecDeque<u64>,
    /// Lost, and when it is worth asking whether they may be sent again. The same bound.
    lost: BTreeSet<(Timestamp, u64)>,
    /// Names before, and what they are called now; one for each order at most.
    former: HashMap<u64, u64>,
    /// How many each spider has, so that choosing one does not count them all.
    held: Vec<usize>,
    /// How long each spider may be silent, where it was found to need more than the setting.
    patience: BTreeMap<usize, Duration>,
    timeout: Duration,
    /// DONE is not enough: the result must come too.
    awaits_results: bool,
    /// Words about orders that are not out, no longer under that number, or with somebody else.
    pub late: u64,
}

impl Orders {
    /// No orders yet. An order of which nothing is heard for `timeout` is lost; with `awaits_results` DONE alone does not end one.
    pub fn new(timeout: Duration, awaits_results: bool) -> Self {
        Self {
            out: HashMap::new(),
            by_url: HashMap::new(),
            waiting: VecDeque::new(),
            lost: BTreeSet::new(),
            former: HashMap::new(),
            held: Vec::new(),
            patience: BTreeMap::new(),
            timeout,
            awaits_results,
            late: 0,
        }
    }

    /// True when no order is out.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes an order that is to go out.
    pub fn add(&mut self, order: Order, now: Timestamp) {
        // The settings keep slots and windows within what a number can say.
        let Some(number) = trans_number(order.trans) else {
            return;
        };
        self.by_url.insert(place(&order), number);
        self.out.insert(number, Out::new(order, now));
        self.waiting.push_back(number);
    }

    /// The next order that waits for a spider.
    pub fn next_waiting(&mut self) -> Option<&Order> {
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
    pub fn give(&mut self, spider: usize, now: Timestamp) {
        let Some(number) = self.waiting.pop_front() else {
            return;
        };
        let Some(out) = self.out.get_mut(&number) else {
            return;
        };
        out.spider = Some(spider);
        out.sent = Some(now);
        out.heard = now;
        self.hold(spider);
    }

    fn hold(&mut self, spider: usize) {
        if self.held.len() <= spider {
            self.held.resize(spider + 1, 0);
        }
        if let Some(held) = self.held.get_mut(spider) {
            *held += 1;
        }
    }

    /// Orders that a spider has.
    pub fn count_of(&self, spider: usize) -> usize {
        let held = self.held.get(spider).copied().unwrap_or_default();
        let counted = || (self.out.values()).filter(|out| out.spider == Some(spider));
        debug_assert_eq!(held, counted().count(), "orders of spider {spider}");
        held
    }

    fn let_go(&mut self, spider: Option<usize>) {
        if let Some(held) = spider.and_then(|spider| self.held.get_mut(spider)) {
            *held = held.saturating_sub(1);
        }
    }

    /// A spider is at work on an order.
    pub fn working(&mut self, spider: usize, number: u64, now: Timestamp) {
        if let Some(out) = self.held_by(spider, number, now) {
            out.heard = now;
        }
    }

    /// The order of this number, when it is with the one who speaks of it. Who was never given it, or has lost it to
    /// another, knows nothing of it. Who speaks of one that is lost and was not sent again has it still; and who speaks
    /// too late, of that or of an earlier name, is slower than was thought.
    fn held_by(&mut self, spider: usize, number: u64, now: Timestamp) -> Option<&mut Out> {
        let current = self.former.get(&number).copied().unwrap_or(number);
        let out = self.out.get(&current);
        let had =
            out.filter(|out| out.spider.is_none_or(|it| it == spider) && out.had == Some(spider));
        let sent = had.and_then(|out| match out.former {
            Some((former, sent)) if former == number => Some(sent),
            _ if out.is_lost => out.sent,
            _ => None,
        });
        if let Some(sent) = sent {
            self.learn(spider, now.since(sent));
        }
        let lost = |out: &Out| out.is_lost && sent.is_some();
        if self.out.get(&number).is_some_and(lost) {
            if let Some(out) = self.out.get_mut(&number) {
                out.spider = Some(spider);
                out.is_lost = false;
            }
            self.hold(spider);
        }
        let found = self.out.get_mut(&number);
        let own = found.filter(|out| out.spider == Some(spider));
        if own.is_none() {
            self.late += 1;
        }
        own
    }

    /// A spider has spoken of an order so long after it got it, and had been given up by then.
    fn learn(&mut self, spider: usize, after: Duration) {
        let most = self.timeout * (1 << MAX_DOUBLINGS);
        let patience = self.patience.entry(spider).or_default();
        *patience = (after * 2).min(most).max(*patience);
    }

    /// A spider is done with an order. What is over by that, and without a store the order too.
    pub fn done(&mut self, spider: usize, number: u64, now: Timestamp) -> Option<(Over, Order)> {
        let awaits_results = self.awaits_results;
        let out = self.held_by(spider, number, now)?;
        out.done_at = Some(now);
        out.heard = now;
        if awaits_results && out.word.is_none() {
            return None;
        }
        self.end(number, now)
    }

    /// The order that a result answers, and when it was sent.
    pub fn answered_by(&self, doc_id: u32, url: &str) -> Option<(u64, Order, Option<Timestamp>)> {
        let number = *self.by_url.get(&(doc_id, url.into()))?;
        let out = self.out.get(&number)?;
        Some((number, out.order.clone(), out.written()))
    }

    /// The order whose HEAD a spider tells of, and when it was sent.
    pub fn headed(
        &mut self,
        spider: usize,
        number: u64,
        now: Timestamp,
    ) -> Option<(u64, Order, Option<Timestamp>)> {
        let out = self.held_by(spider, number, now)?;
        out.heard = now;
        // Told twice, it counts once.
        let is_new = out.word.is_none();
        is_new.then(|| (number, out.order.clone(), out.written()))
    }

    /// The orders that a spider has: number, order, and whether the URL server has been told that it was sent.
    pub fn of(&self, spider: usize) -> impl Iterator<Item = (u64, &Order, bool)> {
        let of_it = (self.out.iter()).filter(move |(_, out)| out.spider == Some(spider));
        of_it.map(|(number, out)| (*number, &out.order, out.announced))
    }

    /// The URL server is told that the request of an order was written, or was to be.
    pub fn announced(&mut self, trans: TransId) {
        let out = trans_number(trans).and_then(|number| self.out.get_mut(&number));
        if let Some(out) = out {
            out.announced = true;
        }
    }

    /// A spider says that the request of an order has been written. The order, unless that is known.
    pub fn requested(&mut self, spider: usize, number: u64, now: Timestamp) -> Option<TransId> {
        let out = self.held_by(spider, number, now)?;
        out.heard = now;
        out.requested.get_or_insert(now);
        (!out.announced).then_some(out.order.trans)
    }

    /// A spider has given an order up, as it was told. The order, unless its result is here.
    pub fn stopped(&mut self, spider: usize, number: u64, now: Timestamp) -> Option<TransId> {
        let out = self.held_by(spider, number, now)?;
        out.word.is_none().then_some(out.order.trans)
    }

    /// Takes out an order that is to go back to where it came from.
    pub fn take(&mut self, trans: TransId) -> Option<Order> {
        self.remove(trans_number(trans)?).map(|out| out.order)
    }

    /// Where an order is that is to be given up; none when it is over, or as good as over.
    pub fn wish_to_stop(&self, trans: TransId) -> Option<Wish> {
        let number = trans_number(trans)?;
        self.out.get(&number)?.wish(number)
    }

    /// The orders that may not have been sent and that are not wanted any more.
    pub fn unsent(&self, unwanted: impl Fn(&Order) -> bool) -> Vec<(TransId, Wish)> {
        let found = (self.out.iter())
            .filter(|(_, out)| out.requested.is_none() && unwanted(&out.order))
            .filter_map(|(number, out)| Some((out.order.trans, out.wish(*number)?)));
        found.collect()
    }

    /// The result of an order has come, after a fetch of this length, and means this. What is over by that.
    pub fn result(
        &mut self,
        number: u64,
        word: Done,
        took: Duration,
        now: Timestamp,
    ) -> Option<Over> {
        let out = self.out.get_mut(&number)?;
        out.word = Some(Box::new(word));
        out.took = Some(took);
        // One that no spider has any more will be said DONE by nobody.
        if out.done_at.is_none() && out.spider.is_some() {
            return None;
        }
        self.end(number, now).map(|(over, _)| over)
    }

    /// A spider is gone. What it had is over where its result is here, and lost where not.
    pub fn gone(&mut self, spider: usize, now: Timestamp) -> Vec<Over> {
        self.sort_out(now, |out| out.spider == Some(spider)).0
    }

    /// Orders of which nothing was heard for too long: those that are over, and by spider how many are lost.
    pub fn overdue(&mut self, now: Timestamp) -> (Vec<Over>, BTreeMap<usize, Silence>) {
        let timeout = self.timeout;
        let learnt = std::mem::take(&mut self.patience);
        let (over, mut silent) = self.sort_out(now, |out| {
            let patience = timeout * (1 << out.losses.min(MAX_DOUBLINGS));
            out.spider.is_some_and(|spider| {
                let learnt = learnt.get(&spider).copied().unwrap_or_default();
                now.since(out.heard) >= patience.max(learnt)
            })
        });
        self.patience = learnt;
        if !silent.is_empty() {
            for out in self.out.values() {
                let silence = out.spider.and_then(|spider| silent.get_mut(&spider));
                if let Some(silence) = silence {
                    silence.at_work += usize::from(Some(out.heard) > out.sent);
                }
            }
        }
        (over, silent)
    }

    fn sort_out(
        &mut self,
        now: Timestamp,
        concerned: impl Fn(&Out) -> bool,
    ) -> (Vec<Over>, BTreeMap<usize, Silence>) {
        let numbers: Vec<u64> = (self.out.iter())
            .filter(|(_, out)| concerned(out))
            .map(|(number, _)| *number)
            .collect();
        let mut over = Vec::new();
        let mut silent = BTreeMap::<usize, Silence>::new();
        for number in numbers {
            let has_result = self.out.get(&number).is_some_and(|out| out.word.is_some());
            if has_result {
                over.extend(self.end(number, now).map(|(over, _)| over));
            } else if let Some(spider) = self.lose(number, now) {
                silent.entry(spider).or_default().lost += 1;
            }
        }
        (over, silent)
    }

    /// An order is lost: it waits to be sent again. Who had it.
    fn lose(&mut self, number: u64, now: Timestamp) -> Option<usize> {
        let out = self.out.get_mut(&number)?;
        let spider = out.spider.take();
        out.had = spider;
        out.is_lost = true;
        out.announced = false;
        out.requested = None;
        out.done_at = None;
        out.losses += 1;
        self.let_go(spider);
        self.lost.insert((now, number));
        spider
    }

    /// The lost order that is to be asked for next, when it is time. It has to be renamed, put off or forgotten.
    pub fn next_lost(&mut self, now: Timestamp) -> Option<TransId> {
        while let Some((at, number)) = self.lost.first().copied()
            && at <= now
        {
            self.lost.pop_first();
            // Its result may have come by another way meanwhile, or a word of who has it.
            if self
                .out
                .get(&number)
                .is_some_and(|out| out.spider.is_none())
            {
                return Some(trans_of(number));
            }
        }
        None
    }

    /// When it is time for the next lost order.
    pub fn lost_at(&self) -> Option<Timestamp> {
        self.lost.first().map(|(at, _)| *at)
    }

    /// A lost order has to wait until then.
    pub fn put_off(&mut self, trans: TransId, until: Timestamp) {
        self.lost
            .extend(trans_number(trans).map(|number| (until, number)));
    }

    /// A lost order has a new name and goes out next.
    pub fn rename(&mut self, old: TransId, new: TransId) {
        let (Some(old), Some(new)) = (trans_number(old), trans_number(new)) else {
            return;
        };
        let Some(mut out) = self.out.remove(&old) else {
            return;
        };
        out.order.trans = trans_of(new);
        out.is_lost = false;
        if let Some((older, _)) = out.former.take() {
            self.former.remove(&older);
        }
        out.former = out.sent.map(|sent| (old, sent));
        self.former.insert(old, new);
        self.by_url.insert(place(&out.order), new);
        self.out.insert(new, out);
        self.waiting.push_front(new);
    }

    /// The URL server does not know this order any more.
    pub fn forget(&mut self, trans: TransId) {
        if let Some(number) = trans_number(trans) {
            self.remove(number);
        }
    }

    fn end(&mut self, number: u64, now: Timestamp) -> Option<(Over, Order)> {
        let out = self.remove(number)?;
        Some(out.end(now))
    }

    fn remove(&mut self, number: u64) -> Option<Out> {
        let out = self.out.remove(&number)?;
        self.let_go(out.spider);
        if let Some((former, _)) = out.former {
            self.former.remove(&former);
        }
        let key = place(&out.order);
        if self.by_url.get(&key) == Some(&number) {
            self.by_url.remove(&key);
        }
        Some(out)
    }
}

fn place(order: &Order) -> (u32, Box<str>) {
    let doc_id = order.page().map_or(0, |page| page.doc_id);
    (doc_id, order.url().as_str().into())
}

#[cfg(test)]
mod tests {
    use orbweaver_model::{Candidate, CrawlUrl, LinkKind, Subject, UrlKey};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn order(slot: u32, generation: u32) -> Order {
        let url = CrawlUrl::from_canonical(&format!("http://h{slot}/")).unwrap();
        Order {
            trans: TransId {
                generation,
                slot,
                active: 0,
            },
            ip: [127, 0, 0, 1].into(),
            subject: Subject::Page(Candidate {
                key: UrlKey { host: 1, url: 1 },
                doc_id: slot,
                url,
                kind: LinkKind::A,
                depth: 0,
                attempts: 0,
                chain: Vec::new(),
                revisit: None,
            }),
            announce: true,
        }
    }

    fn word() -> Done {
        Done {
            sent: None,
            first_byte: None,
            ended: at(1),
            connect_failed: false,
            failed: false,
            robots: None,
        }
    }

    fn out(awaits_results: bool) -> (Orders, u64) {
        let mut orders = Orders::new(Duration::from_secs(10), awaits_results);
        orders.add(order(3, 1), at(0));
        assert!(orders.next_waiting().is_some());
        orders.give(0, at(0));
        assert!(orders.next_waiting().is_none());
        (orders, trans_number(order(3, 1).trans).unwrap())
    }

    #[test]
    fn an_order_is_over_when_both_words_have_come_in_either_order() {
        let (mut orders, id) = out(true);
        assert!(orders.done(0, id, at(1)).is_none());
        let (found, _, sent) = orders.answered_by(3, "http://h3/").unwrap();
        assert_eq!((found, sent), (id, Some(at(0))));
        assert!(orders.result(id, word(), Duration::ZERO, at(2)).is_some());
        assert!(orders.is_empty());

        let (mut orders, id) = out(true);
        assert!(orders.result(id, word(), Duration::ZERO, at(1)).is_none());
        assert!(orders.done(0, id, at(2)).is_some());
        assert!(orders.is_empty() && orders.answered_by(3, "http://h3/").is_none());

        let (mut orders, id) = out(false);
        assert!(orders.done(0, id, at(1)).is_some());
        assert!(orders.done(0, id, at(1)).is_none());
        assert_eq!(orders.late, 1);
    }

    #[test]
    fn silence_makes_it_lost_and_words_put_that_off() {
        let (mut orders, id) = out(true);
        orders.working(0, id, at(8));
        assert!(orders.overdue(at(17)).1.is_empty() && orders.lost_at().is_none());
        let (over, silent) = orders.overdue(at(18));
        assert!(over.is_empty());
        let one = Silence {
            lost: 1,
            at_work: 0,
        };
        assert_eq!(silent, BTreeMap::from([(0, one)]));
        assert_eq!(orders.lost_at(), Some(at(18)));
        assert_eq!(orders.next_lost(at(18)), Some(order(3, 1).trans));
        // It is put off as often as it takes, and has its old name until it goes out.
        orders.put_off(order(3, 1).trans, at(19));
        assert_eq!(orders.next_lost(at(18)), None);
        assert!(orders.next_waiting().is_none());
        assert_eq!(orders.next_lost(at(19)), Some(order(3, 1).trans));
        orders.rename(order(3, 1).trans, order(3, 2).trans);
        // The old name means nothing any more; the new one waits for a spider.
        assert!(orders.done(0, id, at(19)).is_none());
        assert_eq!(orders.late, 1);
        assert_eq!(
            orders.next_waiting().map(|order| order.trans.generation),
            Some(2)
        );
        // The patience with it grows: it had taken 19 seconds.
        orders.give(0, at(19));
        assert!(orders.overdue(at(56)).1.is_empty());
        assert_eq!(orders.overdue(at(57)).1.len(), 1);
        // Its result may still come by the first fetch, and then it is over.
        let (new, ..) = orders.answered_by(3, "http://h3/").unwrap();
        assert!(orders.result(new, word(), Duration::ZERO, at(58)).is_some());
        assert!(orders.next_waiting().is_none() && orders.next_lost(at(99)).is_none());
    }

    #[test]
    fn a_spider_that_speaks_too_late_is_given_more_time() {
        let (mut orders, id) = out(false);
        assert_eq!(orders.overdue(at(10)).1.len(), 1);
        // It was not sent again yet: who had it has it still.
        orders.working(0, id, at(12));
        assert_eq!((orders.late, orders.count_of(0)), (0, 1));
        assert!(orders.next_lost(at(99)).is_none());
        // Twice as long as it took is what it gets from now on.
        orders.add(order(4, 1), at(12));
        orders.next_waiting();
        orders.give(0, at(12));
        assert!(orders.overdue(at(31)).1.is_empty());
        let lost = orders.overdue(at(36)).1;
        assert_eq!(lost.values().map(|it| it.lost).sum::<usize>(), 2);
        let first = orders.next_lost(at(36)).unwrap();
        let mut second = first;
        second.generation += 1;
        orders.rename(first, second);
        orders.next_waiting();
        orders.give(0, at(36));
        // A word about the name before counts for no order, but it tells how long it takes.
        assert!(
            orders
                .done(0, trans_number(first).unwrap(), at(46))
                .is_none()
        );
        assert_eq!(orders.late, 1);
        assert!(orders.overdue(at(36 + 67)).1.is_empty());
        assert!(
            orders
                .done(0, trans_number(second).unwrap(), at(104))
                .is_some()
        );
        assert!(orders.former.is_empty());
    }

    #[test]
    fn what_a_dead_spider_had_is_over_where_the_result_is_here() {
        let mut orders = Orders::new(Duration::from_secs(10), true);
        for slot in [1, 2, 3] {
            orders.add(order(slot, 1), at(0));
        }
        for spider in [0, 0, 1] {
            orders.next_waiting();
            orders.give(spider, at(0));
        }
        assert_eq!((orders.count_of(0), orders.count_of(1)), (2, 1));
        let first = trans_number(order(1, 1).trans).unwrap();
        assert!(
            orders
                .result(first, word(), Duration::ZERO, at(1))
                .is_none()
        );
        let over = orders.gone(0, at(2));
        assert_eq!(over.len(), 1);
        assert_eq!(orders.next_lost(at(2)), Some(order(2, 1).trans));
        orders.rename(order(2, 1).trans, order(2, 2).trans);
        assert_eq!((orders.count_of(0), orders.count_of(1)), (0, 1));
    }

    #[test]
    fn a_word_about_an_order_of_somebody_else_is_passed_over() {
        let (mut orders, id) = out(false);
        assert!(orders.done(1, id, at(1)).is_none());
        orders.working(1, id, at(9));
        assert_eq!(orders.late, 2);
        assert_eq!(orders.overdue(at(10)).1.len(), 1);
        assert!(orders.next_lost(at(10)).is_some());
        orders.rename(order(3, 1).trans, order(3, 2).trans);
        // It waits for a spider: nobody has it, so nobody can be done with it.
        let new = trans_number(order(3, 2).trans).unwrap();
        assert!(orders.done(0, new, at(11)).is_none());
        assert!(!orders.is_empty());
    }

    #[test]
    fn what_a_spider_knows_of_a_request_counts() {
        let trans = order(3, 1).trans;
        let mut waiting = Orders::new(Duration::from_secs(10), true);
        waiting.add(order(3, 1), at(0));
        assert_eq!(waiting.wish_to_stop(trans), Some(Wish::Here));
        let (mut orders, id) = out(true);
        assert_eq!(orders.wish_to_stop(trans), Some(Wish::With(0, id)));
        assert_eq!(
            orders.of(0).map(|(number, ..)| number).collect::<Vec<_>>(),
            [id]
        );
        // Somebody else knows nothing of it.
        assert_eq!(orders.requested(1, id, at(2)), None);
        assert_eq!(orders.unsent(|_| true), [(trans, Wish::With(0, id))]);
        assert_eq!(orders.unsent(|_| false), []);
        assert_eq!(orders.requested(0, id, at(3)), Some(trans));
        orders.announced(trans);
        assert_eq!(orders.requested(0, id, at(4)), None, "announced once");
        assert_eq!(orders.unsent(|_| true), [], "it is on its way");
        let (_, _, written) = orders.answered_by(3, "http://h3/").unwrap();
        assert_eq!(written, Some(at(3)));
        // Given up, it is taken out as it came.
        assert_eq!(orders.stopped(0, id, at(5)), Some(trans));
        assert_eq!(orders.take(trans), Some(order(3, 1)));
        assert!(orders.is_empty() && orders.count_of(0) == 0);
        assert_eq!(orders.wish_to_stop(trans), None);
    }

    #[test]
    fn a_head_is_a_result_and_counts_once() {
        let (mut orders, id) = out(true);
        let (number, found, written) = orders.headed(0, id, at(2)).unwrap();
        assert_eq!((number, found, written), (id, order(3, 1), Some(at(0))));
        assert!(
            orders
                .result(id, word(), Duration::from_secs(1), at(2))
                .is_none()
        );
        assert!(orders.headed(0, id, at(2)).is_none());
        assert_eq!(orders.stopped(0, id, at(2)), None, "its result is here");
        assert!(orders.done(0, id, at(3)).is_some());
    }
}
