//! The names of keys: as we write them, as the design documents do, and the one that was meant by a name that there is
//! not.

use crate::config::SECTIONS;
use crate::kinds::{Key, near};

/// The unit of a value under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// As under ours.
    Same,
    /// Milliseconds, where ours are seconds.
    Millis,
}

/// Other names of keys, most of them from the design documents: as they write them, or in small letters, above all
/// sections or in the section of the key.
pub(crate) const NAMES: [(&str, &str, Unit); 33] = [
    ("Spider_Host", "spider.host", Unit::Same),
    ("Spider_Port", "spider.port", Unit::Same),
    ("Timeout_Update", "spider.update_s", Unit::Millis),
    ("Store_Host", "store.host", Unit::Same),
    ("Store_Port", "store.port", Unit::Same),
    ("Results_Port", "store.results_port", Unit::Same),
    ("Dir", "store.dir", Unit::Same),
    ("Rotate", "store.rotate", Unit::Same),
    ("Key_File", "daemons.key_file", Unit::Same),
    ("Mode", "daemons.mode", Unit::Same),
    ("Index_Dir", "urlserver.dir", Unit::Same),
    ("Spiders", "urlserver.spiders", Unit::Same),
    (
        "Timeout_Spider_Status",
        "urlserver.status_timeout_s",
        Unit::Same,
    ),
    ("Queue_Count", "politeness.queue_count", Unit::Same),
    ("Queue_Len", "politeness.queue_len", Unit::Same),
    ("Req_Host_Concurrent", "politeness.per_host", Unit::Same),
    ("Req_Host_Per_Sec", "politeness.rate", Unit::Same),
    ("Timeout_Req", "limits.total_timeout_s", Unit::Millis),
    ("Timeout_Req_s", "limits.total_timeout_s", Unit::Same),
    ("Timeout_Connect", "limits.connect_timeout_s", Unit::Millis),
    ("Timeout_Header", "limits.header_timeout_s", Unit::Millis),
    ("Timeout_Idle", "limits.idle_timeout_s", Unit::Millis),
    ("Max_Doc_Size", "limits.max_body_bytes", Unit::Same),
    ("Concurrency", "fetch.concurrency", Unit::Same),
    ("Workers", "fetch.workers", Unit::Same),
    ("Allow_Net", "fetch.allow_net", Unit::Same),
    ("Ca", "fetch.ca", Unit::Same),
    ("Insecure", "fetch.insecure", Unit::Same),
    ("Max_Pages_Per_Host", "budget.host_pages", Unit::Same),
    ("Seeds", "seeds", Unit::Same),
    ("User_Agent", "user_agent", Unit::Same),
    ("Contact", "contact", Unit::Same),
    ("Memory", "memory", Unit::Same),
];

/// The key with this path.
pub(crate) fn by_path(path: &str) -> Option<&'static Key> {
    let mut keys = SECTIONS.iter().flat_map(|(_, keys)| keys.iter());
    keys.find(|key| key.path == path)
}

/// The key that a name in a section stands for, or above all sections where that is empty.
pub(crate) fn named(section: &str, written: &str) -> Option<(&'static Key, Unit)> {
    let own = SECTIONS.iter().find(|(name, _)| *name == section);
    let own = own.and_then(|(_, keys)| keys.iter().find(|key| key.name == written));
    if let Some(key) = own {
        return Some((key, Unit::Same));
    }
    let is_it = |name: &str| name == written || name.to_ascii_lowercase() == written;
    let mut others = NAMES.iter().filter(|(name, ..)| is_it(name));
    others.find_map(|(_, path, unit)| {
        let key = by_path(path)?;
        (section.is_empty() || section == key.section).then_some((key, *unit))
    })
}

/// The name that was most likely meant by one that there is not: where only the case of its letters or its underscores
/// differ, or little else.
pub(crate) fn nearest(section: &str, written: &str) -> Option<&'static str> {
    let own = SECTIONS.iter().filter(|(name, _)| *name == section);
    let own = own.flat_map(|(_, keys)| keys.iter().map(|key| key.name));
    let others = NAMES.iter().filter(|(_, path, _)| {
        section.is_empty() || by_path(path).is_some_and(|key| key.section == section)
    });
    let sections = SECTIONS.iter().map(|(name, _)| *name);
    let sections = sections.filter(|name| section.is_empty() && !name.is_empty());
    near(
        written,
        own.chain(others.map(|(name, ..)| *name)).chain(sections),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_name_stands_for_a_key() {
        for (name, path, unit) in NAMES {
            let key = by_path(path).unwrap_or_else(|| panic!("{name} stands for nothing"));
            assert!(unit == Unit::Same || key.name.ends_with("_s"), "{name}");
            assert_eq!(named("", name).map(|(key, _)| key.path), Some(path));
            let small = name.to_ascii_lowercase();
            assert_eq!(
                named(key.section, &small).map(|(key, _)| key.path),
                Some(path)
            );
        }
    }

    #[test]
    fn the_key_that_was_meant_is_found() {
        assert_eq!(nearest("politeness", "ratte"), Some("rate"));
        assert_eq!(nearest("", "Store_Prot"), Some("Store_Port"));
        assert_eq!(nearest("", "politness"), Some("politeness"));
        assert_eq!(nearest("", "maxdocsize"), Some("Max_Doc_Size"));
        assert_eq!(nearest("", "nonsense"), None);
        assert_eq!(nearest("scope", "x"), None);
    }
}
