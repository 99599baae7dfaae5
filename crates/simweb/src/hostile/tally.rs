//! What the hostile servers see of their visitors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was seen of the visitors of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// Connections.
    pub connections: u64,
    /// Requests, robots.txt not counted.
    pub requests: u64,
    /// Requests for robots.txt.
    pub robots: u64,
    /// Bytes that the kernel took for the visitor.
    pub bytes: u64,
    /// The targets and how often each was asked for; the first thousand of them.
    pub targets: BTreeMap<String, u64>,
}

/// Targets kept of one case.
const MAX_TARGETS: usize = 1000;

/// Trespasses kept in words.
const MAX_TRESPASSES: usize = 100;

/// The counts of all cases.
pub(crate) struct CaseCounts {
    cases: Vec<Mutex<Visits>>,
    trespasses: Mutex<Vec<String>>,
    endless: AtomicU64,
    endless_most: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CaseCounts {
    pub(crate) fn new(cases: usize) -> Self {
        Self {
            cases: (0..cases).map(|_| Mutex::default()).collect(),
            trespasses: Mutex::default(),
            endless: AtomicU64::new(0),
            endless_most: AtomicU64::new(0),
        }
    }

    pub(crate) fn visits(&self, case: usize) -> Visits {
        self.cases
            .get(case)
            .map(|visits| lock(visits).clone())
            .unwrap_or_default()
    }

    pub(crate) fn trespasses(&self) -> Vec<String> {
        lock(&self.trespasses).clone()
    }

    pub(crate) fn trespass(&self, what: String) {
        let mut all = lock(&self.trespasses);
        if all.len() < MAX_TRESPASSES {
            all.push(what);
        }
    }

    /// A connection; how many there were before.
    pub(crate) fn connected(&self, case: usize) -> u64 {
        self.change(case, |visits| {
            visits.connections += 1;
            visits.connections - 1
        })
    }

    /// A request; how often its target was asked for before.
    pub(crate) fn asked(&self, case: usize, target: &str) -> u64 {
        self.change(case, |visits| {
            if target == "/robots.txt" {
                visits.robots += 1;
                return visits.robots - 1;
            }
            visits.requests += 1;
            if let Some(count) = visits.targets.get_mut(target) {
                *count += 1;
                return *count - 1;
            }
            if visits.targets.len() < MAX_TARGETS {
                visits.targets.insert(target.to_owned(), 1);
            }
            0
        })
    }

    pub(crate) fn sent(&self, case: usize, bytes: usize) {
        self.change(case, |visits| visits.bytes += bytes as u64);
    }

    fn change<T: Default>(&self, case: usize, change: impl FnOnce(&mut Visits) -> T) -> T {
        self.cases
            .get(case)
            .map(|visits| change(&mut lock(visits)))
            .unwrap_or_default()
    }

    /// Now, and at most.
    pub(crate) fn endless(&self) -> (u64, u64) {
        (
            self.endless.load(Ordering::Relaxed),
            self.endless_most.load(Ordering::Relaxed),
        )
    }

    /// Counts a body without end until the returned guard is dropped.
    pub(crate) fn endless_begins(&self) -> EndlessGuard<'_> {
        let now = self.endless.fetch_add(1, Ordering::Relaxed) + 1;
        self.endless_most.fetch_max(now, Ordering::Relaxed);
        EndlessGuard(self)
    }
}

pub(crate) struct EndlessGuard<'a>(&'a CaseCounts);

impl Drop for EndlessGuard<'_> {
    fn drop(&mut self) {
        self.0.endless.fetch_sub(1, Ordering::Relaxed);
    }
}
