//! The web of the simulation: nothing is stored of it, everything follows from a host's number.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use orbweaver_model::{Candidate, CrawlUrl, LinkKind, UrlKey};

/// A number that looks like any other, but is always the same for the same one: the end of SplitMix64.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a host is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temper {
    /// It has a robots.txt that denies /private.
    Rules,
    /// It has none.
    Missing,
    /// Its robots.txt answers 503.
    Broken,
    /// Its robots.txt answers 503 for some hours, and then denies /private.
    Outage,
    /// Its robots.txt is on another host, and denies /private too.
    Moved,
    /// Its name has no address.
    Gone,
    /// Nothing listens there.
    Down,
    /// It has no robots.txt and takes its time.
    Slow,
    /// It has no robots.txt and half of its pages fail.
    Flaky,
}

pub(crate) fn temper(host: u32) -> Temper {
    match mix(u64::from(host) ^ 0x7e3) % 100 {
        0..=49 => Temper::Rules,
        50..=83 => Temper::Missing,
        84 => Temper::Broken,
        85 => Temper::Outage,
        86..=91 => Temper::Moved,
        92..=93 => Temper::Gone,
        94..=95 => Temper::Down,
        96..=97 => Temper::Slow,
        _ => Temper::Flaky,
    }
}

/// When the robots.txt of an `Outage` host can be had, in microseconds from the start.
pub(crate) fn outage(host: u32) -> u64 {
    let minutes = match mix(u64::from(host) ^ 0x007) % 4 {
        // Hardly longer than the attempts go on.
        0 => 2,
        1 => 30,
        2 => 200,
        _ => 700,
    };
    minutes * 60_000_000
}

/// The Crawl-delay that the robots.txt of a host asks for, in seconds.
pub(crate) fn crawl_delay(host: u32) -> u64 {
    match mix(u64::from(host) ^ 0xde1) % 200 {
        _ if temper(host) != Temper::Rules => 0,
        0..=9 => 2,
        10..=11 => 10,
        // More than the cap.
        12 => 1000,
        _ => 0,
    }
}

pub(crate) fn robots_txt(host: u32) -> String {
    match crawl_delay(host) {
        0 => "User-agent: *\nDisallow: /private\n".into(),
        delay => format!("User-agent: *\nDisallow: /private\nCrawl-delay: {delay}\n"),
    }
}

/// Where the robots.txt of a `Moved` host is. Many of them share one place.
pub(crate) fn robots_host(host: u32) -> u32 {
    host - host % 1000
}

pub(crate) fn is_private(url: u32) -> bool {
    url % 11 == 10
}

/// The addresses of a host at a time: one or two, and for some hosts others every six hours.
pub(crate) fn addresses(host: u32, ips: u32, now: u64) -> Vec<IpAddr> {
    let kind = mix(u64::from(host) ^ 0xadd);
    let epoch = if kind.is_multiple_of(10) {
        now / (6 * 3600 * 1_000_000)
    } else {
        0
    };
    let at = |n: u64| ip((mix(u64::from(host) << 8 | n | epoch << 40) % u64::from(ips)) as u32);
    if kind.is_multiple_of(7) {
        vec![at(0), at(1)]
    } else {
        vec![at(0)]
    }
}

fn ip(number: u32) -> IpAddr {
    if number.is_multiple_of(5) {
        Ipv6Addr::from((0x2001_0db8_u128 << 96) | u128::from(number)).into()
    } else {
        Ipv4Addr::from(0x0b00_0000 + number).into()
    }
}

/// The number of an address.
pub(crate) fn ip_number(ip: IpAddr) -> u32 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip) - 0x0b00_0000,
        IpAddr::V6(ip) => u128::from(ip) as u32,
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// The inverse of `ODD` modulo 2^64.
const EVEN_OUT: u64 = 0xf1de_83e1_9937_733d;

/// The hash of a host, from which its number can be had back.
pub(crate) fn hash(host: u32) -> u64 {
    (u64::from(host) + 1).wrapping_mul(ODD)
}

pub(crate) fn unhash(hash: u64) -> u32 {
    (hash.wrapping_mul(EVEN_OUT) - 1) as u32
}

pub(crate) fn host_number(name: &str) -> u32 {
    name.trim_start_matches('h').parse().unwrap()
}

pub(crate) fn candidate(host: u32, url: u32) -> Candidate {
    let path = if is_private(url) { "private" } else { "p" };
    Candidate {
        key: UrlKey {
            host: hash(host),
            url: u64::from(url),
        },
        doc_id: url + 1,
        url: CrawlUrl::from_canonical(&format!("http://h{host}/{path}/{url}")).unwrap(),
        kind: if url.is_multiple_of(97) {
            LinkKind::Redirect
        } else {
            LinkKind::A
        },
        depth: 0,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}

/// How many URLs each host has, as the number of its first one: a few hosts have most.
pub(crate) fn sizes(hosts: u32, urls: u32) -> Vec<u32> {
    let weight = |host: u32| 1.0 / (f64::from(host) + 10.0);
    let all: f64 = (0..hosts).map(weight).sum();
    let mut first = Vec::with_capacity(hosts as usize + 1);
    let mut sum = 0.0;
    for host in 0..hosts {
        first.push((sum / all * f64::from(urls)) as u32);
        sum += weight(host);
    }
    first.push(urls);
    first
}
