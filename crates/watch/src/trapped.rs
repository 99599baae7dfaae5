//! What the rules against traps left out, for the summary. A site that is cut short is an answer that is missing, so
//! it is said which URLs, how many, by which rule, and how to have them all the same.

use std::collections::BTreeMap;

use crate::error::Result;

use orbweaver_docindex::Reader;
use orbweaver_intake::pattern_of;
use orbweaver_model::{CrawlUrl, Outcome, OutcomeClass};

use crate::status::Status;
use orbweaver_config::units::counted;

/// URLs of the index that are looked at in search of those left out; some seconds' worth.
const LOOKED_AT: usize = 1_000_000;

/// Families that are named.
const SHOWN: usize = 5;

/// Families that are told apart; the URLs of others count and are not named.
const MAX_FAMILIES: usize = 1000;

/// Patterns of a family that are told apart.
const MAX_PATTERNS: usize = 64;

/// URLs of one host that one rule left out.
#[derive(Debug, Default)]
struct Family {
    urls: u64,
    patterns: BTreeMap<String, u64>,
    /// What was recorded for the first of them.
    reason: String,
}

/// What the summary says of the URLs that were left out; nothing when there are none.
pub fn notices(reader: &Reader, status: &Status) -> Result<Vec<String>> {
    let class = OutcomeClass::TrapBounded.to_string();
    let left_out = status.classes.get(&class).copied().unwrap_or(0);
    Ok(Bounded::read(reader, left_out)?.notices(left_out))
}

/// The families of URLs that were left out, by host and rule.
#[derive(Debug, Default)]
struct Bounded {
    families: BTreeMap<(String, String), Family>,
    found: u64,
}

impl Bounded {
    /// Looks for the `left_out` URLs that the rules refused.
    fn read(reader: &Reader, left_out: u64) -> Result<Self> {
        let mut bounded = Self::default();
        if left_out == 0 {
            return Ok(bounded);
        }
        for entry in reader.entries().take(LOOKED_AT) {
            let entry = entry?;
            let Some(fate) = entry.fate else { continue };
            let outcome = fate.report.outcome;
            if outcome.class == OutcomeClass::TrapBounded {
                bounded.add(&entry.link.url, outcome);
                if bounded.found >= left_out {
                    break;
                }
            }
        }
        Ok(bounded)
    }

    fn add(&mut self, url: &CrawlUrl, outcome: Outcome) {
        self.found += 1;
        // The first words name the rule, the rest are numbers and names.
        let rule: Vec<&str> = outcome.reason.split(' ').take(4).collect();
        let rule: String = rule.join(" ").replace(|c: char| c.is_ascii_digit(), "");
        let key = (url.host().to_owned(), rule);
        if !self.families.contains_key(&key) && self.families.len() >= MAX_FAMILIES {
            return;
        }
        let family = self.families.entry(key).or_default();
        family.urls += 1;
        if family.reason.is_empty() {
            family.reason = outcome.reason;
        }
        let pattern = pattern_of(url);
        if family.patterns.contains_key(&pattern) || family.patterns.len() < MAX_PATTERNS {
            *family.patterns.entry(pattern).or_default() += 1;
        }
    }

    /// What the summary says of them. `left_out` is how many there are in all.
    fn notices(&self, left_out: u64) -> Vec<String> {
        if left_out == 0 {
            return Vec::new();
        }
        let mut notices = vec![format!(
            "trap detection left out {}; if these are real pages, --no-traps fetches them, \
             or adjust [traps]",
            counted(left_out, "URL")
        )];
        let mut families: Vec<&Family> = self.families.values().collect();
        families.sort_by_key(|family| std::cmp::Reverse(family.urls));
        let shown = families.iter().take(SHOWN);
        notices.extend(shown.map(|family| family.line()));
        let rest: u64 = families.iter().skip(SHOWN).map(|family| family.urls).sum();
        let rest = rest + left_out.saturating_sub(self.found);
        if rest > 0 && !families.is_empty() {
            notices.push(format!("left out as a trap: {} more", counted(rest, "URL")));
        }
        notices
    }
}

impl Family {
    fn line(&self) -> String {
        let most = self.patterns.iter().max_by_key(|(_, urls)| **urls);
        let pattern = most.map_or("", |(pattern, _)| pattern);
        let others = match self.patterns.len() {
            0 | 1 => "",
            _ => " and others",
        };
        format!(
            "left out as a trap: {} like {pattern}{others}: {}",
            counted(self.urls, "URL"),
            self.reason
        )
    }
}
