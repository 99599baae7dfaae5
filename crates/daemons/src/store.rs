//! The store daemon: records in from spiders, results out to the doc index.
//!
//! | queue | from → to | capacity | when full |
//! |---|---|---|---|
//! | bytes | spiders → receiver | `memory` | no record is read |
//! | archive | receiver → archive and results | 16 MiB | the connection waits |
//! | answers | connection → its writer | 512 | no record is read |

mod followers;
mod known;
mod note;
mod receive;
mod spiders;

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tracing::{info, warn};

use orbweaver_config::StoreSettings;
use orbweaver_model::CrawlUrl;
use orbweaver_store::{
    Archive, Entry, Keep, Notice, Placed, StoreError, StoreOptions, Writer, read_place,
};
use orbweaver_wire::{Places, Service};

use self::known::{Known, key};
use self::receive::{Received, Receiver};
use super::{acceptor::Acceptor, key_error};
use crate::signals::Signals;
use orbweaver_crawldir::CrawlDir;
use orbweaver_ring::Error;
use orbweaver_ring::allow_many_files;

/// Runs a store until it is told to stop.
pub fn run(settings: &StoreSettings) -> Result<()> {
    super::start_log();
    allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.workers)
        .thread_name("store-port")
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &StoreSettings) -> Result<()> {
    let mut signals = Signals::new()?;
    // The ports first: a mistake there must not leave a directory behind.
    let places = Places::new(settings.key_file.as_deref()).map_err(key_error)?;
    let records = &settings.records;
    let records = places.at(&records.host, records.port, Service::Store)?;
    let records = records.port.listen(&records.host, records.number).await;
    let results = &settings.results;
    let results = places.at(&results.host, results.port, Service::Results)?;
    let results = results.port.listen(&results.host, results.number).await;
    let records = records.map_err(|error| Error::Input(error.to_string()))?;
    let results = results.map_err(|error| Error::Input(error.to_string()))?;
    let held = CrawlDir::hold(&settings.dir).map_err(Error::from)?;
    let store = Arc::new(open(held.dir(), settings)?);
    let records = Acceptor::new(records, orbweaver_ring::steady());
    let results = Acceptor::new(results, orbweaver_ring::steady());
    announce("records", &records);
    announce("results", &results);
    let spiders = tokio::spawn(spiders::accept(records, Arc::clone(&store)));
    let followers = tokio::spawn(followers::accept(results, Arc::clone(&store)));
    signals.next().await;
    info!("stopping");
    spiders.abort();
    followers.abort();
    let closing = Arc::clone(&store);
    let closed = tokio::task::spawn_blocking(move || closing.close());
    tokio::select! {
        closed = closed => closed.context("the store failed while it stopped")??,
        () = signals.next() => {}
    }
    Ok(())
}

fn announce(what: &str, acceptor: &Acceptor) {
    info!("listening on {} for {what}", acceptor.address());
}

fn open(dir: &CrawlDir, settings: &StoreSettings) -> Result<Receiver> {
    let options = StoreOptions {
        rotate_bytes: settings.rotate,
        // Attempts without data are nowhere else.
        durable_results: true,
        ..StoreOptions::default()
    };
    let (writer, recovery) = Writer::open(dir.path(), options)?;
    for cut in &recovery.cuts {
        warn!(?cut, "a torn end was cut off");
    }
    for skipped in &recovery.skipped {
        warn!("{skipped}; these pages have to be fetched again");
    }
    let (tell, durable) = watch::channel(0);
    let mut known = Known::default();
    let mut failed = Ok(());
    let (mut entries, mut found) = (0_u64, 0_u64);
    let mut remember_one = |entry: &Entry| {
        entries += 1;
        found += u64::from(entry.note.is_empty());
        if failed.is_ok() {
            failed = remember(dir, entry, &mut known);
        }
    };
    let in_time = tell.clone();
    let archive = Archive::start(writer, &mut remember_one, move |notice| match notice {
        Notice::Failing(error) => {
            warn!(%error, "the archive cannot be written; spiders are told to retry later");
        }
        Notice::Working => info!("the archive can be written again"),
        Notice::Durable(position) => drop(in_time.send_replace(position)),
    })?;
    failed?;
    info!(entries, found, "journal open");
    tell.send_replace(archive.results().last());
    Ok(Receiver::new(
        Arc::new(archive),
        known,
        durable,
        dir.path(),
        settings,
        orbweaver_ring::steady(),
    ))
}

/// Remembers a record by its entry. One that the archive has and the journal did not, because the process died in between, is
/// recognised by its exchange: its spider will send it again.
fn remember(dir: &CrawlDir, entry: &Entry, known: &mut Known<Received>) -> Result<(), StoreError> {
    let Some(place) = entry.place() else {
        return Ok(());
    };
    let key = match note::read(entry) {
        Some((key, _)) => key,
        None => {
            let stored = match read_place(dir.path(), place, u64::MAX) {
                Err(damage) if damage.is_damage() => return Ok(()),
                stored => stored?,
            };
            let Ok(url) = CrawlUrl::from_canonical(&stored.url) else {
                return Ok(());
            };
            key(stored.doc_id.unwrap_or(0), &url, &stored.response)
        }
    };
    known.submitted(key, Placed::at(place));
    Ok(())
}
