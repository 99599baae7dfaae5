//! What may be asked of which host: the usual gap and window, and what is set for single hosts.
//!
//! Operators block hosts and set gaps while the crawl runs; whether such a change is durable is not known here. What a
//! host itself asks for (Crawl-delay, Retry-After, slowness) comes on top and is kept with the host.

use std::sync::Arc;
use std::time::Duration;

use orbweaver_model::HostSetting;

use crate::hash::HashMap;
use crate::host::Grant;
use crate::options::UrlServerOptions;

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
    /// As many as operators have typed.
    settings: HashMap<Arc<str>, Setting>,
}

impl Policies {
    pub(crate) fn new(options: &UrlServerOptions) -> Self {
        let mut policies = Self {
            usual: Grant {
                gap: options.host_delay(),
                window: options.host_concurrent,
            },
            settings: HashMap::default(),
        };
        for (host, setting) in &options.settings {
            policies.set(&host.as_str().into(), *setting);
        }
        policies
    }

    /// Another usual gap from now on.
    pub(crate) fn set_usual_gap(&mut self, gap: Duration) {
        self.usual.gap = gap;
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
        let own = self.settings.get(host).and_then(|set| set.gap);
        Grant {
            gap: own.unwrap_or(self.usual.gap),
            window: self.usual.window,
        }
    }

    /// The largest window of any host.
    pub(crate) fn largest_window(&self) -> u16 {
        self.usual.window
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
        policies.set_usual_gap(second * 2);
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
