//! Looking over a whole doc index for what cannot be true.

use std::collections::HashMap;

use orbweaver_coldstore::{Damage, hex};
use orbweaver_model::{Column, UrlKey};

use crate::error::{Error, Result};
use crate::keyspaces::legible;
use crate::keyspaces::{queue_key, read_due_key};
use crate::reader::Reader;
use crate::record::{ClaimRecord, Fate, HostRecord, LinkRecord, QueueRecord, decode};
use crate::store::Store;
use crate::tables::{Row, Table, View};
use orbweaver_model::Ledger;

/// Something that is wrong, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The keyspace, or the file by its place in the index.
    pub place: String,
    /// The byte of a file.
    pub offset: Option<u64>,
    /// What is wrong, and with which URL or host.
    pub what: String,
}

/// Reads every record and holds them against each other. Returns how many URLs were looked at.
pub fn check(reader: &Reader, report: &mut dyn FnMut(Finding)) -> Result<u64> {
    let store = reader.store();
    let damage = match &reader.cold {
        Some(cold) => cold.survey(),
        None => damaged_records(&store)?,
    };
    if !damage.is_empty() {
        for Damage { file, offset, what } in damage {
            report(Finding {
                place: file,
                offset,
                what,
            });
        }
        report(Finding {
            place: "files".into(),
            offset: None,
            what: "records are damaged, so the rest was not cross-checked; the next `orbweaver crawl` recovers what can be read".into(),
        });
        let sound = reader.entries().take_while(std::result::Result::is_ok);
        return Ok(sound.count() as u64);
    }
    let mut check = Check {
        reader,
        view: store.view(),
        store,
        counted: Ledger::default(),
        queued: HashMap::new(),
        report,
    };
    match check.everything() {
        // What leads to records of a store in use is damaged, the records are not.
        Err(Error::Record { keyspace, why }) => check.found(keyspace, why),
        checked => checked?,
    }
    Ok(check.counted.accepted)
}

/// The first damaged place of each keyspace of a store that is in use. It ends there; the crawl that uses it saves
/// the rest when it comes across it.
fn damaged_records(store: &Store) -> Result<Vec<Damage>> {
    let mut found = Vec::new();
    for table in store.tables() {
        let sound = |row: Row| {
            let (key, value) = row.into_inner()?;
            legible(table.name(), &key, &value)
        };
        match table.iter().try_for_each(sound) {
            Err(error) if error.is_damage() => found.push(Damage {
                file: table.name().into(),
                offset: None,
                what: error.in_short(),
            }),
            read => read?,
        }
    }
    Ok(found)
}

struct Check<'a> {
    reader: &'a Reader,
    store: Store,
    view: View,
    /// The ledger as it follows from the records.
    counted: Ledger,
    /// Unfinished URLs by host.
    queued: HashMap<u64, u32>,
    report: &'a mut dyn FnMut(Finding),
}

impl Check<'_> {
    fn everything(&mut self) -> Result<()> {
        self.urls()?;
        self.fates()?;
        self.queue()?;
        self.due()?;
        self.visits()?;
        self.hosts()?;
        self.ledger()
    }

    fn urls(&mut self) -> Result<()> {
        let claimed = self.claimed()?;
        let store = self.store.clone();
        for guard in self.view.iter(&store.urls) {
            let (bytes, value) = guard.into_inner()?;
            let Some((key, link)) = self.read::<LinkRecord>("urls", &bytes, &value) else {
                continue;
            };
            if link.url.key(self.reader.seed) != key {
                self.found("urls", format!("{} is stored under another key", link.url));
            }
            self.counted.accept();
            let fate = self.fetch::<Fate>("fates", &store.fates, &bytes)?;
            match fate.filter(|fate| fate.due.is_none()) {
                Some(fate) if fate.report.outcome.class.column() == Column::Queued => {
                    self.found(
                        "fates",
                        format!("{} is finished as {}", link.url, fate.report.outcome.class),
                    );
                }
                Some(fate) => {
                    self.counted.finish(&fate.report.outcome);
                    self.comes_back(key, &link, &fate)?;
                }
                None => {
                    *self.queued.entry(key.host).or_default() += 1;
                    self.rests_somewhere(key, &link, claimed.contains_key(&key))?;
                }
            }
        }
        Ok(())
    }

    /// A finished URL that is to be queued again must be found when its time has come.
    fn comes_back(&mut self, key: UrlKey, link: &LinkRecord, fate: &Fate) -> Result<()> {
        let planned = fate.revisit.as_ref().and_then(|revisit| revisit.due);
        let visits = self.store.visits.clone();
        if let Some(due) = planned
            && !self
                .view
                .contains_key(&visits, crate::keyspaces::due_key(due, key))?
        {
            let what = format!("{} is planned for a visit that is not scheduled", link.url);
            self.found("visits", what);
        }
        Ok(())
    }

    /// An unfinished URL must be in the queue, claimed, or waiting for a retry: else it is lost.
    fn rests_somewhere(&mut self, key: UrlKey, link: &LinkRecord, claimed: bool) -> Result<()> {
        let store = self.store.clone();
        let queued = self
            .view
            .contains_key(&store.queue, queue_key(key.host, link.rank()))?;
        let retried = match self.fetch::<Fate>("fates", &store.fates, &key.to_bytes())? {
            Some(Fate { due: Some(due), .. }) => self
                .view
                .contains_key(&store.due, crate::keyspaces::due_key(due, key))?,
            _ => false,
        };
        if !(queued || claimed || retried) {
            self.found(
                "urls",
                format!("{} is lost: neither finished nor queued", link.url),
            );
        }
        Ok(())
    }

    fn claimed(&mut self) -> Result<HashMap<UrlKey, u8>> {
        let mut claimed = HashMap::new();
        for guard in self.view.iter(&self.store.claims) {
            let (_, value) = guard.into_inner()?;
            match decode::<ClaimRecord>("claims", &value) {
                Ok(batch) => {
                    let urls = batch.urls.iter();
                    claimed.extend(urls.map(|claim| (claim.key, claim.attempts)));
                }
                Err(error) => self.found("claims", error.to_string()),
            }
        }
        Ok(claimed)
    }

    fn fates(&mut self) -> Result<()> {
        for guard in self.view.iter(&self.store.fates) {
            let key = guard.key()?;
            if !self.view.contains_key(&self.store.urls, &key)? {
                self.found("fates", format!("key {} belongs to no URL", hex(&key)));
            }
        }
        Ok(())
    }

    fn queue(&mut self) -> Result<()> {
        let fates = self.store.fates.clone();
        for guard in self.view.iter(&self.store.queue) {
            let (bytes, value) = guard.into_inner()?;
            let Some((place, waiting)) = self.read::<QueueRecord>("queue", &bytes, &value) else {
                continue;
            };
            let key = UrlKey {
                host: place.host,
                url: waiting.url_hash,
            };
            let fate = self.fetch::<Fate>("fates", &fates, &key.to_bytes())?;
            if fate.is_some_and(|fate| fate.due.is_none()) {
                self.found(
                    "queue",
                    format!("{} is finished and still queued", waiting.url),
                );
            }
            let urls = self.store.urls.clone();
            match self.fetch::<LinkRecord>("urls", &urls, &key.to_bytes())? {
                None => self.found("queue", format!("{} is queued but unknown", waiting.url)),
                Some(link) if link.rank() != place.url => {
                    let what = format!("{} is queued at the wrong place", waiting.url);
                    self.found("queue", what);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn due(&mut self) -> Result<()> {
        let fates = self.store.fates.clone();
        for guard in self.view.iter(&self.store.due) {
            let bytes = guard.key()?;
            let fate = match read_due_key(&bytes) {
                Some((_, key)) => self.fetch::<Fate>("fates", &fates, &key.to_bytes())?,
                None => None,
            };
            if fate.is_none_or(|fate| fate.due.is_none()) {
                self.found(
                    "due",
                    format!("key {} names no URL that waits for a retry", hex(&bytes)),
                );
            }
        }
        Ok(())
    }

    fn visits(&mut self) -> Result<()> {
        let fates = self.store.fates.clone();
        for guard in self.view.iter(&self.store.visits) {
            let bytes = guard.key()?;
            let fate = match read_due_key(&bytes) {
                Some((_, key)) => self.fetch::<Fate>("fates", &fates, &key.to_bytes())?,
                None => None,
            };
            if fate.is_none_or(|fate| fate.revisit.is_none()) {
                let what = format!("key {} names no URL that was visited", hex(&bytes));
                self.found("visits", what);
            }
        }
        Ok(())
    }

    fn hosts(&mut self) -> Result<()> {
        for guard in self.view.iter(&self.store.hosts) {
            let (bytes, value) = guard.into_inner()?;
            let record = match decode::<HostRecord>("hosts", &value) {
                Ok(record) => record,
                Err(error) => {
                    self.found("hosts", error.to_string());
                    continue;
                }
            };
            let hash = bytes.as_ref().try_into().map_or(0, u64::from_be_bytes);
            let queued = self.queued.remove(&hash).unwrap_or(0);
            if queued != record.queued {
                let said = record.queued;
                self.found(
                    "hosts",
                    format!(
                        "{} has {queued} URLs queued, its record says {said}",
                        record.name
                    ),
                );
            }
        }
        for (hash, queued) in std::mem::take(&mut self.queued) {
            self.found(
                "hosts",
                format!("{queued} URLs are queued for host {hash:016x}, which has no record"),
            );
        }
        Ok(())
    }

    fn ledger(&mut self) -> Result<()> {
        // As of the same moment as the records, for the crawl may go on meanwhile.
        let meta = self.store.meta.clone();
        let said = self
            .fetch::<Ledger>("meta", &meta, b"ledger")?
            .unwrap_or_default();
        if !said.balances() {
            self.found("meta", "the ledger does not balance".into());
        }
        for column in [
            Column::Done,
            Column::Failed,
            Column::Refused,
            Column::Queued,
        ] {
            let (there, stated) = (self.counted.column(column), said.column(column));
            if there != stated {
                self.found(
                    "meta",
                    format!("the ledger says {stated} {column:?}, the records say {there}"),
                );
            }
        }
        let (there, stated) = (self.counted.out_of_scope, said.out_of_scope);
        if there != stated {
            let what = format!("the ledger says {stated} out of scope, the records say {there}");
            self.found("meta", what);
        }
        Ok(())
    }

    fn read<T: serde::de::DeserializeOwned>(
        &mut self,
        keyspace: &'static str,
        key: &[u8],
        value: &[u8],
    ) -> Option<(UrlKey, T)> {
        let Ok(bytes) = key.try_into() else {
            self.found(keyspace, format!("key {} has a wrong length", hex(key)));
            return None;
        };
        match decode(keyspace, value) {
            Ok(record) => Some((UrlKey::from_bytes(bytes), record)),
            Err(error) => {
                self.found(keyspace, format!("key {}: {error}", hex(key)));
                None
            }
        }
    }

    fn fetch<T: serde::de::DeserializeOwned>(
        &mut self,
        name: &'static str,
        table: &Table,
        key: &[u8],
    ) -> Result<Option<T>> {
        let Some(value) = self.view.get(table, key)? else {
            return Ok(None);
        };
        match decode(name, &value) {
            Ok(record) => Ok(Some(record)),
            Err(error) => {
                self.found(name, format!("key {}: {error}", hex(key)));
                Ok(None)
            }
        }
    }

    fn found(&mut self, keyspace: &'static str, what: String) {
        (self.report)(Finding {
            place: keyspace.into(),
            offset: None,
            what,
        });
    }
}
