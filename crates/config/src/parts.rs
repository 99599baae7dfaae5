//! The parts of the settings, each from its section of the configuration.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use orbweaver_intake::{Scope, ScopeKind, ScopeOptions, TrapOptions};
use orbweaver_model::{Budget, Budgets, Limits, RecrawlBounds};

use crate::config::{
    BudgetConfig, Config, LimitsConfig, LogConfig, RecrawlConfig, RetryConfig, ScopeConfig,
    TrapsConfig,
};
use crate::mistakes::Mistakes;
use crate::options::{LogOptions, RetryOptions};

/// E7: half the cores, so that the machine can do other work.
pub(crate) fn half_the_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

/// The User-Agent when none is given.
pub(crate) fn usual_agent() -> String {
    concat!("orbweaver/", env!("CARGO_PKG_VERSION")).to_owned()
}

/// The whole User-Agent header, and whether it says how its owner can be reached.
pub(crate) fn user_agent(config: &Config, wrong: &mut Mistakes<'_>) -> (String, bool) {
    let sendable = |text: &str| text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    let agent = config.user_agent.clone().unwrap_or_else(usual_agent);
    let can_be_sent = sendable(&agent) && !agent.is_empty();
    let must = "must be printable ASCII and not empty";
    wrong.demand(can_be_sent, "user_agent", must);
    let named = agent.split(['/', ' ']).next().is_some_and(|name| {
        let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
        !name.is_empty() && name.bytes().all(letter)
    });
    wrong.demand(
        named || !can_be_sent,
        "user_agent",
        "must begin with a name of letters, - and _, which robots.txt rules refer to",
    );
    let contact = config.contact.as_deref().unwrap_or_default().trim();
    wrong.demand(sendable(contact), "contact", "must be printable ASCII");
    let agent = match contact {
        "" => agent,
        contact => format!("{agent} (+{contact})"),
    };
    let has_contact = !contact.is_empty() || agent.contains('@') || agent.contains("://");
    (agent, has_contact)
}

pub(crate) fn scope_options(given: &ScopeConfig, wrong: &mut Mistakes<'_>) -> ScopeOptions {
    let usual = ScopeOptions::default();
    let kind = match given.kind.as_deref() {
        None => usual.kind,
        Some("host") => ScopeKind::Host,
        Some("domain") => ScopeKind::Domain,
        Some("prefix") => ScopeKind::Prefix,
        Some("any") => ScopeKind::Any,
        Some(other) => {
            let message = format!("`{other}` is not host, domain, prefix or any");
            wrong.about("scope.kind", message);
            usual.kind
        }
    };
    let options = ScopeOptions {
        kind,
        include: given.include.clone().unwrap_or(usual.include),
        exclude: given.exclude.clone().unwrap_or(usual.exclude),
        max_depth: given.depth.or(usual.max_depth),
        requisites: given.requisites.unwrap_or(usual.requisites),
    };
    // One by one, so that each that is wrong is named.
    for pattern in &options.include {
        demand_pattern("scope.include", pattern, wrong);
    }
    for pattern in &options.exclude {
        demand_pattern("scope.exclude", pattern, wrong);
    }
    options
}

fn demand_pattern(path: &str, pattern: &str, wrong: &mut Mistakes<'_>) {
    let alone = ScopeOptions {
        include: vec![pattern.to_owned()],
        ..ScopeOptions::default()
    };
    wrong.take(path, Scope::new(alone, &[]));
}

/// A sixty-fourth of half a gigabyte holds what is known of some fifteen thousand pages that were looked at.
pub(crate) fn trap_options(
    given: &TrapsConfig,
    usual: TrapOptions,
    limits: &Limits,
    memory: u64,
) -> TrapOptions {
    TrapOptions {
        enabled: given.enabled.unwrap_or(usual.enabled),
        copies: given.copies.unwrap_or(usual.copies),
        combinations: given.combinations.unwrap_or(usual.combinations),
        domain_hosts: given.domain_hosts.unwrap_or(usual.domain_hosts),
        first_year: given.first_year.unwrap_or(usual.first_year),
        years_ahead: given.years_ahead.unwrap_or(usual.years_ahead),
        path_depth: limits.max_path_depth,
        memory: usize::try_from(memory / 64).unwrap_or(usize::MAX),
    }
}

pub(crate) fn budgets(given: &BudgetConfig, wrong: &mut Mistakes<'_>) -> Budgets {
    let usual = Budgets::default();
    let host_bytes = wrong.size("budget.host_bytes", given.host_bytes.as_ref());
    let host_time = wrong.time("budget.host_time", given.host_time.as_ref());
    let domain_bytes = wrong.size("budget.domain_bytes", given.domain_bytes.as_ref());
    let domain_time = wrong.time("budget.domain_time", given.domain_time.as_ref());
    Budgets {
        host: Budget {
            pages: given.host_pages.unwrap_or(usual.host.pages),
            bytes: host_bytes.unwrap_or(usual.host.bytes),
            time: host_time.unwrap_or(usual.host.time),
        },
        domain: Budget {
            pages: given.domain_pages.unwrap_or(usual.domain.pages),
            bytes: domain_bytes.unwrap_or(usual.domain.bytes),
            time: domain_time.unwrap_or(usual.domain.time),
        },
    }
}

pub(crate) fn recrawl(given: &RecrawlConfig, wrong: &mut Mistakes<'_>) -> Option<RecrawlBounds> {
    let usual = RecrawlBounds::default();
    let min = wrong.time("recrawl.min", given.min.as_ref());
    let min = min.unwrap_or(usual.min);
    let max = wrong.time("recrawl.max", given.max.as_ref());
    let max = max.unwrap_or(usual.max.max(min));
    wrong.demand(
        min >= Duration::from_secs(1) && min <= max,
        "recrawl.min",
        "must be at least 1s and not above recrawl.max",
    );
    given
        .on
        .unwrap_or(false)
        .then_some(RecrawlBounds { min, max })
}

pub(crate) fn retry_options(given: &RetryConfig, wrong: &mut Mistakes<'_>) -> RetryOptions {
    let usual = RetryOptions::default();
    let delay = wrong.seconds("retry.delay_s", given.delay_s);
    let patience = wrong.seconds("retry.patience_s", given.patience_s);
    RetryOptions {
        busy_attempts: given.busy_attempts.unwrap_or(usual.busy_attempts),
        attempts: given.attempts.unwrap_or(usual.attempts),
        delay: delay.unwrap_or(usual.delay),
        patience: patience.unwrap_or(usual.patience),
    }
}

pub(crate) fn log_options(given: &LogConfig, wrong: &mut Mistakes<'_>) -> LogOptions {
    let usual = LogOptions::default();
    let rotate = wrong.size("log.rotate", given.rotate.as_ref());
    let options = LogOptions {
        rotate: rotate.unwrap_or(usual.rotate),
        files: given.files.unwrap_or(usual.files),
    };
    let must = "must be at least 64K";
    wrong.demand(options.rotate >= 64 << 10, "log.rotate", must);
    wrong.demand(options.files <= 1000, "log.files", "must be at most 1000");
    options
}

/// A DNS server.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53));
    text.parse::<SocketAddr>()
        .or_else(|_| alone())
        .map_err(|_| format!("`{text}` is not an address; write it like 127.0.0.1:53"))
}

/// Limits over the usual ones. With nothing allowed every fetch would fail, one after the other.
pub(crate) fn limits(given: &LimitsConfig, usual: Limits, wrong: &mut Mistakes<'_>) -> Limits {
    let time = |given, path: &'static str, wrong: &mut Mistakes<'_>| {
        let time = wrong.seconds(path, given);
        wrong.demand(time != Some(Duration::ZERO), path, "must be above 0");
        time
    };
    let bytes = |given: Option<usize>, usual, path, wrong: &mut Mistakes<'_>| {
        wrong.demand(given != Some(0), path, "must be above 0");
        given.unwrap_or(usual)
    };
    let total = time(given.total_timeout_s, "limits.total_timeout_s", wrong);
    let usual = match total {
        Some(total) => usual.with_total_timeout(total),
        None => usual,
    };
    let connect = time(given.connect_timeout_s, "limits.connect_timeout_s", wrong);
    let header = time(given.header_timeout_s, "limits.header_timeout_s", wrong);
    let idle = time(given.idle_timeout_s, "limits.idle_timeout_s", wrong);
    let retry_after = wrong.seconds("limits.retry_after_cap_s", given.retry_after_cap_s);
    let crawl_delay = wrong.seconds("limits.crawl_delay_cap_s", given.crawl_delay_cap_s);
    Limits {
        connect_timeout: connect.unwrap_or(usual.connect_timeout),
        header_timeout: header.unwrap_or(usual.header_timeout),
        idle_timeout: idle.unwrap_or(usual.idle_timeout),
        total_timeout: usual.total_timeout,
        max_header_bytes: bytes(
            given.max_header_bytes,
            usual.max_header_bytes,
            "limits.max_header_bytes",
            wrong,
        ),
        max_headers: bytes(
            given.max_headers,
            usual.max_headers,
            "limits.max_headers",
            wrong,
        ),
        max_body_bytes: bytes(
            given.max_body_bytes,
            usual.max_body_bytes,
            "limits.max_body_bytes",
            wrong,
        ),
        max_decoded_bytes: bytes(
            given.max_decoded_bytes,
            usual.max_decoded_bytes,
            "limits.max_decoded_bytes",
            wrong,
        ),
        min_body_rate: given.min_body_rate.unwrap_or(usual.min_body_rate),
        max_encodings: given.max_encodings.unwrap_or(usual.max_encodings),
        max_redirects: given.max_redirects.unwrap_or(usual.max_redirects),
        robots_max_bytes: given.robots_max_bytes.unwrap_or(usual.robots_max_bytes),
        robots_max_redirects: (given.robots_max_redirects).unwrap_or(usual.robots_max_redirects),
        max_url_bytes: bytes(
            given.max_url_bytes,
            usual.max_url_bytes,
            "limits.max_url_bytes",
            wrong,
        ),
        max_nesting: given.max_nesting.unwrap_or(usual.max_nesting),
        max_links_per_page: given.max_links_per_page.unwrap_or(usual.max_links_per_page),
        max_path_depth: given.max_path_depth.unwrap_or(usual.max_path_depth),
        retry_after_cap: retry_after.unwrap_or(usual.retry_after_cap),
        crawl_delay_cap: crawl_delay.unwrap_or(usual.crawl_delay_cap),
        max_sitemap_urls: given.max_sitemap_urls.unwrap_or(usual.max_sitemap_urls),
    }
}
