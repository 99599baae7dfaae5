//! One keyspace as its files have it: tables, and what the journals add to them.

use std::collections::{BTreeMap, BinaryHeap, Bound};
use std::sync::Arc;

use lsm_tree::{InternalValue, SeqNo, Slice};

use crate::table::{Keys, Rows, TableFile};

/// What a journal says of a key: when, and the value; none when it was removed.
type Fresh = (SeqNo, Option<Slice>);

/// A keyspace.
#[derive(Default)]
pub struct Space {
    pub(crate) tables: Vec<Arc<TableFile>>,
    fresh: BTreeMap<Slice, Fresh>,
}

impl Space {
    /// Takes what a journal has; of two the newer counts, and of two in one commit the later.
    pub(crate) fn write(&mut self, key: Slice, seqno: SeqNo, value: Option<Slice>) {
        let there = self.fresh.get(&key);
        if there.is_none_or(|(before, _)| *before <= seqno) {
            self.fresh.insert(key, (seqno, value));
        }
    }

    /// The sequence number of the newest record in a table.
    pub(crate) fn newest(&self) -> Option<SeqNo> {
        self.tables.iter().filter_map(|table| table.newest()).max()
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Slice> {
        let key = Slice::from(key);
        let only = (Bound::Included(key.clone()), Bound::Included(key.clone()));
        let mut best = self.fresh.get(&key).cloned();
        for table in self.tables.iter().filter(|table| table.covers(&only)) {
            let Some(item) = table.get(&key) else {
                continue;
            };
            let newer = best.as_ref().is_none_or(|best| best.0 < item.key.seqno);
            if newer {
                best = Some((item.key.seqno, value_of(item)));
            }
        }
        best?.1
    }

    /// The records in a range, ordered by key.
    pub fn scan(self: &Arc<Self>, keys: Keys) -> Merge {
        let tables = self.tables.iter().filter(|table| table.covers(&keys));
        let mut merge = Merge {
            rows: tables.map(|table| table.rows(keys.clone())).collect(),
            heads: BinaryHeap::new(),
            space: Arc::clone(self),
            after: keys.0.clone(),
            to: keys.1,
            next_fresh: None,
        };
        for source in 0..merge.rows.len() {
            merge.refill(source);
        }
        merge.refill_fresh();
        merge
    }
}

fn value_of(item: InternalValue) -> Option<Slice> {
    (!item.is_tombstone()).then_some(item.value)
}

/// The next record of one table. The least key is the greatest of these, of one key the newest.
struct Head {
    item: InternalValue,
    source: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (ours, theirs) = (&self.item.key, &other.item.key);
        let by_key = theirs.user_key.cmp(&ours.user_key);
        by_key.then_with(|| ours.seqno.cmp(&theirs.seqno))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Records of all tables and journals together, each key once and as it was written last.
pub struct Merge {
    rows: Vec<Rows>,
    heads: BinaryHeap<Head>,
    space: Arc<Space>,
    /// From where the journals are read on.
    after: Bound<Slice>,
    to: Bound<Slice>,
    next_fresh: Option<(Slice, Fresh)>,
}

impl Merge {
    fn refill(&mut self, source: usize) {
        if let Some(item) = self.rows.get_mut(source).and_then(Iterator::next) {
            self.heads.push(Head { item, source });
        }
    }

    fn refill_fresh(&mut self) {
        let range = (self.after.clone(), self.to.clone());
        let next = match is_empty(&range) {
            true => None,
            false => self.space.fresh.range(range).next(),
        };
        self.next_fresh = next.map(|(key, fresh)| (key.clone(), fresh.clone()));
        if let Some((key, _)) = &self.next_fresh {
            self.after = Bound::Excluded(key.clone());
        }
    }

    /// The newest version of the least key.
    fn step(&mut self) -> Option<(Slice, Option<Slice>)> {
        let least = self.heads.peek().map(|head| &head.item.key.user_key);
        let fresh = self.next_fresh.as_ref().map(|(key, _)| key);
        let key = match (least, fresh) {
            (Some(least), Some(fresh)) => least.min(fresh).clone(),
            (least, fresh) => least.or(fresh)?.clone(),
        };
        let mut best: Option<Fresh> = None;
        if self
            .next_fresh
            .as_ref()
            .is_some_and(|(next, _)| *next == key)
        {
            best = self.next_fresh.take().map(|(_, fresh)| fresh);
            self.refill_fresh();
        }
        while self
            .heads
            .peek()
            .is_some_and(|head| head.item.key.user_key == key)
        {
            let Some(Head { item, source }) = self.heads.pop() else {
                break;
            };
            self.refill(source);
            if best.as_ref().is_none_or(|best| best.0 < item.key.seqno) {
                best = Some((item.key.seqno, value_of(item)));
            }
        }
        Some((key, best.and_then(|(_, value)| value)))
    }
}

/// A range that the map would not take.
fn is_empty(range: &(Bound<Slice>, Bound<Slice>)) -> bool {
    use Bound::{Excluded, Included, Unbounded};
    match range {
        (Unbounded, _) | (_, Unbounded) => false,
        (Excluded(from), Excluded(to)) | (Excluded(from), Included(to)) => from >= to,
        (Included(from), Excluded(to)) => from >= to,
        (Included(from), Included(to)) => from > to,
    }
}

impl Iterator for Merge {
    type Item = (Slice, Slice);

    fn next(&mut self) -> Option<(Slice, Slice)> {
        loop {
            if let (key, Some(value)) = self.step()? {
                return Some((key, value));
            }
        }
    }
}
