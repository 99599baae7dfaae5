//! What holds for which host: the tables of the file, validated and laid over one another, so that each name has all
//! that holds for it.

mod requests;

use orbweaver_intake::{Canonicalizer, TrapOptions, registered_domain};
use orbweaver_model::{HostPolicy, HostRequest, Limits, PerHost};

use self::requests::{credentials, demand_auth, demand_headers, demand_limits, headers, over};
use crate::config::{Config, LimitsConfig};
use crate::hosts::{HostConfig, HostTrapsConfig};
use crate::mistakes::Mistakes;

/// The settings of single hosts, for each stage its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSettings {
    /// Request rates of hosts.
    pub policies: PerHost<HostPolicy>,
    /// What requests to hosts say and take.
    pub requests: PerHost<HostRequest>,
    /// When families of URLs are taken for endless.
    pub traps: PerHost<TrapOptions>,
    /// Secrets that are not at hand, each in a sentence. Whoever only reads a crawl does not need them.
    pub missing: Vec<String>,
}

impl HostSettings {
    fn add(&mut self, whom: Whom<'_>, rule: Rule) {
        whom.set(rule.policy, &mut self.policies);
        whom.set(rule.request, &mut self.requests);
        whom.set(rule.traps, &mut self.traps);
    }

    /// The names of hosts and domains whose robots.txt is ignored, those of domains with a leading `*.`.
    pub fn robots_ignored(&self) -> Vec<String> {
        let policies = self.policies.iter();
        let ignored = policies.filter(|(_, policy)| policy.ignore_robots);
        ignored.map(|(name, _)| name).collect()
    }
}

/// What holds for all hosts, over which the tables are laid.
pub(crate) struct Usual<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) traps: &'a TrapOptions,
    /// The limits per address, for whoever keeps them.
    pub(crate) address: Option<AddressLimits>,
}

/// The request rate of one address, for all hosts that share it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressLimits {
    /// Requests per second; 0 means no limit.
    pub(crate) rate: f64,
    /// Requests at once.
    pub(crate) at_once: u16,
}

/// Validates the tables about hosts and domains.
pub(crate) fn rules(config: &Config, usual: &Usual<'_>, wrong: &mut Mistakes<'_>) -> HostSettings {
    let mut settings = HostSettings::default();
    for (name, written) in &config.hosts {
        let path = format!("host.{name:?}");
        wrong.demand(is_host(name), &path, "is not the name of a host");
        let missing = demand_sense(&path, written, usual, wrong);
        settings.missing.extend(missing);
        let all = covering(config, name).under(written.clone());
        let rule = Rule::new(&all, &config.limits, usual);
        settings.add(Whom::Host(name), rule);
    }
    for (name, written) in &config.domains {
        let path = format!("domain.{name:?}");
        let is_domain = is_host(name) && !is_address(name);
        wrong.demand(is_domain, &path, "is not the name of a domain");
        let missing = demand_sense(&path, written, usual, wrong);
        settings.missing.extend(missing);
        wrong.demand(
            written.auth.is_none() || registered_domain(name).is_some() || !is_domain,
            &format!("{path}.auth"),
            "cannot be set for a public suffix, whose hosts have many owners",
        );
        let rule = Rule::new(&covering(config, name), &config.limits, usual);
        settings.add(Whom::Domain(name), rule);
    }
    settings
}

/// Whom a table is about.
#[derive(Clone, Copy)]
enum Whom<'a> {
    Host(&'a str),
    Domain(&'a str),
}

impl Whom<'_> {
    fn set<T>(self, value: Option<T>, rules: &mut PerHost<T>) {
        match (self, value) {
            (Self::Host(name), Some(value)) => rules.set_host(name, value),
            (Self::Domain(name), Some(value)) => rules.set_domain(name, value),
            (_, None) => {}
        }
    }
}

/// Whether it is written as in a canonical URL, so that it can be found there.
fn is_host(name: &str) -> bool {
    let url = Canonicalizer::default().parse(&format!("http://{name}/"));
    url.is_ok_and(|url| url.host() == name && url.authority() == name)
}

fn is_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    name.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is written about the domains that a name is or is part of, the longest name on top.
fn covering(config: &Config, name: &str) -> HostConfig {
    let is_part = |domain: &str| {
        let rest = name.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let mut domains: Vec<(&String, &HostConfig)> = config
        .domains
        .iter()
        .filter(|(domain, _)| is_part(domain))
        .collect();
    domains.sort_by_key(|(domain, _)| domain.len());
    let tables = domains.into_iter().map(|(_, table)| table.clone());
    tables.fold(HostConfig::default(), HostConfig::under)
}

/// Names every mistake in one table; the answer is what secret is missing.
fn demand_sense(
    path: &str,
    written: &HostConfig,
    usual: &Usual<'_>,
    wrong: &mut Mistakes<'_>,
) -> Option<String> {
    let rate = wrong.rate(&format!("{path}.rate"), written.rate);
    if let Some(address) = usual.address {
        demand_within(path, rate, written.per_host, address, wrong);
    }
    let fits = written
        .per_host
        .is_none_or(|count| (1..=1 << 12).contains(&count));
    let must = "must be from 1 to 4096";
    wrong.demand(fits, &format!("{path}.per_host"), must);
    let robots = written.robots.as_deref().unwrap_or(OBEY);
    let known = [OBEY, IGNORE].contains(&robots);
    let must = "must be \"obey\" or \"ignore\"";
    wrong.demand(known, &format!("{path}.robots"), must);
    demand_headers(path, &written.headers, wrong);
    demand_limits(path, &written.limits, usual.limits, wrong);
    written
        .auth
        .as_ref()
        .and_then(|auth| demand_auth(&format!("{path}.auth"), auth, wrong))
}

/// What is above the limits per address would be written and never happen.
fn demand_within(
    path: &str,
    rate: Option<f64>,
    per_host: Option<u16>,
    address: AddressLimits,
    wrong: &mut Mistakes<'_>,
) {
    let AddressLimits {
        rate: most,
        at_once,
    } = address;
    // One that is no rate has been reported already.
    let within = |rate: f64| most == 0.0 || (rate != 0.0 && rate <= most);
    let must = format!(
        "must not be above politeness.ip_rate, {most} requests per second to one address: raise that too"
    );
    wrong.demand(rate.is_none_or(within), &format!("{path}.rate"), &must);
    let must = format!(
        "must not be above politeness.per_ip, {at_once} concurrent requests to one address: raise that too"
    );
    let fits = per_host.is_none_or(|count| count <= at_once);
    wrong.demand(fits, &format!("{path}.per_host"), &must);
}

const OBEY: &str = "obey";
const IGNORE: &str = "ignore";

/// What a table comes to, where it says something.
struct Rule {
    policy: Option<HostPolicy>,
    request: Option<HostRequest>,
    traps: Option<TrapOptions>,
}

impl Rule {
    fn new(all: &HostConfig, general: &LimitsConfig, usual: &Usual<'_>) -> Self {
        let policy = HostPolicy {
            rate: all.rate,
            per_host: all.per_host,
            ignore_robots: all.robots.as_deref() == Some(IGNORE),
        };
        let request = HostRequest {
            headers: headers(&all.headers),
            credentials: all.auth.as_ref().and_then(credentials),
            limits: over(usual.limits, general, &all.limits).map(Box::new),
        };
        let traps = HostTrapsConfig::default() != all.traps;
        Self {
            // Also where it says no more than the rest: a host can be an exception of its domain.
            policy: (all.rate.is_some() || all.per_host.is_some() || all.robots.is_some())
                .then_some(policy),
            request: (request != HostRequest::default()).then_some(request),
            traps: traps.then(|| trap_options(&all.traps, usual.traps)),
        }
    }
}

fn trap_options(given: &HostTrapsConfig, usual: &TrapOptions) -> TrapOptions {
    TrapOptions {
        enabled: given.enabled.unwrap_or(usual.enabled),
        copies: given.copies.unwrap_or(usual.copies),
        combinations: given.combinations.unwrap_or(usual.combinations),
        first_year: given.first_year.unwrap_or(usual.first_year),
        years_ahead: given.years_ahead.unwrap_or(usual.years_ahead),
        ..usual.clone()
    }
}

#[cfg(test)]
mod tests;
