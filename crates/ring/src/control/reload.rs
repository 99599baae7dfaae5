//! Settings read again while the crawl runs: which of them can take effect at once, and which wait for the next start.

use orbweaver_config::{HostSettings, Settings};

/// What differs: that which takes effect at once, and the rest.
pub(super) fn differences(old: &Settings, new: &Settings) -> (Vec<String>, Vec<String>) {
    let mut live = Vec::new();
    let mut later = Vec::new();
    macro_rules! compare {
        ($list:ident: $($name:literal $($field:ident).+),+ $(,)?) => {
            $($list.extend(difference($name, &old.$($field).+, &new.$($field).+));)+
        };
    }
    compare!(live:
        "rate" host_rate, "ip_rate" ip_rate, "per_ip" per_ip, "pages" pages,
        "host_pages" budgets.host.pages, "host_bytes" budgets.host.bytes, "host_time" budgets.host.time,
        "domain_pages" budgets.domain.pages, "domain_bytes" budgets.domain.bytes, "domain_time" budgets.domain.time,
        "time" time, "scope" scope.kind, "include" scope.include, "exclude" scope.exclude,
        "depth" scope.max_depth, "requisites" scope.requisites, "rate, per_host and robots of hosts" hosts.policies,
    );
    compare!(later:
        "user_agent" user_agent, "memory" memory, "nofollow" obey_nofollow, "sitemaps" sitemaps, "per_host" per_host,
        "queue_count" queue_count, "queue_len" queue_len,
        "ip_batch_max" ip_batch_max, "slow_factor" slow_factor, "slow_max_s" slow_max, "concurrency" concurrency,
        "workers" workers, "allow_net" allow_net, "insecure" insecure, "resolver" resolver,
        "ca" ca, "retry" retry, "rotate" rotate, "log" log, "limits" limits, "seeds" seeds,
        "canonical form" canonical, "traps" traps, "recrawl" recrawl, "head_first" head_first,
        "traps of hosts" hosts.traps,
    );
    // Compared as they are, for what is printed of them has no secrets.
    if old.hosts.requests != new.hosts.requests {
        later.push("headers, auth and limits of hosts".into());
    }
    // A setting that none of the lists names is one that needs a new start.
    let now = format!("{:?}", in_effect(old.clone(), new.clone()));
    if later.is_empty() && now != format!("{new:?}") {
        later.push("other settings".into());
    }
    (live, later)
}

fn difference<T: std::fmt::Debug>(name: &str, old: &T, new: &T) -> Option<String> {
    let (old, new) = (format!("{old:?}"), format!("{new:?}"));
    if old == new {
        return None;
    }
    // What has parts is named; the file says the rest.
    match old.contains('{') || new.contains('{') {
        true => Some(name.into()),
        false => Some(format!("{name} {} → {}", plain(&old), plain(&new))),
    }
}

/// A value as the user writes it.
fn plain(value: &str) -> String {
    let inner = value
        .strip_prefix("Some(")
        .and_then(|rest| rest.strip_suffix(')'));
    match inner.unwrap_or(value) {
        "None" => "not set".into(),
        word if word.bytes().all(|byte| byte.is_ascii_alphabetic()) => word.to_ascii_lowercase(),
        other => other.into(),
    }
}

/// The old settings, with those of the new that take effect at once.
pub(super) fn in_effect(old: Settings, new: Settings) -> Settings {
    Settings {
        host_rate: new.host_rate,
        ip_rate: new.ip_rate,
        per_ip: new.per_ip,
        pages: new.pages,
        budgets: new.budgets,
        time: new.time,
        scope: new.scope,
        hosts: HostSettings {
            policies: new.hosts.policies,
            ..old.hosts
        },
        ..old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(toml: &str) -> Settings {
        Settings::new(&toml::from_str(toml).unwrap()).unwrap()
    }

    #[test]
    fn what_takes_effect_is_told_from_what_does_not() {
        let old = settings("");
        assert_eq!(differences(&old, &settings("")), (vec![], vec![]));
        let (live, later) = differences(
            &old,
            &settings(
                "[politeness]\nrate = 5.0\n[scope]\nexclude = [\"x\"]\n[fetch]\nconcurrency = 9",
            ),
        );
        assert_eq!(
            live,
            [
                "rate 1.0 → 5.0",
                "ip_rate 1.0 → 5.0",
                "exclude [] → [\"x\"]"
            ]
        );
        assert_eq!(later, ["concurrency 512 → 9"]);
    }
}
