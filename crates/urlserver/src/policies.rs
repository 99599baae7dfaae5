//! What may be asked of which host: the usual gap and window, and what is set for single hosts.
//!
//! Operators block hosts and set gaps while the crawl runs; whether such a change is durable is not known here. What a
//! host itself asks for (Crawl-delay, Retry-After, slowness) comes on top and is kept with the host.

use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::{HostPolicy, HostSetting, PerHost};

use crate::hash::HashMap;
use crate::host::Grant;
use crate::options::{UrlServerOptions, delay};

/// What operators have set for one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Setting {
    blocked: bool,
    gap: Option<Duration>,
}

impl Setting {
    fn apply(&mut self, setting: HostSetting) {
        match setting {
            HostSetting::Blocked(blocked) => self.blocked = blocked,
            HostSetting::Gap(gap) => self.gap = gap,
        }
    }
}

/// The policy of every host.
#[derive(Debug)]
pub(crate) struct Policies {
    usual: Grant,
    /// What the configuration says of single hosts.
    hosts: PerHost<HostPolicy>,
    /// The largest window of any host.
    largest: u16,
    /// As many as operators have typed.
    settings: HashMap<Arc<str>, Setting>,
}

impl Policies {
    pub(crate) fn new(options: &UrlServerOptions) -> Self {
        let mut policies = Self {
            usual: Grant {
                gap: options.host_delay(),
                window: options.host_concurrent,
                obeys_robots: true,
            },
            hosts: PerHost::default(),
            largest: options.host_concurrent,
            settings: HashMap::default(),
        };
        policies.set_usual(options.host_delay(), options.hosts.clone());
        for (host, setting) in &options.settings {
            policies.set(&host.as_str().into(), *setting);
        }
        policies
    }

    /// Another usual gap, and other exceptions, from now on.
    pub(crate) fn set_usual(&mut self, gap: Duration, hosts: PerHost<HostPolicy>) {
        self.usual.gap = gap;
        let own = hosts.iter().filter_map(|(_, own)| own.per_host);
        self.largest = own.fold(self.usual.window, u16::max);
        self.hosts = hosts;
    }

    /// Sets something for one host.
    pub(crate) fn set(&mut self, host: &Arc<str>, setting: HostSetting) {
        let entry = self.settings.entry(host.clone()).or_default();
        entry.apply(setting);
        if *entry == Setting::default() {
            self.settings.remove(host);
        }
    }

    /// What a host is granted when it does not ask for more patience.
    pub(crate) fn grant(&self, host: &str) -> Grant {
        let typed = self.settings.get(host).and_then(|set| set.gap);
        let own = self.hosts.get(host).copied().unwrap_or_default();
        Grant {
            gap: typed.or(own.rate.map(delay)).unwrap_or(self.usual.gap),
            window: own.per_host.unwrap_or(self.usual.window),
            obeys_robots: !own.ignore_robots,
        }
    }

    /// The largest window of any host.
    pub(crate) fn largest_window(&self) -> u16 {
        self.largest
    }

    /// Whether nothing may be asked of a host.
    pub(crate) fn is_blocked(&self, host: &str) -> bool {
        self.settings.get(host).is_some_and(|set| set.blocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_win_over_the_configuration_and_that_over_what_is_usual() {
        let mut options = UrlServerOptions::default();
        let own = HostPolicy {
            rate: Some(0.5),
            per_host: Some(3),
            ignore_robots: true,
        };
        options.hosts.set_domain("example.org", own);
        let mut policies = Policies::new(&options);
        let grant = policies.grant("www.example.org");
        assert_eq!((grant.gap.as_secs(), grant.window), (2, 3));
        assert!(!grant.obeys_robots && policies.grant("example.net").obeys_robots);
        assert_eq!(policies.largest_window(), 3);
        let (www, second) = (Arc::from("www.example.org"), Duration::from_secs(1));
        policies.set(&www, HostSetting::Gap(Some(second * 9)));
        assert_eq!(policies.grant("www.example.org").gap, second * 9);
        policies.set(&www, HostSetting::Gap(None));
        policies.set_usual(second, PerHost::default());
        let grant = policies.grant("www.example.org");
        assert_eq!((grant.gap, grant.window), (second, 1));
        assert!(grant.obeys_robots);
    }

    #[test]
    fn a_setting_holds_until_it_is_taken_back() {
        let options = UrlServerOptions {
            settings: vec![("a".into(), HostSetting::Blocked(true))],
            ..UrlServerOptions::default()
        };
        let mut policies = Policies::new(&options);
        let (a, second) = (Arc::from("a"), Duration::from_secs(1));
        assert!(policies.is_blocked("a") && !policies.is_blocked("b"));
        assert_eq!(policies.grant("a").gap, second);
        policies.set(&a, HostSetting::Gap(Some(second * 9)));
        policies.set_usual(second * 2, PerHost::default());
        assert_eq!(
            (policies.grant("a").gap, policies.grant("b").gap),
            (second * 9, second * 2)
        );
        policies.set(&a, HostSetting::Gap(None));
        assert_eq!(policies.grant("a").gap, second * 2);
        policies.set(&a, HostSetting::Blocked(false));
        assert!(policies.settings.is_empty(), "what is usual is not kept");
    }
}
