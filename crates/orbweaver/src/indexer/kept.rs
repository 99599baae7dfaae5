//! What the doc index has kept of the hosts whose candidates go to the URL server.

use anyhow::Result;

use orbweaver_model::{Candidate, Pace, RobotsRecord};

use super::Work;

/// What the URL server must know of hosts before it gets their candidates.
pub(crate) struct Kept {
    /// The robots.txt of origins, from an earlier run.
    pub(crate) robots: Vec<(String, RobotsRecord)>,
    /// How hosts have answered, in an earlier run or before the URL server had to forget them.
    pub(crate) paces: Vec<(String, Pace)>,
}

impl Work {
    pub(super) fn kept(&mut self, found: &[Candidate]) -> Result<Kept> {
        Ok(Kept {
            robots: self.robots(found)?,
            paces: self.paces(found),
        })
    }

    /// The robots.txt files that an earlier run has kept for origins that this one comes to first.
    fn robots(&mut self, found: &[Candidate]) -> Result<Vec<(String, RobotsRecord)>> {
        let mut kept = Vec::new();
        for candidate in found.iter().filter(|_| self.index.resumed()) {
            let origin = candidate.url.origin();
            if self.origins.insert(self.index.seed().hash(origin))
                && let Some(record) = self.index.robots(origin)?
            {
                kept.push((origin.to_owned(), record));
            }
        }
        Ok(kept)
    }

    fn paces(&self, found: &[Candidate]) -> Vec<(String, Pace)> {
        let hosts = found.chunk_by(|one, other| one.key.host == other.key.host);
        let hosts = hosts.filter_map(|urls| self.index.host(urls.first()?.key.host));
        let asked = hosts.filter(|host| host.pace != Pace::default());
        asked.map(|host| (host.name.clone(), host.pace)).collect()
    }
}
