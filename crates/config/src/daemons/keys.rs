//! The keys of a daemon's file: how the documents and we write each, what its value must be, and what the user wrote.
//!
//! Every key is read on its own, so that all mistakes are known at once, each under the name that stands in the file.

use std::collections::BTreeMap;

use super::DaemonConfig;
use crate::config::{Config, in_plain_words};

/// A key in small letters, as the documents and the help write it, and what it must be.
type Known = (&'static str, &'static str, &'static str);

const TEXT: &str = "a text in quotes";
const PATH: &str = "a path in quotes";
const PORT: &str = "a port, a number from 0 to 65535";
const COUNT: &str = "a whole number";
const MILLIS: &str = "a whole number of milliseconds";
const LIST: &str = "a list of texts, as in [\"…\", \"…\"]";
const SIZE: &str = "a size in quotes, as in \"256M\"";

const KEYS: [Known; 31] = [
    ("spider_host", "Spider_Host", TEXT),
    ("spider_port", "Spider_Port", PORT),
    ("store_host", "Store_Host", TEXT),
    ("store_port", "Store_Port", PORT),
    ("results_port", "Results_Port", PORT),
    ("key_file", "Key_File", PATH),
    ("mode", "Mode", TEXT),
    ("timeout_update", "Timeout_Update", MILLIS),
    ("timeout_req", "Timeout_Req", MILLIS),
    ("timeout_connect", "Timeout_Connect", MILLIS),
    ("timeout_header", "Timeout_Header", MILLIS),
    ("timeout_idle", "Timeout_Idle", MILLIS),
    ("max_doc_size", "Max_Doc_Size", "a whole number of bytes"),
    ("dir", "Dir", PATH),
    ("rotate", "Rotate", SIZE),
    ("concurrency", "Concurrency", COUNT),
    ("workers", "Workers", COUNT),
    ("memory", "Memory", SIZE),
    ("user_agent", "User_Agent", TEXT),
    ("contact", "Contact", TEXT),
    ("allow_net", "Allow_Net", LIST),
    ("ca", "Ca", PATH),
    ("insecure", "Insecure", "true or false"),
    ("spiders", "Spiders", LIST),
    (
        "timeout_spider_status",
        "Timeout_Spider_Status",
        "a number of seconds",
    ),
    ("queue_count", "Queue_Count", COUNT),
    ("queue_len", "Queue_Len", COUNT),
    (
        "req_host_concurrent",
        "Req_Host_Concurrent",
        "a whole number up to 4096",
    ),
    ("req_host_per_sec", "Req_Host_Per_Sec", "a number"),
    ("index_dir", "Index_Dir", PATH),
    ("crawl", "Crawl", "a table with settings of a crawl"),
];

/// The names under which keys stand in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Names(BTreeMap<&'static str, String>);

impl Names {
    /// The key as the user wrote it, or as the documents do when it does not stand in the file.
    pub(super) fn of(&self, key: &'static str) -> &str {
        let known = || KEYS.iter().find(|(small, ..)| *small == key);
        match self.0.get(key) {
            Some(written) => written,
            None => known().map_or(key, |(_, document, _)| document),
        }
    }

    /// Whether the key stands in the file.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

/// Reads a table key by key. What cannot be read is left out of the configuration and is a mistake in it.
pub(super) fn read(table: toml::Table) -> DaemonConfig {
    let mut good = toml::Table::new();
    let mut names = Names::default();
    let mut wrong = Vec::new();
    for (written, value) in table {
        let Some((key, _, must)) = known(&written) else {
            wrong.push(unknown(&written));
            continue;
        };
        if let Some(before) = names.0.insert(key, written.clone()) {
            wrong.push(format!(
                "{before} and {written} are the same setting; keep one of them"
            ));
            continue;
        }
        let alone = toml::Table::from_iter([(key.to_owned(), value.clone())]);
        match toml::Value::Table(alone).try_into::<DaemonConfig>() {
            Ok(_) => {
                good.insert(key.to_owned(), value);
            }
            Err(_) if key == "crawl" && value.is_table() => {
                good.insert(key.to_owned(), crawl(&written, value, &mut wrong));
            }
            Err(_) => wrong.push(format!("{written} = {value} must be {must}")),
        }
    }
    let mut config: DaemonConfig = toml::Value::Table(good).try_into().unwrap_or_default();
    config.names = names;
    config.mistakes = wrong;
    config
}

/// What can be read of the table of the crawl, key by key too.
fn crawl(written: &str, value: toml::Value, wrong: &mut Vec<String>) -> toml::Value {
    let mut good = toml::Table::new();
    let mut take = |path: String,
                    table: &mut toml::Table,
                    key: &str,
                    value: toml::Value,
                    wrap: &dyn Fn(toml::Value) -> toml::Table| {
        let alone = wrap(value.clone());
        match toml::Value::Table(alone).try_into::<Config>() {
            Ok(_) => {
                table.insert(key.to_owned(), value);
            }
            Err(error) => wrong.push(format!(
                "[{path}] {key}: {}",
                in_plain_words(error.message())
            )),
        }
    };
    let table = value.try_into::<toml::Table>().unwrap_or_default();
    for (key, value) in table {
        let one = |value| toml::Table::from_iter([(key.clone(), value)]);
        match value {
            toml::Value::Table(part) if !part.is_empty() => {
                let mut kept = toml::Table::new();
                for (inner, value) in part {
                    let two = |value| {
                        let within = toml::Table::from_iter([(inner.clone(), value)]);
                        one(toml::Value::Table(within))
                    };
                    take(format!("{written}.{key}"), &mut kept, &inner, value, &two);
                }
                good.insert(key, toml::Value::Table(kept));
            }
            value => take(written.to_owned(), &mut good, &key, value, &one),
        }
    }
    // A table of a name that there is not is empty by now, and still a mistake that was told.
    let is_known = |(key, value): &(String, toml::Value)| {
        let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
        toml::Value::Table(alone).try_into::<Config>().is_ok()
    };
    toml::Value::Table(good.into_iter().filter(is_known).collect())
}

fn known(written: &str) -> Option<Known> {
    let is_it = |(small, document, _): &&Known| *small == written || *document == written;
    KEYS.iter().find(is_it).copied()
}

/// What to say of a key that there is not: the one that was meant, where only its letters differ in case or its
/// underscores are missing, or one that differs in little.
fn unknown(written: &str) -> String {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_ascii_lowercase()
    };
    let meant = plain(written);
    let near = KEYS
        .iter()
        .map(|(small, document, _)| (distance(&plain(small), &meant), *document))
        .min();
    match near {
        Some((0..=2, document)) => format!("{written} is not a setting; {document} is"),
        _ => format!("{written} is not a setting of the daemons"),
    }
}

/// How many letters must be put in, left out or changed (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (number, left) in one.bytes().enumerate() {
        let mut corner = number;
        let mut last = number + 1;
        for (right, place) in other.bytes().zip(row.iter_mut().skip(1)) {
            let here = (corner + usize::from(left != right))
                .min(last + 1)
                .min(*place + 1);
            corner = std::mem::replace(place, here);
            last = here;
        }
        if let Some(first) = row.first_mut() {
            *first = number + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
