//! A canonical URL as the ring carries it, and the keys made from it.
//!
//! How a link becomes canonical is intake's business; this type only promises that it has happened
//! and gives cheap access to the parts. Reading one back from disk parses nothing but positions.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The two schemes a crawler can fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The scheme as it stands in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL of this scheme does not spell out.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why a text is not a canonical URL.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// The scheme is neither http nor https.
    #[error("only http and https URLs can be crawled")]
    Scheme,
    /// There is no host, or it is not in its ASCII form.
    #[error("the URL has no usable host")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("the URL's port is not a number from 1 to 65535")]
    Port,
    /// The path does not begin with a slash, or a byte outside printable ASCII is left.
    #[error("the URL is not in canonical form")]
    NotCanonical,
    /// The URL is longer than any request line could carry.
    #[error("the URL is longer than {} bytes", CrawlUrl::MAX_LEN)]
    TooLong,
}

/// A canonical, absolute http or https URL without fragment or user information.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrawlUrl {
    text: Box<str>,
    host_start: u8,
    host_end: u16,
    path_start: u16,
    port: u16,
}

impl CrawlUrl {
    /// No URL of the ring is longer than this; `Limits::max_url_bytes` is usually lower.
    pub const MAX_LEN: usize = 32 * 1024;

    /// Takes a text that is already canonical: `scheme://host[:port]/path[?query]`, printable ASCII.
    pub fn from_canonical(text: &str) -> Result<Self, UrlError> {
        if text.len() > Self::MAX_LEN {
            return Err(UrlError::TooLong);
        }
        let (scheme, host_start) = if text.starts_with("http://") {
            (Scheme::Http, 7)
        } else if text.starts_with("https://") {
            (Scheme::Https, 8)
        } else {
            return Err(UrlError::Scheme);
        };
        // One pass without an early end, which the compiler makes one of many bytes at a time.
        let odd = |b: u8| !b.is_ascii_graphic() || b == b'#';
        if text.bytes().fold(false, |any, b| any | odd(b)) {
            return Err(UrlError::NotCanonical);
        }
        let rest = text.get(host_start..).unwrap_or_default();
        let authority_len = rest.find('/').ok_or(UrlError::NotCanonical)?;
        let authority = rest.get(..authority_len).unwrap_or_default();
        if authority.contains(['@', '?']) {
            return Err(UrlError::NotCanonical);
        }
        // The colon that opens a port follows the bracket of an IPv6 address, never stands inside it.
        let port_colon = match authority.rfind(']') {
            Some(bracket) => authority
                .get(bracket..)
                .and_then(|tail| tail.find(':'))
                .map(|at| at + bracket),
            None => authority.find(':'),
        };
        let host_len = port_colon.unwrap_or(authority_len);
        if host_len == 0 {
            return Err(UrlError::Host);
        }
        let port = match port_colon.and_then(|at| authority.get(at + 1..)) {
            Some(digits) => digits
                .parse::<u16>()
                .ok()
                .filter(|port| *port != 0)
                .ok_or(UrlError::Port)?,
            None => scheme.default_port(),
        };
        let position = |at: usize| u16::try_from(at).map_err(|_| UrlError::TooLong);
        Ok(Self {
            text: text.into(),
            host_start: host_start as u8,
            host_end: position(host_start + host_len)?,
            path_start: position(host_start + authority_len)?,
            port,
        })
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// http or https.
    pub fn scheme(&self) -> Scheme {
        if self.host_start == 7 {
            Scheme::Http
        } else {
            Scheme::Https
        }
    }

    /// The host name in lower case; an IPv6 address keeps its brackets.
    pub fn host(&self) -> &str {
        self.slice(self.host_start.into(), self.host_end.into())
    }

    /// The port to connect to, spelled out or not.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and, when it is not the scheme's own, port: what the Host header says.
    pub fn authority(&self) -> &str {
        self.slice(self.host_start.into(), self.path_start.into())
    }

    /// Scheme and authority: `https://example.org:8443`. One robots.txt governs one origin.
    pub fn origin(&self) -> &str {
        self.slice(0, self.path_start.into())
    }

    /// Path and query: what the request line asks for.
    pub fn target(&self) -> &str {
        self.slice(self.path_start.into(), self.text.len())
    }

    /// The path alone.
    pub fn path(&self) -> &str {
        self.target().split('?').next().unwrap_or_default()
    }

    /// The query alone, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.target().split_once('?').map(|(_, query)| query)
    }

    /// The address, when the host is one instead of a name: of an IPv4-mapped one the IPv4 address.
    pub fn host_ip(&self) -> Option<IpAddr> {
        let host = self.host();
        match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(v6) => v6.parse::<Ipv6Addr>().ok().map(|v6| v6.to_canonical()),
            None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        }
    }

    /// The URL of the robots.txt that governs this one.
    pub fn robots_txt(&self) -> Self {
        let text = format!("{}/robots.txt", self.origin());
        Self {
            text: text.into(),
            ..self.clone()
        }
    }

    /// The key under which this URL is known.
    pub fn key(&self, seed: KeySeed) -> UrlKey {
        UrlKey {
            host: seed.host(self.host()),
            url: seed.hash(self.as_str()),
        }
    }

    fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }
}

impl fmt::Display for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for CrawlUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for CrawlUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::from_canonical(&text).map_err(serde::de::Error::custom)
    }
}

/// The secret of one crawl that keys its hashes, so that nobody outside can construct two URLs
/// with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySeed(pub u64);

impl KeySeed {
    /// The hash of a host name.
    pub fn host(self, host: &str) -> u64 {
        self.hash(host)
    }

    /// The key of a text that is a canonical URL, without making one of it: what [`CrawlUrl::key`] gives.
    pub fn key_of(self, canonical: &str) -> UrlKey {
        let scheme_end = if canonical.starts_with("https") { 8 } else { 7 };
        let rest = canonical.get(scheme_end..).unwrap_or_default();
        let bytes = rest.as_bytes();
        let end = match bytes.first() {
            // The colons inside an IPv6 address open no port.
            Some(b'[') => bytes.iter().position(|b| *b == b']').map(|at| at + 1),
            _ => bytes.iter().position(|b| matches!(b, b':' | b'/')),
        };
        UrlKey {
            host: self.host(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()),
            url: self.hash(canonical),
        }
    }

    /// The hash of any text.
    pub fn hash(self, text: &str) -> u64 {
        xxh3_64_with_seed(text.as_bytes(), self.0)
    }
}

/// Host hash and URL hash: the key of a URL everywhere. Ordered by host, so that what belongs to one
/// host lies together on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UrlKey {
    /// Hash of the host name.
    pub host: u64,
    /// Hash of the whole URL.
    pub url: u64,
}

impl UrlKey {
    /// Sixteen bytes that sort like the key.
    pub fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.host) << 64) | u128::from(self.url)).to_be_bytes()
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self {
            host: (both >> 64) as u64,
            url: both as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let url = CrawlUrl::from_canonical("https://example.org:8443/a/b?c=d").unwrap();
        assert_eq!(url.scheme(), Scheme::Https);
        assert_eq!(url.host(), "example.org");
        assert_eq!(url.port(), 8443);
        assert_eq!(url.authority(), "example.org:8443");
        assert_eq!(url.origin(), "https://example.org:8443");
        assert_eq!(
            (url.target(), url.path(), url.query()),
            ("/a/b?c=d", "/a/b", Some("c=d"))
        );
        assert_eq!(
            url.robots_txt().as_str(),
            "https://example.org:8443/robots.txt"
        );
        assert_eq!(
            url.robots_txt(),
            CrawlUrl::from_canonical("https://example.org:8443/robots.txt").unwrap()
        );
    }

    #[test]
    fn addresses_as_hosts() {
        let v6 = CrawlUrl::from_canonical("http://[::1]:8080/").unwrap();
        assert_eq!((v6.host(), v6.port()), ("[::1]", 8080));
        assert_eq!(v6.host_ip(), Some("::1".parse().unwrap()));
        let v4 = CrawlUrl::from_canonical("http://127.1.2.3/").unwrap();
        assert_eq!(v4.host_ip(), Some("127.1.2.3".parse().unwrap()));
        assert_eq!(
            CrawlUrl::from_canonical("http://example.org/")
                .unwrap()
                .host_ip(),
            None
        );
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        for (text, why) in [
            ("ftp://example.org/", UrlError::Scheme),
            ("http:///x", UrlError::Host),
            ("http://example.org", UrlError::NotCanonical),
            ("http://example.org/#x", UrlError::NotCanonical),
            ("http://u@example.org/", UrlError::NotCanonical),
            ("http://example.org/ä", UrlError::NotCanonical),
            ("http://example.org:0/", UrlError::Port),
            ("http://example.org:99999/", UrlError::Port),
        ] {
            assert_eq!(CrawlUrl::from_canonical(text), Err(why), "{text}");
        }
    }

    #[test]
    fn the_key_of_a_text_is_that_of_its_url() {
        for text in [
            "http://example.org/",
            "https://example.org:8443/a:b/[c]?d=e:/f",
            "http://127.1.2.3:80/x",
            "http://[::1]/",
            "http://[::1]:8080/a]b",
        ] {
            let url = CrawlUrl::from_canonical(text).unwrap();
            assert_eq!(KeySeed(9).key_of(text), url.key(KeySeed(9)), "{text}");
        }
    }

    #[test]
    fn keys_sort_by_host_and_survive_bytes() {
        let key = UrlKey {
            host: 1,
            url: u64::MAX,
        };
        assert_eq!(UrlKey::from_bytes(key.to_bytes()), key);
        assert!(key.to_bytes() < UrlKey { host: 2, url: 0 }.to_bytes());
    }
}
