//! Changes to single hosts, the same for a crawl that runs and one that does not: what a question means,
//! whether it makes sense, and which event makes it durable.

use std::time::Duration;

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

use orbweaver_docindex::{DocIndex, IndexOptions, Reader};
use orbweaver_intake::{CanonicalOptions, Canonicalizer, seeds::parse_seed};
use orbweaver_model::{Event, HostSetting, Timestamp};

use crate::changes::{Change, Changes};
use crate::question::Question;
use orbweaver_config::units::rate_of;
use orbweaver_crawldir::CrawlDir;

/// What an operator hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The number of the change in the log.
    pub n: Option<u64>,
    /// What was done, in a sentence.
    pub said: String,
    /// More, a line each.
    #[serde(default)]
    pub details: Vec<String>,
}

/// A change to one host.
pub struct HostChange {
    /// The host's name.
    pub host: String,
    /// What goes into the log.
    pub change: Change,
    /// What is set.
    pub setting: HostSetting,
}

impl HostChange {
    /// Reads a question; none when it is about no single host. The host must be known.
    pub fn of(question: &Question, reader: &Reader) -> Result<Option<Self>> {
        let (text, blocked) = match question {
            Question::Block { host } => (host, Some(true)),
            Question::Unblock { host } => (host, Some(false)),
            Question::Rate { host, .. } => (host, None),
            _ => return Ok(None),
        };
        let host = host_name(text)?;
        let Some(record) = reader.host(&host)? else {
            return Err(Error::not_found(format!(
                "host {host} is not known in this crawl; no URL of it was found"
            )));
        };
        let (change, setting) = match (question, blocked) {
            (Question::Rate { rate, .. }, _) => {
                let gap = rate.map(gap_of).transpose()?;
                let change = Change::Rate {
                    host: host.clone(),
                    rate: *rate,
                    was: record.gap.map(rate_of),
                };
                (change, HostSetting::Gap(gap))
            }
            (_, blocked) => {
                let blocked = blocked == Some(true);
                let change = Change::Blocked {
                    host: host.clone(),
                    blocked,
                    was: record.blocked.is_some(),
                };
                (change, HostSetting::Blocked(blocked))
            }
        };
        Ok(Some(Self {
            host,
            change,
            setting,
        }))
    }

    /// The event that makes it durable.
    pub fn event(&self, reader: &Reader, at: Timestamp) -> Event {
        Event::Setting {
            host: reader.seed().host(&self.host),
            setting: self.setting,
            at,
        }
    }
}

/// Makes a change to a host, or takes one back, in a crawl that is not running.
pub fn at_rest(dir: &CrawlDir, question: &Question, at: Timestamp) -> Result<Said> {
    let _held = CrawlDir::hold(dir.path())?;
    let mut docs = DocIndex::open(&dir.index(), IndexOptions::default(), at)?;
    let changes = Changes::of(dir);
    let (question, undoes) = match question {
        Question::Undo { n } => (changes.inverse(*n)?, Some(*n)),
        other => (other.clone(), None),
    };
    let reader = docs.reader();
    let Some(change) = HostChange::of(&question, &reader)? else {
        return Err(not_running(dir, &question));
    };
    let n = changes.append(&change.change, undoes, at)?;
    docs.apply([change.event(&reader, at)])?;
    docs.sync()?;
    Ok(Said {
        n: Some(n),
        said: format!(
            "{}; it takes effect with the next run",
            change.change.words()
        ),
        details: Vec::new(),
    })
}

/// Why a crawl that does not run cannot do this, and what can be done instead.
pub fn not_running(dir: &CrawlDir, question: &Question) -> Error {
    let shown = dir.path().display();
    let instead = match question {
        Question::Add { .. } => {
            format!("`orbweaver crawl URL -o {shown}` adds seeds and resumes it")
        }
        Question::Reload => {
            format!("`orbweaver crawl -o {shown}` reads the settings when it starts")
        }
        Question::Stop => "there is nothing to stop".into(),
        _ => format!("`orbweaver crawl -o {shown}` resumes it"),
    };
    Error::NotRunning(format!("no crawl is running in {shown}; {instead}"))
}

/// The host in its canonical form; a URL names its host.
fn host_name(text: &str) -> Result<String> {
    let canonicalizer = Canonicalizer::new(CanonicalOptions::default());
    let url = match text.contains("://") {
        true => parse_seed(text, &canonicalizer),
        false => parse_seed(&format!("http://{text}/"), &canonicalizer),
    };
    url.map(|url| url.host().to_owned())
        .map_err(|error| Error::input(format!("`{text}` is not a host: {error}")))
}

/// The time between two requests at a rate.
fn gap_of(rate: f64) -> Result<Duration> {
    if !(0.0..=1e6).contains(&rate) || (rate > 0.0 && rate < 1e-6) {
        return Err(Error::input(
            "a rate is 0 (no limit) or a number of requests per second, at most a million",
        ));
    }
    Ok(match rate {
        0.0 => Duration::ZERO,
        rate => Duration::from_secs_f64(1.0 / rate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_survive_their_way_through_gaps() {
        for rate in [0.0, 0.001, 0.3, 1.0, 3.0, 7.0, 1000.0] {
            assert_eq!(rate_of(gap_of(rate).unwrap()), rate);
        }
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e-9] {
            assert!(gap_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_in_any_spelling() {
        for (text, host) in [
            ("Example.ORG", "example.org"),
            ("http://example.org:8080/a", "example.org"),
            ("127.0.0.1", "127.0.0.1"),
            ("münchen.example", "xn--mnchen-3ya.example"),
        ] {
            assert_eq!(host_name(text).unwrap(), host);
        }
        assert!(host_name("a b").is_err());
    }
}
