//! What the doc index gives to the URL server.

use std::collections::HashMap;

use orbweaver_docindex::DocIndex;
use orbweaver_model::{Candidate, Pace, RobotsRecord};

/// What the URL server gets.
pub(crate) enum Supply {
    /// An answer to its request for candidates, and how their hosts have answered, in an earlier run or before it had to
    /// forget them.
    Candidates(Vec<Candidate>, Vec<(String, Pace)>),
    /// The robots.txt of an origin, when one is kept.
    Robots(String, Option<RobotsRecord>),
}

/// How the hosts of these candidates have answered.
pub(super) fn paces(index: &DocIndex, found: &[Candidate]) -> Vec<(String, Pace)> {
    let hosts = found.chunk_by(|one, other| one.key.host == other.key.host);
    let hosts = hosts.filter_map(|urls| index.host(urls.first()?.key.host));
    let asked = hosts.filter(|host| host.pace != Pace::default());
    asked.map(|host| (host.name.clone(), host.pace)).collect()
}

/// Hosts that have just got enough URLs until the next request of the URL server.
pub(super) fn well_supplied(found: &[Candidate], per_host: usize) -> impl Iterator<Item = u64> {
    let mut counts = HashMap::new();
    for candidate in found {
        *counts.entry(candidate.key.host).or_insert(0usize) += 1;
    }
    counts
        .into_iter()
        .filter(move |(_, count)| count * 2 >= per_host)
        .map(|(host, _)| host)
}
