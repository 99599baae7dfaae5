//! The store daemon: records in from spiders, results out to the doc index.
//!
//! | queue | from → to | capacity | when full |
//! |---|---|---|---|
//! | bytes | spiders → keeper | `memory` | no record is read |
//! | archive | keeper → archive | 16 MiB | the connection waits |
//! | journal | archive, keeper → journal | 512 a connection | no record is read |
//! | answers | connection → its writer | 512 | no record is read |

mod books;
mod feed;
mod keeper;
mod spiders;

use std::sync::Arc;

use anyhow::{Context, Result};
use tracing::{info, warn};

use orbweaver_config::StoreSettings;
use orbweaver_store::{Archive, StoreError, StoreOptions, Writer as WarcWriter};
use orbweaver_wire::{Places, Service};

use self::books::Books;
use self::keeper::Keeper;
use super::{door::Door, key_error};
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
    let held = CrawlDir::hold(&settings.dir)?;
    let keeper = Arc::new(open(held.dir(), settings)?);
    let records = Door::new(records, orbweaver_ring::steady());
    let results = Door::new(results, orbweaver_ring::steady());
    announce("records", &records);
    announce("results", &results);
    let spiders = tokio::spawn(spiders::accept(records, Arc::clone(&keeper)));
    let followers = tokio::spawn(feed::accept(results, Arc::clone(&keeper)));
    signals.next().await;
    info!("stopping");
    spiders.abort();
    followers.abort();
    let closing = Arc::clone(&keeper);
    let closed = tokio::task::spawn_blocking(move || closing.close());
    tokio::select! {
        closed = closed => closed.context("the store failed while it stopped")??,
        () = signals.next() => {}
    }
    Ok(())
}

fn announce(what: &str, door: &Door) {
    info!("listening on {} for {what}", door.address());
}

fn open(dir: &CrawlDir, settings: &StoreSettings) -> Result<Keeper> {
    let options = StoreOptions {
        rotate_bytes: settings.rotate,
        ..StoreOptions::default()
    };
    let (writer, recovery) = WarcWriter::open(dir.path(), options)?;
    for cut in &recovery.cuts {
        warn!(?cut, "a torn end was cut off");
    }
    for skipped in &recovery.skipped {
        warn!("{skipped}; what was fetched there has to be fetched again");
    }
    let books = Books::open(dir.path(), &recovery)?;
    let trouble = books.trouble();
    let archive = Archive::start(writer, move |problem: Option<&StoreError>| match problem {
        Some(error) => {
            trouble.archive(true);
            warn!(%error, "the archive cannot be written; spiders are told to try later");
        }
        None => {
            trouble.archive(false);
            info!("the archive can be written again");
        }
    })?;
    Ok(Keeper::new(
        archive,
        books,
        dir.path(),
        settings,
        orbweaver_ring::steady(),
    ))
}
