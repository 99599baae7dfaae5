//! Everything that decides about one URL, gathered from the doc index, the scope, the kept robots.txt, the
//! archive and, while a crawl runs, the URL server.

mod wait;

use std::path::Path;

use crate::error::Result;
use serde::{Deserialize, Serialize};

use orbweaver_docindex::{Entry, HostRecord, Reader, Rest};
use orbweaver_intake::{ScopeKind, priority, surt};
use orbweaver_model::{Column, CrawlUrl, Link, LinkKind, Outcome, Timestamp, UrlKey};
use orbweaver_robots::Robots;
use orbweaver_urlserver::{Spot, Whereabouts};

use orbweaver_config::Settings;
use orbweaver_config::units::{moment, rate_of};

/// Pages between a URL and its seed that are named.
const MAX_PATH: usize = 32;

/// The whole decision path of one URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The URL, in its canonical form.
    pub url: String,
    /// unknown, queued, claimed, in_flight, retry, done, failed or refused.
    pub state: String,
    /// Whether a process is crawling now.
    pub running: bool,
    /// When this was true.
    pub at: String,
    /// How it became known; none when it is not.
    pub found: Option<Found>,
    /// What the scope says now.
    pub scope: ScopeSays,
    /// What the robots.txt of its origin says, when one is kept.
    pub robots: Option<RobotsSays>,
    /// The settings say that it does not count for this host.
    #[serde(default)]
    pub robots_ignored: bool,
    /// What is known of its host.
    pub host: Option<HostSays>,
    /// Where it waits, in words.
    pub place: Option<String>,
    /// URLs that come before it there.
    pub ahead: Option<u64>,
    /// The slot of its host in the URL server.
    pub slot: Option<u32>,
    /// Since when it is with the URL server or with the spider.
    pub since: Option<String>,
    /// What it waits for, in words.
    pub waits_for: Option<String>,
    /// The time before which it is not requested.
    pub earliest: Option<String>,
    /// Every attempt that is kept, the oldest first.
    pub attempts: Vec<AttemptSays>,
    /// Attempts made, of which the oldest may not be kept.
    pub attempts_made: u8,
    /// What the last attempt came to.
    pub outcome: Option<OutcomeSays>,
    /// What its visits have left for the next one.
    pub visits: Option<VisitsSays>,
    /// Where it lies in the archive.
    pub archive: Option<ArchiveSays>,
}

/// How it became known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its number.
    pub doc_id: u32,
    /// When it was found.
    pub seen: String,
    /// By what kind of link.
    pub kind: String,
    /// Links from a seed.
    pub depth: u16,
    /// Its priority among the URLs of its host.
    pub priority: u8,
    /// The page that linked to it.
    pub via: Option<String>,
    /// From that page back to a seed.
    pub path: Vec<String>,
    /// The redirects that led here, oldest first.
    pub redirected_from: Vec<String>,
}

/// What the scope says now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeSays {
    /// It belongs to the crawl.
    pub accepted: bool,
    /// The rule that decides.
    pub rule: String,
}

/// What the kept robots.txt of its origin says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RobotsSays {
    /// Scheme, host and port.
    pub origin: String,
    /// The HTTP status.
    pub status: u16,
    /// When it was fetched.
    pub fetched: String,
    /// When it must be fetched again.
    pub expires: String,
    /// That time has passed.
    pub expired: bool,
    /// It may be requested.
    pub allowed: bool,
    /// The line that decides; none when no line matches.
    pub rule: Option<String>,
    /// The Crawl-delay, in seconds.
    pub crawl_delay_s: Option<f64>,
}

/// What is known of its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSays {
    /// Its name.
    pub name: String,
    /// Its URLs that are queued.
    pub queued: u32,
    /// URLs that were requested.
    pub asked: u32,
    /// Requests made.
    pub requests: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// How long its answers take lately, in milliseconds.
    pub ms: u32,
    /// Its budget is spent.
    pub budget_spent: bool,
    /// Since when an operator has blocked it.
    pub blocked_since: Option<String>,
    /// Requests per second that an operator has set for it.
    pub rate: Option<f64>,
    /// The time before which it gets no request, from Retry-After.
    pub not_before: Option<String>,
    /// The gap that is kept between two requests, in seconds; none while no crawl runs.
    pub gap_s: Option<f64>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptSays {
    /// When it ended.
    pub at: String,
    /// The class of what came of it.
    pub class: String,
    /// The HTTP status.
    pub status: Option<u16>,
    /// Why, in words.
    pub reason: Option<String>,
}

/// What the last attempt came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeSays {
    /// The class of what came of it.
    pub class: String,
    /// Why, in words.
    pub reason: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The address that was asked.
    pub ip: Option<std::net::IpAddr>,
    /// Bytes received.
    pub bytes: u64,
    /// How long its answers take lately, in milliseconds.
    pub ms: u32,
    /// Where it redirects to.
    pub redirect: Option<String>,
}

/// What its visits have left for the next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisitsSays {
    /// Visits made.
    pub made: u32,
    /// The ETag of the last answer.
    pub etag: Option<String>,
    /// The Last-Modified of the last answer.
    pub last_modified: Option<String>,
    /// When it is visited again; none when that is not planned.
    pub next: Option<String>,
}

/// Where it lies in the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArchiveSays {
    /// The WARC file.
    pub file: String,
    /// Where the record begins.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Fourteen digits, UTC.
    pub timestamp: String,
    /// It is a revisit record.
    pub revisit: bool,
}

/// Where the answer comes from.
pub struct Sources<'a> {
    /// The crawl directory.
    pub dir: &'a Path,
    /// The doc index.
    pub reader: &'a Reader,
    /// The settings in effect.
    pub settings: &'a Settings,
    /// What the scope says of a link.
    pub scope: &'a dyn Fn(&Link) -> Result<(), Outcome>,
    /// What the URL server of a running crawl says.
    pub whereabouts: Option<Whereabouts>,
    /// The time.
    pub now: Timestamp,
}

/// Gathers the answer.
pub fn gather(url: &CrawlUrl, sources: &Sources<'_>) -> Result<Why> {
    let reader = sources.reader;
    let entry = reader.entry(url.key(reader.seed()))?;
    let record = reader.host(url.host())?;
    let rest = match &entry {
        Some(entry) => reader.rest(entry)?,
        None => None,
    };
    let mut why = Why {
        url: url.to_string(),
        state: state(entry.as_ref(), rest, sources.whereabouts).into(),
        running: sources.whereabouts.is_some(),
        at: moment(sources.now),
        found: entry
            .as_ref()
            .map(|entry| found(entry, reader))
            .transpose()?,
        scope: scope(url, entry.as_ref(), sources),
        robots: robots(url, sources)?,
        robots_ignored: (sources.settings.hosts.policies.get(url.host()))
            .is_some_and(|own| own.ignore_robots),
        host: record.as_ref().map(|record| host(record, sources)),
        place: None,
        ahead: None,
        slot: sources.whereabouts.and_then(|found| found.slot),
        since: None,
        waits_for: None,
        earliest: None,
        attempts: entry.as_ref().map(attempts).unwrap_or_default(),
        attempts_made: attempts_made(entry.as_ref()),
        outcome: entry.as_ref().and_then(outcome),
        visits: entry.as_ref().and_then(visits),
        archive: archive(url, entry.as_ref(), sources)?,
    };
    match (rest, &entry) {
        (Some(rest), _) => wait::explain(&mut why, rest, record.as_ref(), sources),
        (None, Some(entry)) => wait::explain_chance(&mut why, entry),
        (None, None) => {}
    }
    Ok(why)
}

fn state(
    entry: Option<&Entry>,
    rest: Option<Rest>,
    whereabouts: Option<Whereabouts>,
) -> &'static str {
    let Some(entry) = entry else {
        return "unknown";
    };
    let out = whereabouts.and_then(|found| found.spot);
    match rest {
        Some(Rest::Claimed { .. }) if matches!(out, Some(Spot::Out { .. })) => "in_flight",
        Some(Rest::Claimed { .. }) => "claimed",
        Some(Rest::Retry { .. }) => "retry",
        Some(Rest::Queue { .. }) => "queued",
        None => match entry
            .fate
            .as_ref()
            .map(|fate| fate.report.outcome.class.column())
        {
            Some(Column::Done) => "done",
            Some(Column::Failed) => "failed",
            Some(Column::Refused) => "refused",
            Some(Column::Queued) | None => "queued",
        },
    }
}

fn found(entry: &Entry, reader: &Reader) -> Result<Found> {
    let link = &entry.link;
    let mut path = Vec::new();
    let mut via = link.via;
    while let Some(key) = via.filter(|_| path.len() < MAX_PATH) {
        let Some(page) = reader.entry(key)? else {
            break;
        };
        path.push(page.link.url.to_string());
        via = page.link.via;
    }
    let name = |key: &UrlKey| -> Result<Option<String>> {
        Ok(reader.entry(*key)?.map(|entry| entry.link.url.to_string()))
    };
    let chain: Result<Vec<_>> = link.chain.iter().map(name).collect();
    Ok(Found {
        doc_id: link.doc_id,
        seen: moment(link.seen),
        kind: link.kind.as_str().into(),
        depth: link.depth,
        priority: link.priority,
        via: path.first().cloned(),
        path,
        redirected_from: chain?.into_iter().flatten().collect(),
    })
}

/// What the scope says now: of a known URL as it was found, of another as of a link on a seed.
fn scope(url: &CrawlUrl, entry: Option<&Entry>, sources: &Sources<'_>) -> ScopeSays {
    let link = match entry.map(|entry| &entry.link) {
        Some(known) => Link {
            url: known.url.clone(),
            kind: known.kind,
            depth: known.depth,
            priority: known.priority,
            via: known.via,
            chain: known.chain.clone(),
        },
        None => Link {
            url: url.clone(),
            kind: LinkKind::A,
            depth: 1,
            priority: priority(LinkKind::A),
            via: None,
            chain: Vec::new(),
        },
    };
    match (sources.scope)(&link) {
        Ok(()) => ScopeSays {
            accepted: true,
            rule: accepting_rule(&link, sources.settings),
        },
        Err(outcome) => ScopeSays {
            accepted: false,
            rule: format!("{}: {}", outcome.class, outcome.reason),
        },
    }
}

fn accepting_rule(link: &Link, settings: &Settings) -> String {
    let options = &settings.scope;
    let near = match (link.kind, options.kind) {
        (LinkKind::Seed, _) => "it is a seed",
        (kind, _) if kind.is_requisite() => "pages are fetched with their requisites",
        (_, ScopeKind::Host) => "scope host: its host is the host of a seed",
        (_, ScopeKind::Domain) => "scope domain: its registered domain is that of a seed",
        (_, ScopeKind::Prefix) => "scope prefix: it is below the directory of a seed",
        (_, ScopeKind::Any) => "scope any: every URL is accepted",
    };
    let mut rule = near.to_owned();
    if let (Some(max), true) = (options.max_depth, link.kind != LinkKind::Seed) {
        rule += &format!("; depth {} of at most {max}", link.depth);
    }
    if !options.include.is_empty() && link.kind != LinkKind::Seed {
        rule += "; an include pattern matches";
    }
    if !options.exclude.is_empty() {
        rule += "; no exclude pattern matches";
    }
    rule
}

fn robots(url: &CrawlUrl, sources: &Sources<'_>) -> Result<Option<RobotsSays>> {
    let Some(record) = sources.reader.robots(url.origin())? else {
        return Ok(None);
    };
    let settings = sources.settings;
    let limits = &settings.limits;
    let robots = Robots::parse(&record.body, &settings.agent, limits.robots_max_bytes);
    let verdict = robots.verdict(url.target());
    Ok(Some(RobotsSays {
        origin: url.origin().into(),
        status: record.status,
        fetched: moment(record.fetched),
        expires: moment(record.expires),
        expired: record.expires <= sources.now,
        allowed: verdict.allowed,
        rule: verdict.rule.map(|rule| rule.to_string()),
        crawl_delay_s: (robots.crawl_delay())
            .map(|delay| delay.min(limits.crawl_delay_cap).as_secs_f64()),
    }))
}

fn host(record: &HostRecord, sources: &Sources<'_>) -> HostSays {
    let waits = record.not_before > sources.now;
    HostSays {
        name: record.name.clone(),
        queued: record.queued,
        asked: record.asked,
        requests: record.requests,
        failed: record.failed,
        ms: record.millis,
        budget_spent: record.spent.is_some(),
        blocked_since: record.blocked.map(moment),
        rate: record.gap.map(rate_of),
        not_before: waits.then(|| moment(record.not_before)),
        gap_s: sources.whereabouts.map(|found| found.delay.as_secs_f64()),
    }
}

fn said(reason: &str) -> Option<String> {
    (!reason.is_empty()).then(|| reason.to_owned())
}

/// Every attempt, the last one included. A URL that was refused unasked has none.
fn attempts(entry: &Entry) -> Vec<AttemptSays> {
    let Some(fate) = &entry.fate else {
        return Vec::new();
    };
    let line = |at: Timestamp, outcome: &Outcome, status: Option<u16>| AttemptSays {
        at: moment(at),
        class: outcome.class.to_string(),
        status,
        reason: said(&outcome.reason),
    };
    let earlier = fate.earlier.iter();
    let mut all: Vec<_> = earlier
        .map(|attempt| line(attempt.at, &attempt.outcome, attempt.status))
        .collect();
    let report = &fate.report;
    if report.ip.is_some() || fate.due.is_some() {
        all.push(line(report.at, &report.outcome, report.status));
    }
    all
}

fn attempts_made(entry: Option<&Entry>) -> u8 {
    let fate = entry.and_then(|entry| entry.fate.as_ref());
    fate.map_or(0, |fate| fate.attempts)
}

fn outcome(entry: &Entry) -> Option<OutcomeSays> {
    let report = &entry.fate.as_ref()?.report;
    Some(OutcomeSays {
        class: report.outcome.class.to_string(),
        reason: said(&report.outcome.reason),
        status: report.status,
        ip: report.ip,
        bytes: report.bytes,
        ms: report.millis,
        redirect: report.redirect.clone(),
    })
}

fn visits(entry: &Entry) -> Option<VisitsSays> {
    let fate = entry.fate.as_ref()?;
    let revisit = fate.revisit.as_ref().filter(|left| left.visits > 0)?;
    let next = revisit.due.filter(|_| fate.due.is_none());
    Some(VisitsSays {
        made: revisit.visits,
        etag: revisit.etag.clone(),
        last_modified: revisit.last_modified.clone(),
        next: next.map(moment),
    })
}

/// By the place in the URL's record. What is no URL of the index, as a robots.txt, and what does not lie where its record says,
/// is looked up in the CDXJ.
fn archive(
    url: &CrawlUrl,
    entry: Option<&Entry>,
    sources: &Sources<'_>,
) -> Result<Option<ArchiveSays>> {
    let dir = sources.dir;
    let place = entry.and_then(|entry| entry.fate.as_ref()?.capture);
    let has_places = sources.reader.followed()?.is_some();
    if entry.is_some() && place.is_none() && has_places {
        return Ok(None);
    }
    let found = place.and_then(|place| orbweaver_store::line_at(dir, place).ok());
    let line = match found.filter(|line| line.url == url.as_str()) {
        None => orbweaver_store::lookup(dir, &surt(url), url.as_str())?,
        line => line,
    };
    Ok(line.map(|line| ArchiveSays {
        revisit: line.is_revisit(),
        file: format!("warc/{}", line.filename),
        offset: line.offset,
        length: line.length,
        timestamp: line.timestamp,
    }))
}
