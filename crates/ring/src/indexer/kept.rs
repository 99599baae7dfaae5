//! What the doc index has kept of hosts and origins, for the URL server.

use crate::error::Result;

use orbweaver_model::{Candidate, Pace, RobotsRecord};

use super::Work;

/// What the URL server gets.
pub(crate) enum Gift {
    /// An answer to its wish for candidates, and how their hosts have answered, in an earlier run or before it had to
    /// forget them.
    Candidates(Vec<Candidate>, Vec<(String, Pace)>),
    /// The robots.txt of an origin, when one is kept.
    Robots(String, Option<RobotsRecord>),
}

impl Work {
    /// Answers the questions for robots.txt files. They stay open when the disk fails.
    pub(super) fn recall(&mut self) -> Result<()> {
        while let Some(origin) = self.recalls.last() {
            let kept = self.index.robots(origin)?;
            if let Some(origin) = self.recalls.pop() {
                (self.give)(Gift::Robots(origin, kept));
            }
        }
        Ok(())
    }

    pub(super) fn paces(&self, found: &[Candidate]) -> Vec<(String, Pace)> {
        let hosts = found.chunk_by(|one, other| one.key.host == other.key.host);
        let hosts = hosts.filter_map(|urls| self.index.host(urls.first()?.key.host));
        let asked = hosts.filter(|host| host.pace != Pace::default());
        asked.map(|host| (host.name.clone(), host.pace)).collect()
    }
}
