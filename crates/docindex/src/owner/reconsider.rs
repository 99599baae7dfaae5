//! Which URLs are to be judged again.

use orbweaver_model::{Event, UrlKey};

use super::Owner;
use crate::error::Result;
use crate::log::Log;
use crate::reader::Entry;
use crate::record::{Fate, LinkRecord, decode};

/// URLs marked in one commit.
const GROUP: usize = 4096;

impl<L: Log> Owner<L> {
    /// Marks what the rules have refused on some hosts, by name, to be judged again by other rules; also what they took
    /// for a requisite only. With `documents` everything that was fetched is marked too, for it may have links that the
    /// old rules did not even look at.
    pub fn rules_changed(&mut self, of: &dyn Fn(&str) -> bool, documents: bool) -> Result<()> {
        let hosts: Vec<u64> = self.fold.hosts.named(of).collect();
        let mut keys = Vec::new();
        for host in hosts {
            let prefix = host.to_be_bytes();
            for row in self.store.fates.clone().prefix(prefix) {
                let (key, value) = row.into_inner()?;
                let fate = decode::<Fate>("fates", &value)?;
                let wanted = fate.refused || (documents && fate.asked);
                self.mark(&key, wanted, &mut keys)?;
            }
            for row in self.store.urls.clone().prefix(prefix) {
                let (key, value) = row.into_inner()?;
                let link = decode::<LinkRecord>("urls", &value)?;
                self.mark(&key, link.latent.is_some(), &mut keys)?;
            }
        }
        self.apply([Event::Reconsider { keys }])
    }

    fn mark(&mut self, key: &[u8], wanted: bool, keys: &mut Vec<UrlKey>) -> Result<()> {
        if let (true, Ok(key)) = (wanted, key.try_into()) {
            keys.push(UrlKey::from_bytes(key));
        }
        if keys.len() >= GROUP {
            let keys = std::mem::take(keys);
            self.apply([Event::Reconsider { keys }])?;
        }
        Ok(())
    }

    /// True when there are URLs to be judged again, be it that some of them are not finished yet.
    pub fn has_reconsidered(&self) -> bool {
        self.fold.reconsidering > 0
    }

    /// Some of the URLs that are to be judged again and can be: finished ones. Which have been judged, the owner says with
    /// [`Event::Reconsidered`].
    pub fn to_reconsider(&self, most: usize) -> Result<Vec<(UrlKey, Entry)>> {
        let mut found = Vec::new();
        if !self.has_reconsidered() {
            return Ok(found);
        }
        for row in self.store.reconsider.iter() {
            let Ok(bytes) = row.key()?.as_ref().try_into() else {
                continue;
            };
            let key = UrlKey::from_bytes(bytes);
            let entry = self.reader().entry(key)?;
            let finished =
                |entry: &Entry| entry.fate.as_ref().is_some_and(|fate| fate.due.is_none());
            if let Some(entry) = entry.filter(finished) {
                found.push((key, entry));
            }
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }
}
