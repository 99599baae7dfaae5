//! The counters: cheap enough to be kept for every request, exact enough to accuse somebody.
//!
//! One lock per host and one per address, each held for a few instructions; everything else is atomic.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::address;
use crate::layout::{Layout, robots};
use crate::place::{Place, What};
use crate::stats::{Busiest, Offence, ShortestGap, Stats, TrapVisits};
use crate::trap::{GOOD, Trap};

/// Cases kept of each kind of offence.
const EXAMPLES: usize = 5;

/// Everything counted about one web.
pub(crate) struct Counters {
    started: Instant,
    hosts: Vec<Mutex<HostLog>>,
    ips: Vec<Mutex<Pace>>,
    pages: Vec<PageLog>,
    /// In the order of `Trap::ALL`; empty when there are none.
    traps: Vec<TrapLog>,
    tally: Tally,
    before_robots: Fault,
    robots_violations: Fault,
    unlinked: Fault,
    misdirected: Fault,
    malformed: Fault,
}

/// Plain numbers, bumped where the thing happens.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) requests: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) robots_requests: AtomicU64,
    pub(crate) sitemap_requests: AtomicU64,
    pub(crate) asset_requests: AtomicU64,
    pub(crate) dns_queries: AtomicU64,
    pub(crate) redirects: AtomicU64,
    pub(crate) not_found: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) aborted: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
}

/// Adds one.
pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[derive(Default)]
struct PageLog {
    delivered: AtomicU32,
    not_modified: AtomicU32,
}

#[derive(Default)]
struct TrapLog {
    lures: AtomicU64,
    good: [AtomicU32; GOOD as usize],
}

#[derive(Default)]
struct HostLog {
    pace: Pace,
    /// Whether robots.txt was ever answered.
    robots: bool,
    /// Requests other than for robots.txt.
    asked: u32,
}

/// The rhythm of requests to one host or address.
#[derive(Default)]
struct Pace {
    last: Option<u64>,
    min_gap: Option<u64>,
    in_flight: u32,
    max_in_flight: u32,
}

#[derive(Default)]
struct Fault {
    count: AtomicU64,
    examples: Mutex<Vec<String>>,
}

/// A request that has arrived and is not answered yet.
pub(crate) struct InFlight<'a> {
    host: Option<&'a Mutex<HostLog>>,
    ip: Option<&'a Mutex<Pace>>,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(host) = self.host {
            let mut host = lock(host);
            host.pace.in_flight = host.pace.in_flight.saturating_sub(1);
        }
        if let Some(ip) = self.ip {
            let mut ip = lock(ip);
            ip.in_flight = ip.in_flight.saturating_sub(1);
        }
    }
}

impl Counters {
    pub(crate) fn new(layout: &Layout) -> Self {
        fn many<T: Default>(n: usize) -> Vec<T> {
            std::iter::repeat_with(T::default).take(n).collect()
        }
        Self {
            started: Instant::now(),
            hosts: many(layout.all_hosts() as usize),
            ips: many(layout.ips() as usize),
            pages: many(layout.total_pages()),
            traps: many((layout.all_hosts() - layout.honest_hosts()) as usize),
            tally: Tally::default(),
            before_robots: Fault::default(),
            robots_violations: Fault::default(),
            unlinked: Fault::default(),
            misdirected: Fault::default(),
            malformed: Fault::default(),
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Counts a request to a host and judges it; also says the how manieth it is, robots.txt aside.
    pub(crate) fn arrive(
        &self,
        layout: &Layout,
        host: u32,
        target: &str,
        what: Option<What>,
    ) -> (InFlight<'_>, u32) {
        let tally = &self.tally;
        bump(&tally.requests);
        match what {
            Some(What::Robots) => bump(&tally.robots_requests),
            Some(What::Sitemap(_)) => bump(&tally.sitemap_requests),
            Some(What::Style | What::Logo) => bump(&tally.asset_requests),
            _ => {}
        }
        let url = || match layout.name(host) {
            Some(name) => format!("http://{}{target}", name.authority),
            None => target.to_owned(),
        };
        if what.is_none() {
            self.unlinked.add(url);
        }
        if robots::forbids(target) {
            self.robots_violations.add(url);
        }
        let log = self.hosts.get(host as usize);
        let ip = self.ips.get(layout.ip_of(host) as usize);
        let mut nth = 0;
        if let Some(log) = log {
            let mut log = lock(log);
            log.pace.arrive(self.micros());
            if what != Some(What::Robots) {
                log.asked = log.asked.saturating_add(1);
                nth = log.asked;
                if !log.robots {
                    self.before_robots.add(url);
                }
            }
        }
        if let Some(ip) = ip {
            let mut ip = lock(ip);
            ip.arrive(self.micros());
        }
        (InFlight { host: log, ip }, nth)
    }

    /// From here on the host may be asked for more than robots.txt.
    pub(crate) fn robots_answered(&self, host: u32) {
        if let Some(log) = self.hosts.get(host as usize) {
            lock(log).robots = true;
        }
    }

    /// An answer of so many bytes goes out.
    pub(crate) fn sent(&self, bytes: usize) {
        let sent = &self.tally.bytes_sent;
        sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A page is written.
    pub(crate) fn delivered(&self, index: usize) {
        if let Some(page) = self.pages.get(index) {
            page.delivered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It was not read whole after all.
    pub(crate) fn not_delivered(&self, index: usize) {
        if let Some(page) = self.pages.get(index) {
            // A reset may have come between; what is not there cannot be taken back.
            let _ = page
                .delivered
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        }
    }

    /// The client's copy of a page was confirmed.
    pub(crate) fn not_modified(&self, index: usize) {
        if let Some(page) = self.pages.get(index) {
            page.not_modified.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A page of a trap is written.
    pub(crate) fn trapped(&self, trap: Trap, what: What) {
        let Some(log) = self.traps.get(trap as usize) else {
            return;
        };
        match what {
            What::Good(page) => {
                if let Some(page) = log.good.get(page as usize) {
                    page.fetch_add(1, Ordering::Relaxed);
                }
            }
            _ => bump(&log.lures),
        }
    }

    pub(crate) fn misdirected(&self, example: String) {
        bump(&self.tally.requests);
        self.misdirected.add(|| example);
    }

    pub(crate) fn malformed(&self, example: String) {
        self.malformed.add(|| example);
    }

    /// Forgets everything but what is in flight.
    pub(crate) fn reset(&self) {
        for host in &self.hosts {
            let mut host = lock(host);
            let pace = host.pace.restarted();
            *host = HostLog {
                pace,
                ..HostLog::default()
            };
        }
        for ip in &self.ips {
            let mut ip = lock(ip);
            *ip = ip.restarted();
        }
        for page in &self.pages {
            page.delivered.store(0, Ordering::Relaxed);
            page.not_modified.store(0, Ordering::Relaxed);
        }
        for trap in &self.traps {
            trap.lures.store(0, Ordering::Relaxed);
            for page in &trap.good {
                page.store(0, Ordering::Relaxed);
            }
        }
        for counter in self.tally.all() {
            counter.store(0, Ordering::Relaxed);
        }
        for case in [
            &self.before_robots,
            &self.robots_violations,
            &self.unlinked,
            &self.misdirected,
            &self.malformed,
        ] {
            case.count.store(0, Ordering::Relaxed);
            lock(&case.examples).clear();
        }
    }

    /// Everything, added up.
    pub(crate) fn stats(&self, layout: &Layout) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &self.tally;
        let mut stats = Stats {
            requests: read(&tally.requests),
            connections: read(&tally.connections),
            robots_requests: read(&tally.robots_requests),
            sitemap_requests: read(&tally.sitemap_requests),
            asset_requests: read(&tally.asset_requests),
            dns_queries: read(&tally.dns_queries),
            redirects: read(&tally.redirects),
            not_found: read(&tally.not_found),
            failures: read(&tally.failures),
            aborted: read(&tally.aborted),
            bytes_sent: read(&tally.bytes_sent),
            before_robots: self.before_robots.offence(),
            robots_violations: self.robots_violations.offence(),
            unlinked: self.unlinked.offence(),
            misdirected: self.misdirected.offence(),
            malformed: self.malformed.offence(),
            traps: self.trap_visits(),
            ..Stats::default()
        };
        self.add_pages(layout, &mut stats);
        self.add_pace(layout, &mut stats);
        stats
    }

    fn trap_visits(&self) -> Vec<TrapVisits> {
        let visits = Trap::ALL.iter().zip(&self.traps).map(|(trap, log)| {
            let asked = |page: &&AtomicU32| page.load(Ordering::Relaxed) > 0;
            TrapVisits {
                trap: trap.name().to_owned(),
                lures: log.lures.load(Ordering::Relaxed),
                good: log.good.iter().filter(asked).count() as u64,
                good_expected: GOOD.into(),
            }
        });
        visits.collect()
    }

    fn add_pages(&self, layout: &Layout, stats: &mut Stats) {
        for host in 0..layout.honest_hosts() {
            let expected = layout.is_expected(host);
            for number in 0..layout.pages(host) {
                let Some(page) = self.pages.get(layout.index(host, number)) else {
                    continue;
                };
                let delivered = page.delivered.load(Ordering::Relaxed);
                let confirmed = page.not_modified.load(Ordering::Relaxed);
                let place = Place {
                    host,
                    what: What::Page(number),
                };
                stats.delivered += u64::from(delivered);
                stats.not_modified += u64::from(confirmed);
                if delivered > 1 {
                    let again = u64::from(delivered - 1);
                    note(&mut stats.duplicates, again, || {
                        format!("{} ({delivered} times)", layout.url(place))
                    });
                }
                if expected {
                    stats.expected += 1;
                    if delivered > 0 || confirmed > 0 {
                        stats.fetched += 1;
                    } else {
                        note(&mut stats.missed, 1, || layout.url(place));
                    }
                }
            }
        }
    }

    fn add_pace(&self, layout: &Layout, stats: &mut Stats) {
        for (number, host) in (0..).zip(&self.hosts) {
            let name = || {
                let name = layout.name(number);
                name.map_or_else(String::new, |name| name.host.clone())
            };
            lock(host)
                .pace
                .add_to(&mut stats.max_per_host, &mut stats.min_host_gap, name);
        }
        for (number, ip) in (0..).zip(&self.ips) {
            let name = || address::ip(number).to_string();
            lock(ip).add_to(&mut stats.max_per_ip, &mut stats.min_ip_gap, name);
        }
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Tally {
    fn all(&self) -> [&AtomicU64; 11] {
        [
            &self.requests,
            &self.connections,
            &self.robots_requests,
            &self.sitemap_requests,
            &self.asset_requests,
            &self.dns_queries,
            &self.redirects,
            &self.not_found,
            &self.failures,
            &self.aborted,
            &self.bytes_sent,
        ]
    }
}

impl Pace {
    /// Called under the lock of its owner, and the clock is read under it too, so that times come in
    /// order.
    fn arrive(&mut self, now: u64) {
        if let Some(last) = self.last {
            let gap = now.saturating_sub(last);
            self.min_gap = Some(self.min_gap.map_or(gap, |min| min.min(gap)));
        }
        self.last = Some(now);
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
    }

    fn restarted(&self) -> Self {
        Self {
            in_flight: self.in_flight,
            ..Self::default()
        }
    }

    fn add_to(&self, busiest: &mut Busiest, gap: &mut ShortestGap, name: impl Fn() -> String) {
        if self.max_in_flight > busiest.requests {
            busiest.requests = self.max_in_flight;
            busiest.at = name();
        }
        if let Some(mine) = self.min_gap
            && gap.micros.is_none_or(|least| mine < least)
        {
            gap.micros = Some(mine);
            gap.at = name();
        }
    }
}

impl Fault {
    fn add(&self, example: impl FnOnce() -> String) {
        bump(&self.count);
        let mut examples = lock(&self.examples);
        if examples.len() < EXAMPLES {
            examples.push(example());
        }
    }

    fn offence(&self) -> Offence {
        Offence {
            count: self.count.load(Ordering::Relaxed),
            examples: lock(&self.examples).clone(),
        }
    }
}

fn note(offence: &mut Offence, times: u64, example: impl FnOnce() -> String) {
    offence.count += times;
    if offence.examples.len() < EXAMPLES {
        offence.examples.push(example());
    }
}

/// A counter is never left half changed, so one that a panicking thread held is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
