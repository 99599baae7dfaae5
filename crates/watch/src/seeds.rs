//! Seeds that are not reachable: reported at once with the cause and the flag that helps, and again in the summary.
//!
//! A host that does not answer is tried again for a minute and more before its URLs count as failed. Whoever has
//! mistyped a name or meets an unknown certificate wants to know after a second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use orbweaver_model::{CrawlUrl, Outcome, OutcomeClass};

use crate::notices::Notices;

/// Hosts of seeds that are watched; of a longer list of seeds some will do.
const WATCHED: usize = 100;
/// Hosts of which it is said.
const NAMED: usize = 5;
/// After this time without any answer a crawl says for whom it waits.
const SILENCE: Duration = Duration::from_millis(1500);

/// Watches the hosts of the seeds until they answer.
#[derive(Debug, Default)]
pub struct SeedWatch {
    /// Hosts in `waiting`. Every result asks, and nearly always there is nobody left to wait for.
    count: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// A seed of each origin that has not answered yet, by origin, and what was said of it. Filled at the start, bounded by
    /// `WATCHED`; emptied by answers.
    hosts: BTreeMap<String, (CrawlUrl, Option<String>)>,
    /// Sentences about hosts so far.
    said: usize,
    /// What was said when nobody had answered for a while.
    silence: Option<String>,
}

impl SeedWatch {
    /// Watches the hosts of these seeds.
    pub fn of(seeds: &[CrawlUrl]) -> Self {
        let mut hosts = BTreeMap::new();
        for seed in seeds {
            if hosts.len() >= WATCHED {
                break;
            }
            hosts
                .entry(seed.origin().to_owned())
                .or_insert_with(|| (seed.clone(), None));
        }
        Self {
            count: AtomicUsize::new(hosts.len()),
            waiting: Mutex::new(Waiting {
                hosts,
                ..Waiting::default()
            }),
        }
    }

    /// Hears what came of a request, or of an attempt at one.
    pub fn hear(&self, url: &CrawlUrl, outcome: &Outcome, has_answered: bool, notices: &Notices) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if has_answered {
            if let Some((_, Some(said))) = waiting.hosts.remove(url.origin()) {
                notices.withdraw(&said);
            }
            if let Some(said) = waiting.silence.take() {
                notices.withdraw(&said);
            }
            self.count.store(waiting.hosts.len(), Ordering::Relaxed);
            return;
        }
        let named = waiting.said;
        let Some((seed, said)) = waiting.hosts.get_mut(url.origin()) else {
            return;
        };
        if said.is_none() && named < NAMED {
            let sentence = sentence(seed, outcome);
            notices.add(sentence.clone());
            *said = Some(sentence);
            waiting.said += 1;
        }
    }

    /// Says for whom a crawl waits that has not got any answer yet.
    pub fn look(&self, elapsed: Duration, answers: u64, notices: &Notices) {
        if elapsed < SILENCE || answers > 0 || self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = waiting.hosts.values().filter(|(_, said)| said.is_none());
        let first = quiet.clone().next().map(|(seed, _)| seed.origin());
        let (Some(first), 0, None) = (first, waiting.said, &waiting.silence) else {
            return;
        };
        let others = match quiet.count() {
            0 | 1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        let sentence = format!("no server has answered yet; waiting for {first}{others}");
        notices.add(sentence.clone());
        waiting.silence = Some(sentence);
    }
}

fn sentence(seed: &CrawlUrl, outcome: &Outcome) -> String {
    let reason = outcome.reason.trim_start_matches("robots.txt: ");
    let cause = match reason {
        "" => outcome.class.to_string(),
        reason => format!("{}: {reason}", outcome.class),
    };
    let help = help(outcome).map_or(String::new(), |help| format!("; {help}"));
    format!("{} is not reachable: {cause}{help}", seed.origin())
}

/// The flag that helps, or what to look at.
pub fn help(outcome: &Outcome) -> Option<&'static str> {
    match outcome.class {
        OutcomeClass::FailedTls => Some(
            "--ca FILE trusts the authority that signed its certificate, --insecure accepts any",
        ),
        OutcomeClass::DeniedPolicy if outcome.reason.contains("address") => {
            Some("requests to private addresses need --allow-net CIDR")
        }
        OutcomeClass::FailedDns => {
            Some("check the name, or use another DNS server with --resolver ADDR:PORT")
        }
        OutcomeClass::FailedConnect | OutcomeClass::FailedTimeout => {
            Some("check host, port and network; it is retried for about a minute")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CrawlUrl {
        CrawlUrl::from_canonical(text).unwrap()
    }

    #[test]
    fn a_seed_that_fails_is_named_once_with_what_helps() {
        let watch = SeedWatch::of(&[url("https://a.example/x"), url("http://b.example/")]);
        let notices = Notices::default();
        let unknown = Outcome::because(OutcomeClass::FailedTls, "certificate: unknown issuer");
        watch.hear(
            &url("https://a.example/robots.txt"),
            &unknown,
            false,
            &notices,
        );
        watch.hear(
            &url("https://a.example/robots.txt"),
            &unknown,
            false,
            &notices,
        );
        let plain = Outcome::plain(OutcomeClass::Success);
        // Another port of the same host is another server.
        watch.hear(&url("http://a.example:8080/"), &plain, true, &notices);
        watch.hear(&url("http://b.example/robots.txt"), &plain, true, &notices);
        let refused = Outcome::plain(OutcomeClass::FailedConnect);
        watch.hear(&url("http://b.example/"), &refused, false, &notices);
        let said = notices.all();
        assert_eq!(said.len(), 1, "{said:?}");
        let sentence = said.first().unwrap();
        for word in [
            "https://a.example",
            "failed_tls",
            "unknown issuer",
            "--ca",
            "--insecure",
        ] {
            assert!(sentence.contains(word), "{word}: {sentence}");
        }
    }

    #[test]
    fn silence_is_said_once() {
        let watch = SeedWatch::of(&[url("https://a.example/")]);
        let notices = Notices::default();
        watch.look(Duration::from_millis(100), 0, &notices);
        assert_eq!(notices.all().len(), 0);
        watch.look(SILENCE, 0, &notices);
        watch.look(SILENCE * 2, 0, &notices);
        assert_eq!(notices.all().len(), 1);
        // When it answers after all, the summary has nothing to tell.
        let plain = Outcome::plain(OutcomeClass::Success);
        watch.hear(&url("https://a.example/"), &plain, true, &notices);
        assert_eq!(notices.all().len(), 0);
    }
}
