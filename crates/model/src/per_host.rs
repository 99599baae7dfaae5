//! Settings that hold for some hosts only: how they are asked, and what requests to them say and take.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};

use crate::limits::Limits;

/// A value for single hosts, and for all hosts of a domain. The most specific name wins: a host before its domain, a
/// domain before the one that it is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerHost<T> {
    hosts: BTreeMap<Box<str>, T>,
    domains: BTreeMap<Box<str>, T>,
}

impl<T> Default for PerHost<T> {
    fn default() -> Self {
        Self {
            hosts: BTreeMap::new(),
            domains: BTreeMap::new(),
        }
    }
}

impl<T> PerHost<T> {
    /// For the host with this name and no other.
    pub fn set_host(&mut self, name: &str, value: T) {
        self.hosts.insert(name.into(), value);
    }

    /// For the host with this name and all whose names end in it.
    pub fn set_domain(&mut self, name: &str, value: T) {
        self.domains.insert(name.into(), value);
    }

    /// True when it says nothing about any host.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.domains.is_empty()
    }

    /// What holds for a host, by its name in a canonical URL.
    pub fn get(&self, host: &str) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        if let Some(value) = self.hosts.get(host) {
            return Some(value);
        }
        suffixes(host).find_map(|name| self.domains.get(name))
    }

    /// The names with what holds for each, those of domains with a leading `*.`.
    pub fn iter(&self) -> impl Iterator<Item = (String, &T)> {
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|(name, value)| (name.to_string(), value));
        let domains = self.domains.iter();
        hosts.chain(domains.map(|(name, value)| (format!("*.{name}"), value)))
    }
}

/// A name and the domains that it is part of, the longest first.
fn suffixes(host: &str) -> impl Iterator<Item = &str> {
    let dots = host.match_indices('.').map(|(dot, _)| dot + 1);
    let rest = dots.filter_map(|start| host.get(start..));
    std::iter::once(host).chain(rest)
}

/// How a host is asked, where that differs from all others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostPolicy {
    /// Requests per second; 0 means no limit.
    pub rate: Option<f64>,
    /// Requests at once.
    pub per_host: Option<u16>,
    /// Its robots.txt is neither asked for nor obeyed.
    pub ignore_robots: bool,
}

/// What requests to a host say and take, where that differs from all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRequest {
    /// Header lines of every request, in place of ours of the same name.
    pub headers: HeaderMap,
    /// Credentials.
    pub credentials: Option<Credentials>,
    /// How much is taken.
    pub limits: Option<Box<Limits>>,
}

/// An Authorization header. It is marked as sensitive, so that nothing prints it by chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The value of the header.
    pub value: HeaderValue,
    /// It is sent over http too, where everybody on the way can read it.
    pub over_http: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_name_wins() {
        let mut rules = PerHost::default();
        assert_eq!(rules.get("www.example.org"), None);
        rules.set_domain("example.org", 1);
        rules.set_domain("deep.example.org", 2);
        rules.set_host("www.example.org", 3);
        for (host, expected) in [
            ("www.example.org", Some(3)),
            ("example.org", Some(1)),
            ("other.example.org", Some(1)),
            ("x.www.example.org", Some(1)),
            ("deep.example.org", Some(2)),
            ("a.b.deep.example.org", Some(2)),
            ("notexample.org", None),
            ("org", None),
            ("", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(rules.get(host).copied(), expected, "{host}");
        }
    }

    #[test]
    fn credentials_are_not_printed() {
        let mut value = HeaderValue::from_static("Bearer secret");
        value.set_sensitive(true);
        let credentials = Credentials {
            value,
            over_http: false,
        };
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
