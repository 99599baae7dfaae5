//! The page about the configuration file says what the code does: keys, other names, defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::config::SECTIONS;
use crate::hosts::{AuthConfig, HostLimitsConfig, HostTrapsConfig, PLAIN, TABLES};
use crate::names::{NAMES, Unit};
use crate::{Config, Mode, Settings, SpiderSettings, StoreSettings, UrlServerSettings};

const PAGE: &str = include_str!("../../../docs/formats/config.md");

/// The rows of the tables about keys: path and default.
fn rows() -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    let mut section = "";
    for line in PAGE.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.split(['[', ']']).nth(1).unwrap_or(title);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(key) = line.strip_prefix("| `").and_then(|_| cells.get(1)) else {
            continue;
        };
        let path = match (section, key.trim_matches('`')) {
            ("Other names" | "Hosts and domains", _) => continue,
            ("Top level", key) => key.to_owned(),
            (section, key) => format!("{section}.{key}"),
        };
        let cell = cells[2].replace(['`', '"', ','], "");
        assert_eq!(rows.insert(path, cell), None, "{key} stands there twice");
    }
    rows
}

#[test]
fn every_key_is_on_the_page_and_no_other() {
    let told: BTreeSet<String> = rows().into_keys().collect();
    let keys = SECTIONS.iter().flat_map(|(_, keys)| keys.iter());
    let keys: BTreeSet<String> = keys.map(|key| key.path.to_owned()).collect();
    assert_eq!(told, keys);
}

#[test]
fn every_key_of_a_host_is_on_the_page_and_no_other() {
    let section = PAGE.split("\n## Hosts and domains").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows: BTreeMap<&str, &str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .collect();
    let told: BTreeSet<&str> = rows.keys().copied().collect();
    let keys = PLAIN.iter().map(|key| key.name).chain(TABLES);
    assert_eq!(told, keys.collect());
    for (table, keys) in [
        ("auth", AuthConfig::KEYS),
        ("limits", HostLimitsConfig::KEYS),
        ("traps", HostTrapsConfig::KEYS),
    ] {
        for key in keys {
            let named = rows[table].contains(&format!("`{}", key.name));
            assert!(named, "{table} has {}", key.name);
        }
    }
}

#[test]
fn every_other_name_is_on_the_page_and_no_other() {
    let table = PAGE.split("\n## Other names").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let told: Vec<(String, String, bool)> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line
                .split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect();
            (cells[1].into(), cells[2].into(), cells[3] == "milliseconds")
        })
        .collect();
    let names = NAMES.map(|(name, path, unit)| (name.into(), path.into(), unit == Unit::Millis));
    assert_eq!(told, names);
}

fn size(bytes: u64) -> String {
    [(30, "G"), (20, "M"), (10, "K")]
        .iter()
        .find(|(shift, _)| bytes.is_multiple_of(1 << shift))
        .map_or(bytes.to_string(), |(shift, unit)| {
            format!("{}{unit}", bytes >> shift)
        })
}

fn seconds(span: Duration) -> String {
    span.as_secs_f64().to_string()
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_code() {
    let crawl = Settings::default();
    let (spider, store) = (SpiderSettings::default(), StoreSettings::default());
    let urlserver = UrlServerSettings::default();
    let (scope, traps, retry, limits) = (&crawl.scope, &crawl.traps, &crawl.retry, &crawl.limits);
    let recrawl = orbweaver_model::RecrawlBounds::default();
    assert_eq!(
        crawl.user_agent,
        concat!("orbweaver/", env!("CARGO_PKG_VERSION"))
    );
    assert!(crawl.seeds.is_empty() && !crawl.has_contact && crawl.recrawl.is_none());
    assert!(scope.include.is_empty() && scope.exclude.is_empty() && scope.max_depth.is_none());
    assert!(crawl.allow_net.is_empty() && crawl.resolver.is_none() && crawl.ca.is_none());
    assert!(crawl.pages == 0 && crawl.time.is_none());
    assert!(crawl.budgets.host.is_open() && crawl.budgets.domain.is_open());
    assert!(spider.key_file.is_none() && spider.mode == Mode::Push && urlserver.spiders.len() == 1);
    assert_eq!(
        (crawl.ip_rate, crawl.per_ip),
        (crawl.host_rate, crawl.per_host)
    );
    assert_eq!(crawl.ip_batch_max, 4 * crawl.queue_len);
    let defaults = [
        ("seeds", "none".into()),
        ("user_agent", "orbweaver/VERSION".into()),
        ("contact", "none".into()),
        ("memory", size(crawl.memory)),
        ("scope.kind", format!("{:?}", scope.kind).to_lowercase()),
        ("scope.include", "none".into()),
        ("scope.exclude", "none".into()),
        ("scope.depth", "no limit".into()),
        ("scope.requisites", scope.requisites.to_string()),
        ("scope.sitemaps", crawl.sitemaps.to_string()),
        (
            "scope.strip_session_ids",
            crawl.canonical.strip_session_ids.to_string(),
        ),
        ("scope.nofollow", crawl.obey_nofollow.to_string()),
        ("traps.enabled", traps.enabled.to_string()),
        ("traps.copies", traps.copies.to_string()),
        ("traps.combinations", traps.combinations.to_string()),
        ("traps.domain_hosts", traps.domain_hosts.to_string()),
        ("traps.first_year", traps.first_year.to_string()),
        ("traps.years_ahead", traps.years_ahead.to_string()),
        ("budget.pages", "no limit".into()),
        ("budget.host_pages", "no limit".into()),
        ("budget.host_bytes", "no limit".into()),
        ("budget.host_time", "no limit".into()),
        ("budget.domain_pages", "no limit".into()),
        ("budget.domain_bytes", "no limit".into()),
        ("budget.domain_time", "no limit".into()),
        ("budget.time", "no limit".into()),
        ("recrawl.on", "false".into()),
        ("recrawl.min", format!("{}h", recrawl.min.as_secs() / 3600)),
        ("recrawl.max", format!("{}h", recrawl.max.as_secs() / 3600)),
        ("recrawl.head_first", crawl.head_first.to_string()),
        ("politeness.rate", crawl.host_rate.to_string()),
        ("politeness.per_host", crawl.per_host.to_string()),
        ("politeness.ip_rate", "as rate".into()),
        ("politeness.per_ip", "as per_host".into()),
        ("politeness.queue_count", crawl.queue_count.to_string()),
        ("politeness.queue_len", crawl.queue_len.to_string()),
        ("politeness.ip_batch_max", "4 × queue_len".into()),
        ("politeness.slow_factor", crawl.slow_factor.to_string()),
        ("politeness.slow_max_s", seconds(crawl.slow_max)),
        ("fetch.concurrency", crawl.concurrency.to_string()),
        ("fetch.workers", "half the cores".into()),
        ("fetch.allow_net", "none".into()),
        ("fetch.insecure", crawl.insecure.to_string()),
        ("fetch.resolver", "the system's".into()),
        ("fetch.ca", "none".into()),
        ("retry.busy_attempts", retry.busy_attempts.to_string()),
        ("retry.attempts", retry.attempts.to_string()),
        ("retry.delay_s", seconds(retry.delay)),
        ("retry.patience_s", seconds(retry.patience)),
        ("store.rotate", size(crawl.rotate)),
        ("store.dir", store.dir.display().to_string()),
        ("store.host", store.records.host),
        ("store.port", store.records.port.to_string()),
        ("store.results_port", store.results.port.to_string()),
        ("log.rotate", size(crawl.log.rotate)),
        ("log.files", crawl.log.files.to_string()),
        ("limits.connect_timeout_s", seconds(limits.connect_timeout)),
        ("limits.header_timeout_s", seconds(limits.header_timeout)),
        ("limits.idle_timeout_s", seconds(limits.idle_timeout)),
        ("limits.total_timeout_s", seconds(limits.total_timeout)),
        (
            "limits.max_header_bytes",
            limits.max_header_bytes.to_string(),
        ),
        ("limits.max_headers", limits.max_headers.to_string()),
        ("limits.max_body_bytes", limits.max_body_bytes.to_string()),
        (
            "limits.max_decoded_bytes",
            limits.max_decoded_bytes.to_string(),
        ),
        ("limits.min_body_rate", limits.min_body_rate.to_string()),
        ("limits.max_encodings", limits.max_encodings.to_string()),
        ("limits.max_redirects", limits.max_redirects.to_string()),
        (
            "limits.robots_max_bytes",
            limits.robots_max_bytes.to_string(),
        ),
        (
            "limits.robots_max_redirects",
            limits.robots_max_redirects.to_string(),
        ),
        ("limits.max_url_bytes", limits.max_url_bytes.to_string()),
        ("limits.max_nesting", limits.max_nesting.to_string()),
        (
            "limits.max_links_per_page",
            limits.max_links_per_page.to_string(),
        ),
        ("limits.max_path_depth", limits.max_path_depth.to_string()),
        ("limits.retry_after_cap_s", seconds(limits.retry_after_cap)),
        ("limits.crawl_delay_cap_s", seconds(limits.crawl_delay_cap)),
        (
            "limits.max_sitemap_urls",
            limits.max_sitemap_urls.to_string(),
        ),
        ("daemons.key_file", "none".into()),
        ("daemons.mode", format!("{:?}", spider.mode).to_lowercase()),
        ("spider.host", spider.listen.host),
        ("spider.port", spider.listen.port.to_string()),
        ("spider.update_s", seconds(spider.update)),
        ("urlserver.dir", urlserver.dir.display().to_string()),
        ("urlserver.spiders", "none".into()),
        (
            "urlserver.status_timeout_s",
            seconds(urlserver.status_timeout),
        ),
    ];
    let told = rows();
    for (path, default) in &defaults {
        assert_eq!(told.get(*path), Some(default), "{path}");
    }
    assert_eq!(told.len(), defaults.len());
}

#[test]
fn the_example_on_the_page_is_a_configuration() {
    let example = PAGE
        .split("```toml")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    for text in example {
        let (config, mistakes) = crate::reader::read(text, std::path::Path::new("example"));
        assert_eq!(mistakes, [""; 0]);
        assert!(config != Config::default() && Settings::new(&config).is_ok());
    }
}
