//! What limits the speed of a crawl, by how much, and which setting would change it.
//!
//! A pure function of what was counted, so that the progress line and `why --slow` say the same.

use serde::{Deserialize, Serialize};

use orbweaver_urlserver::{Bottleneck, Census};

use orbweaver_config::Settings;
use orbweaver_config::units::human_bytes;

/// Bytes that wait for the store from which on it is the limit: a quarter of what may wait.
const STORE_BEHIND: usize = 4 << 20;

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What the URL server counted.
    pub census: Census,
    /// Pages a second, lately.
    pub rate: f64,
    /// Cores in use, lately.
    pub busy: f64,
    /// Bytes that wait for the store.
    pub backlog: usize,
    /// What the store complains of.
    pub trouble: Option<String>,
    /// URLs still to be requested.
    pub queued: u64,
    /// Seconds to the next retry or the next host, when nothing else is left.
    pub next_try: Option<u64>,
    /// All that is left belongs to blocked hosts.
    pub only_blocked: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// What limits, in a word or two.
    pub limit: String,
    /// The same with numbers.
    pub sentence: String,
    /// What would change it; none when nothing would.
    pub setting: Option<String>,
    /// Pages a second, lately.
    pub pages_per_second: f64,
    /// The most that the limit allows, where that can be said.
    pub at_most: Option<f64>,
    /// Requests that are out.
    pub in_flight: usize,
    /// Hosts with a queue.
    pub hosts: usize,
}

/// What is said of one limit.
struct Explanation {
    word: String,
    sentence: String,
    setting: Option<&'static str>,
    at_most: Option<f64>,
}

fn limit(word: &str, sentence: String, setting: Option<&'static str>) -> Explanation {
    Explanation {
        word: word.into(),
        sentence,
        setting,
        at_most: None,
    }
}

/// Explains.
pub fn explain(facts: &Facts, settings: &Settings) -> Slow {
    let found = find(facts, settings);
    Slow {
        limit: found.word,
        sentence: found.sentence,
        setting: found.setting.map(str::to_owned),
        pages_per_second: facts.rate,
        at_most: found.at_most,
        in_flight: facts.census.orders,
        hosts: facts.census.hosts,
    }
}

fn find(facts: &Facts, settings: &Settings) -> Explanation {
    let Facts { census, .. } = facts;
    if let Some(trouble) = &facts.trouble {
        let sentence = format!("the store cannot write: {trouble}");
        return limit(
            "store (the disk fails)",
            sentence,
            Some("repair the disk; the crawl resumes by itself"),
        );
    }
    if census.paused {
        let sentence = format!(
            "an operator paused the crawl; {} requests are still in flight",
            census.orders
        );
        return limit("paused", sentence, Some("`orbweaver ctl DIR resume`"));
    }
    let workers = settings.workers;
    // The workers and, at full load, the threads of index and store beside them.
    if facts.busy > 0.85 * workers as f64 {
        let sentence = format!("{:.1} cores are in use by {workers} workers", facts.busy);
        return limit(
            "CPU",
            sentence,
            Some("`[fetch] workers`, if the machine has more cores"),
        );
    }
    if facts.backlog > STORE_BEHIND {
        let sentence = format!("{} wait to be written", human_bytes(facts.backlog as u64));
        return limit(
            "store",
            sentence,
            Some("a faster disk under the crawl directory"),
        );
    }
    match (census.bottleneck, facts.next_try) {
        (_, Some(seconds)) if census.orders == 0 && facts.queued == 0 => limit(
            &format!("recrawl (next visit in {seconds} s)"),
            format!("no page is due; the next visit is due in {seconds} s"),
            Some("`--recrawl-min` and `--recrawl-max`"),
        ),
        (_, Some(seconds)) if census.orders == 0 => limit(
            &format!("politeness (next try in {seconds} s)"),
            format!(
                "{} URLs are left, and their hosts accept requests in {seconds} s at the earliest",
                facts.queued
            ),
            Some("`[retry] delay_s`, unless the wait comes from a server (Retry-After)"),
        ),
        (Bottleneck::Politeness, _) => politeness(census, settings),
        (Bottleneck::Sockets, _) => limit(
            "sockets",
            format!(
                "{} of {} requests are in flight",
                census.orders, settings.concurrency
            ),
            Some("`--concurrency`"),
        ),
        (Bottleneck::Resolver, _) => limit(
            "DNS",
            format!(
                "{} of {} hosts wait for their addresses",
                census.resolving, census.hosts
            ),
            Some("`--resolver`, with a faster DNS server"),
        ),
        (Bottleneck::Candidates, _) if facts.only_blocked => limit(
            "blocked hosts",
            format!(
                "the {} URLs that are left belong to blocked hosts",
                facts.queued
            ),
            Some("`orbweaver ctl DIR unblock HOST`"),
        ),
        (Bottleneck::Candidates, _) => limit(
            "no URLs left",
            format!(
                "{} requests are in flight and no other URL is queued",
                census.orders
            ),
            Some("more seeds (`orbweaver ctl DIR add URL`) or a wider `--scope`"),
        ),
    }
}

/// Hosts are there, and each waits for something.
fn politeness(census: &Census, settings: &Settings) -> Explanation {
    let hosts = census.hosts;
    let most = [
        (census.waiting_for_time, 0),
        (census.waiting_for_ip, 1),
        (census.waiting_for_robots, 2),
        (census.busy, 3),
    ];
    let (count, kind) = most
        .into_iter()
        .max_by_key(|(count, _)| *count)
        .unwrap_or((0, 0));
    let (sentence, setting, at_most) = match kind {
        0 => {
            let ceiling = ceiling(hosts, settings.host_rate);
            (
                format!(
                    "{count} of {hosts} hosts wait for their next request{}",
                    allowed(
                        ceiling,
                        &format!(
                            "at {} requests/s per host these {hosts} hosts allow",
                            settings.host_rate
                        )
                    ),
                ),
                "`--rate`, if the site owners agree and no Crawl-delay is longer; for slow hosts `[politeness] slow_factor`",
                ceiling,
            )
        }
        1 => {
            let ceiling = ceiling(census.addresses, settings.ip_rate);
            (
                format!(
                    "{count} of {hosts} hosts wait for an IP address that they share{}",
                    allowed(
                        ceiling,
                        &format!(
                            "at {} requests/s per address these {} addresses allow",
                            settings.ip_rate, census.addresses
                        )
                    ),
                ),
                "`[politeness] ip_rate` and `--per-ip`",
                ceiling,
            )
        }
        2 => (
            format!("{count} of {hosts} hosts wait for their robots.txt"),
            "none: robots.txt is fetched first, and retried if the host does not answer",
            None,
        ),
        _ => (
            format!(
                "{count} of {hosts} hosts have requests in flight, {} per host",
                settings.per_host
            ),
            "`--per-host`, if the site owners agree",
            None,
        ),
    };
    Explanation {
        at_most,
        ..limit("politeness", sentence, Some(setting))
    }
}

fn ceiling(count: usize, rate: f64) -> Option<f64> {
    (rate > 0.0).then_some(count as f64 * rate)
}

fn allowed(ceiling: Option<f64>, prefix: &str) -> String {
    ceiling.map_or(String::new(), |most| {
        format!("; {prefix} at most {most:.1} pages/s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(facts: &Facts) -> Slow {
        explain(
            facts,
            &Settings::new(&toml::from_str("[fetch]\nworkers = 2").unwrap()).unwrap(),
        )
    }

    #[test]
    fn politeness_is_counted_against_its_ceiling() {
        let slow = say(&Facts {
            census: Census {
                hosts: 40,
                waiting_for_time: 37,
                bottleneck: Bottleneck::Politeness,
                ..Census::default()
            },
            rate: 31.0,
            ..Facts::default()
        });
        assert_eq!(slow.limit, "politeness");
        assert_eq!(
            slow.sentence,
            "37 of 40 hosts wait for their next request; at 1 requests/s per host these 40 hosts allow at most 40.0 pages/s"
        );
        assert_eq!(slow.at_most, Some(40.0));
        assert!(slow.setting.unwrap().contains("--rate"));
    }

    #[test]
    fn each_limit_has_its_word() {
        let with = |bottleneck| Census {
            orders: 512,
            hosts: 9,
            resolving: 8,
            bottleneck,
            ..Census::default()
        };
        let facts = |census| Facts {
            census,
            ..Facts::default()
        };
        let sockets = facts(with(Bottleneck::Sockets));
        for (facts, limit, part) in [
            (sockets.clone(), "sockets", "512 of 512"),
            (facts(with(Bottleneck::Resolver)), "DNS", "8 of 9"),
            (
                Facts {
                    busy: 1.9,
                    ..sockets.clone()
                },
                "CPU",
                "1.9 cores are in use by 2 workers",
            ),
            (
                Facts {
                    backlog: 8 << 20,
                    ..sockets.clone()
                },
                "store",
                "8.4 MB",
            ),
            (
                Facts {
                    trouble: Some("full".into()),
                    ..sockets.clone()
                },
                "store (the disk fails)",
                "full",
            ),
            (
                facts(Census {
                    paused: true,
                    ..with(Bottleneck::Politeness)
                }),
                "paused",
                "512",
            ),
            (
                Facts {
                    queued: 3,
                    only_blocked: true,
                    ..Facts::default()
                },
                "blocked hosts",
                "3 URLs",
            ),
            (
                Facts {
                    queued: 1,
                    next_try: Some(7),
                    ..Facts::default()
                },
                "politeness (next try in 7 s)",
                "7 s",
            ),
            (
                Facts {
                    next_try: Some(7),
                    ..Facts::default()
                },
                "recrawl (next visit in 7 s)",
                "7 s",
            ),
        ] {
            let slow = say(&facts);
            assert_eq!(slow.limit, limit);
            assert!(slow.sentence.contains(part), "{}", slow.sentence);
            assert!(slow.setting.is_some());
        }
    }
}
