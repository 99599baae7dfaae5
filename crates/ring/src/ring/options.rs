//! What each stage needs to know, taken from the settings.

use std::sync::Arc;

use crate::error::{Error, Result};

use orbweaver_docindex::Reader;
use orbweaver_model::HostSetting;
use orbweaver_spider::{AddressPolicy, ByteBudget, Spider, SpiderOptions, TlsOptions};
use orbweaver_store::{Archive, Keep, Recovery, StoreOptions, Writer};
use orbweaver_urlserver::UrlServerOptions;

use crate::clock;
use orbweaver_config::Settings;
use orbweaver_crawldir::CrawlDir;

/// Opens the archive.
pub(crate) fn open_archive(
    dir: &CrawlDir,
    settings: &Settings,
) -> Result<(Arc<dyn Keep>, Recovery)> {
    let (writer, recovery) = Writer::open(dir.path(), store_options(settings))?;
    let archive = Archive::start(writer, &mut |_| {}, |_| {})?;
    Ok((Arc::new(archive), recovery))
}

/// What was found damaged when the archive was opened.
pub(crate) fn damage_notes(recovery: &Recovery) -> Vec<String> {
    let kept = recovery.cuts.iter().filter_map(|cut| {
        let kept = cut.kept.as_ref()?;
        Some(format!(
            "warc/{} is damaged at byte {}; what follows is kept in {}",
            cut.file,
            cut.at,
            kept.display()
        ))
    });
    let skipped = recovery.skipped.iter().map(ToString::to_string);
    kept.chain(skipped).collect()
}

/// What operators have set for hosts goes along, for it outlives the runs.
pub(crate) fn urlserver_options(
    settings: &Settings,
    resumed: bool,
    reader: &Reader,
) -> Result<UrlServerOptions> {
    let mut set = Vec::new();
    for host in reader.hosts() {
        let host = host?;
        if host.blocked.is_some() {
            set.push((host.name.clone(), HostSetting::Blocked(true)));
        }
        if host.gap.is_some() {
            set.push((host.name, HostSetting::Gap(host.gap)));
        }
    }
    Ok(UrlServerOptions {
        hosts: settings.hosts.policies.clone(),
        settings: set,
        queue_count: settings.queue_count,
        queue_len: settings.queue_len,
        ip_batch_max: settings.ip_batch_max,
        leftover_bytes: usize::try_from(settings.memory / 16).unwrap_or(usize::MAX),
        slow_factor: settings.slow_factor,
        slow_max: settings.slow_max,
        host_concurrent: settings.per_host,
        host_per_sec: settings.host_rate,
        ip_concurrent: settings.per_ip,
        ip_per_sec: settings.ip_rate,
        in_flight: settings.concurrency,
        agent: settings.agent.clone(),
        limits: settings.limits.clone(),
        robots_delay: settings.retry.delay,
        rest_bytes: usize::try_from(settings.memory / 8).unwrap_or(usize::MAX),
        can_give_up: false,
        resumed,
    })
}

/// Sees that a crawl with these settings can begin, as far as that can be said before there is a directory.
pub(crate) fn can_begin(settings: &Settings) -> Result<()> {
    let policy = AddressPolicy::new(settings.allow_net.clone());
    Spider::new(spider_options(settings, policy)?, clock::steady())?;
    Ok(())
}

/// A quarter of the memory for bodies. One fetch takes at most what is read of a document, twice while its buffer grows, and
/// what is kept of the wire before it goes to disk; and one large body at a time is read back from there, in three copies.
pub(crate) fn body_budget(settings: &Settings) -> ByteBudget {
    let bytes = usize::try_from(settings.memory / 4).unwrap_or(usize::MAX);
    let read = settings.limits.max_decoded_bytes;
    ByteBudget::new(bytes, read.saturating_mul(5).saturating_add(4 << 20))
}

pub(crate) fn spider_options(settings: &Settings, policy: AddressPolicy) -> Result<SpiderOptions> {
    let extra_roots_pem = match &settings.ca {
        Some(path) => std::fs::read(path)
            .map_err(|error| Error::input(format!("cannot read {}: {error}", path.display())))?,
        None => Vec::new(),
    };
    Ok(SpiderOptions {
        user_agent: settings.user_agent.clone(),
        limits: settings.limits.clone(),
        hosts: settings.hosts.requests.clone(),
        policy,
        tls: TlsOptions {
            insecure: settings.insecure,
            extra_roots_pem,
        },
        memory: body_budget(settings),
        ..SpiderOptions::default()
    })
}

/// What the archive says of robots.txt, exceptions included.
fn robots_policy(settings: &Settings) -> String {
    match settings.hosts.robots_ignored().as_slice() {
        [] => "obey".into(),
        ignored => format!("obey, but ignore for {}", ignored.join(", ")),
    }
}

/// What is said of hosts whose robots.txt is ignored, at the start and at the end.
pub(crate) fn robots_note(settings: &Settings) -> Option<String> {
    let ignored = settings.hosts.robots_ignored();
    (!ignored.is_empty()).then(|| {
        format!(
            "robots.txt is ignored, as the settings say (robots = \"ignore\"), for {}",
            ignored.join(", ")
        )
    })
}

pub(crate) fn store_options(settings: &Settings) -> StoreOptions {
    StoreOptions {
        rotate_bytes: settings.rotate,
        operator: settings.user_agent.clone(),
        robots: robots_policy(settings),
        ..StoreOptions::default()
    }
}
