//! The state of a crawl in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use orbweaver_config::units::moment;
use orbweaver_docindex::{Ledger, Reader};
use orbweaver_model::{Column, OutcomeClass, Timestamp};
use orbweaver_urlserver::Census;

use super::hosts::Hosts;
use crate::error::Result;

/// The state of a crawl in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether a process is crawling now.
    pub running: bool,
    /// Whether an operator has paused it.
    pub paused: bool,
    /// URLs known.
    pub accepted: u64,
    /// URLs that were fetched, or were found unchanged.
    pub done: u64,
    /// URLs that failed.
    pub failed: u64,
    /// URLs that are not fetched: scope, robots.txt, a trap rule or a budget refuses them.
    pub refused: u64,
    /// Those of the refused that do not belong to the crawl; policy, robots.txt or a trap rule denied the others.
    pub out_of_scope: u64,
    /// URLs still to be fetched.
    pub queued: u64,
    /// accepted = done + failed + refused + queued.
    pub balanced: bool,
    /// Pages among the done.
    pub pages: u64,
    /// Requests that were made: for pages and robots.txt files, with repetitions and redirects.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Hosts that got a request for a page.
    pub hosts: u64,
    /// Hosts by state, and those that stand out.
    pub hosts_seen: Hosts,
    /// What the URL server works on; none while no crawl runs.
    pub serving: Option<Serving>,
    /// URLs by outcome class, without the classes that have none.
    pub classes: BTreeMap<String, u64>,
}

/// Hosts with a queue in the URL server, by what they wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Hosts with a queue.
    pub hosts: usize,
    /// Due as soon as a request may be sent.
    pub ready: usize,
    /// For the gap after their last request, or for the time in Retry-After.
    pub waiting_for_time: usize,
    /// For the turn of their address.
    pub waiting_for_address: usize,
    /// For their robots.txt.
    pub waiting_for_robots: usize,
    /// For their addresses.
    pub waiting_for_dns: usize,
    /// For an answer.
    pub busy: usize,
    /// Requests that are out.
    pub in_flight: usize,
    /// URLs in the queues, and beside them.
    pub queued: usize,
    /// URLs for which no queue is free.
    pub leftover: usize,
    /// When the next of those that wait for a time is due.
    pub next: Option<String>,
}

impl Status {
    /// Reads it from the doc index, as of a crawl that does not run.
    pub fn read(reader: &Reader, now: Timestamp) -> Result<Self> {
        let (hosts, hosts_seen) = Hosts::read(reader, now)?;
        let ledger: Ledger = reader.ledger()?;
        let classes = OutcomeClass::ALL
            .iter()
            .map(|class| (class.to_string(), ledger.class(*class)))
            .filter(|(_, count)| *count > 0)
            .collect();
        Ok(Self {
            running: false,
            paused: false,
            accepted: ledger.accepted,
            done: ledger.column(Column::Done),
            failed: ledger.column(Column::Failed),
            refused: ledger.column(Column::Refused),
            out_of_scope: ledger.out_of_scope,
            queued: ledger.queued,
            balanced: ledger.balances(),
            pages: ledger.documents(),
            requests: ledger.requests(),
            bytes: ledger.bytes,
            hosts,
            hosts_seen,
            serving: None,
            classes,
        })
    }

    /// Adds what the URL server of a running crawl has counted.
    pub fn set_census(&mut self, census: &Census) {
        self.paused = census.paused;
        self.serving = Some(Serving {
            hosts: census.hosts,
            ready: census.ready,
            waiting_for_time: census.waiting_for_time,
            waiting_for_address: census.waiting_for_ip,
            waiting_for_robots: census.waiting_for_robots,
            waiting_for_dns: census.resolving,
            busy: census.busy,
            in_flight: census.orders,
            queued: census.queued,
            leftover: census.leftover,
            next: census.next_wake.map(moment),
        });
    }
}
