//! The spider daemon: orders in from URL servers, results out to the store, a word about each order at
//! least every Timeout_Update until it is done.
//!
//! | queue | from → to | capacity | when full |
//! |---|---|---|---|
//! | orders | URL servers → places | `memory` / 16 in bytes | no order is read |
//! | places | orders → fetches | `concurrency` | orders wait, with WORKING |
//! | outbox | fetches → store | one a place, `memory` in bytes | no fetch begins |
//! | words | fetches, ticker → URL server | 2 for each order there can be, and 64 | DONE waits, WORKING is left out |
//!
//! Two runtimes: one thread talks, `workers` threads fetch. However busy the fetches keep the machine's
//! cores, the words go out in time.

mod fetches;
mod orders;
mod outbox;
mod peers;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tracing::{info, warn};

use orbweaver_config::SpiderSettings;
use orbweaver_spider::{AddressPolicy, ByteBudget, Shortages, Spider, SpiderOptions, TlsOptions};
use orbweaver_wire::{Places, Service};

use self::fetches::Fetches;
use self::orders::Orders;
use super::{acceptor::Acceptor, key_error};
use crate::signals::Signals;
use orbweaver_ring::Descriptors;
use orbweaver_ring::Error;

/// How long fetches that are out may take to end, and their results to be stored, when the spider is told
/// to stop. What does not end in time is ordered again by the URL server.
const LAST_FETCHES: Duration = Duration::from_secs(6);

/// The memory for bodies. One grows by doubling, and is there once more while it is copied.
fn body_budget(settings: &SpiderSettings) -> ByteBudget {
    let largest = 2 * settings.limits.max_body_bytes + (2 << 20);
    ByteBudget::new(settings.memory, largest)
}

/// Runs a spider until it is told to stop.
pub fn run(mut settings: SpiderSettings) -> Result<()> {
    super::start_log();
    let descriptors = Descriptors::get();
    if descriptors.places < settings.concurrency {
        warn!(
            places = descriptors.places,
            "the limit on open files allows fewer concurrent fetches than Concurrency; ulimit -n raises it"
        );
        settings.concurrency = descriptors.places;
    }
    let places = body_budget(&settings).fetches();
    if places < settings.concurrency {
        warn!(
            places,
            "Memory allows fewer concurrent fetches than Concurrency; a larger Memory raises it"
        );
        settings.concurrency = places;
    }
    let fetching = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.workers)
        .thread_name("fetch")
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let talking = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ending = talking.block_on(serve(settings, descriptors, fetching.handle().clone()));
    fetching.shutdown_background();
    ending
}

async fn serve(
    settings: SpiderSettings,
    descriptors: Descriptors,
    fetching: tokio::runtime::Handle,
) -> Result<()> {
    let mut signals = Signals::new()?;
    let clock = orbweaver_ring::steady();
    let shortages: Arc<Shortages> = Arc::default();
    let spider = spider(
        &settings,
        Arc::clone(&clock),
        descriptors,
        Arc::clone(&shortages),
    )?;
    let places = Places::new(settings.key_file.as_deref()).map_err(key_error)?;
    let store = &settings.store;
    let store = places.at(&store.host, store.port, Service::Store)?;
    let listen = &settings.listen;
    let listen = places.at(&listen.host, listen.port, Service::Line)?;
    let listener = listen.port.listen(&listen.host, listen.number).await;
    let listener = listener.map_err(|error| Error::Input(error.to_string()))?;
    let mut acceptor = Acceptor::new(listener, Arc::clone(&clock));
    if !settings.has_contact {
        warn!(
            "no contact is set: site owners cannot reach you; set Contact to a mail address or a page"
        );
    }
    if let Some(doubt) = &settings.doubtful {
        warn!("{doubt}");
    }
    let (outbox, link) = outbox::link(store, settings.concurrency);
    tokio::spawn(link);
    let orders = Arc::new(Orders::new(settings.update));
    tokio::spawn(orders::tick(Arc::clone(&orders)));
    let clock = Arc::clone(&clock);
    let (fetches, waiting) = Fetches::new(spider, orders, outbox, fetching, clock, &settings);
    let fetches = Arc::new(fetches);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(Arc::clone(&fetches).serve(waiting, stopped.clone()));
    info!("listening on {} for orders", acceptor.address());
    let mut looks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = looks.tick() => {
                if let Some(what) = shortages.take() {
                    warn!(what, "this machine is out of connections; fetches wait for one");
                }
            }
            connection = acceptor.next() => {
                let talk = peers::converse(connection, Arc::clone(&fetches), acceptor.log(), stopped.clone());
                tokio::spawn(talk);
            }
            () = signals.next() => break,
        }
    }
    info!(under_way = fetches.under_way(), "stopping");
    stop.send_replace(true);
    tokio::select! {
        () = fetches.idle() => {}
        () = tokio::time::sleep(LAST_FETCHES) => {}
        () = signals.next() => {}
    }
    info!(left = fetches.under_way(), "stopped");
    Ok(())
}

fn spider(
    settings: &SpiderSettings,
    clock: orbweaver_model::Clock,
    descriptors: Descriptors,
    shortages: Arc<Shortages>,
) -> Result<Spider> {
    let options = SpiderOptions {
        user_agent: settings.user_agent.clone(),
        limits: settings.limits.clone(),
        hosts: settings.requests.clone(),
        policy: AddressPolicy::new(settings.allow_net.clone()),
        tls: TlsOptions {
            insecure: settings.insecure,
            extra_roots_pem: settings.roots_pem.clone(),
        },
        memory: body_budget(settings),
        discard_decoded: true,
        max_idle_connections: descriptors.idle,
        shortages,
        ..SpiderOptions::default()
    };
    Ok(Spider::new(options, clock).map_err(|error| Error::Input(error.to_string()))?)
}
