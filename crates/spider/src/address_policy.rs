//! Which addresses and ports the crawler may connect to.
//!
//! A link, a redirect or a DNS answer can name any address, also one that only this machine or its
//! network can reach. Everything that is not public unicast is refused unless the operator allowed
//! its network. The check runs on numbers, never on names; who calls it, and when, is not decided here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Decides about addresses and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    allowed: Vec<IpNet>,
}

/// Why an address or a port is refused: one short phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub &'static str);

impl AddressPolicy {
    /// A policy that allows public addresses and, besides, whatever lies in `allowed`.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Whether a connection to `ip` is allowed.
    pub fn check(&self, ip: IpAddr) -> Result<(), Refusal> {
        // An IPv4-mapped address reaches the same machine as the IPv4 address in it (RFC 4291, 2.5.5.2).
        let ip = ip.to_canonical();
        let verdict = match ip {
            IpAddr::V4(v4) => check_v4(v4),
            IpAddr::V6(v6) => check_v6(v6),
        };
        verdict.or_else(|refusal| {
            if self.allowed.iter().any(|net| net.contains(&ip)) {
                Ok(())
            } else {
                Err(refusal)
            }
        })
    }

    /// Whether a request may be sent to `port`: some ports belong to protocols whose servers would take
    /// an HTTP request for commands.
    pub fn check_port(&self, port: u16) -> Result<(), Refusal> {
        if BAD_PORTS.binary_search(&port).is_ok() {
            Err(Refusal("port of another protocol"))
        } else {
            Ok(())
        }
    }
}

/// The "bad ports" of the WHATWG Fetch standard, sorted; no allowed network lifts them.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// The IANA special-purpose registry for IPv4 (RFC 6890 and its updates).
fn check_v4(ip: Ipv4Addr) -> Result<(), Refusal> {
    let phrase = match ip.octets() {
        [0, ..] => "unspecified address",
        [127, ..] => "loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private address",
        [169, 254, ..] => "link-local address",
        [100, 64..=127, ..] => "carrier-grade NAT address",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "documentation address",
        [198, 18..=19, ..] => "benchmarking address",
        [192, 0, 0, _] | [192, 88, 99, _] => "reserved address",
        [224..=239, ..] => "multicast address",
        [255, 255, 255, 255] => "broadcast address",
        [240..=255, ..] => "reserved address",
        _ => return Ok(()),
    };
    Err(Refusal(phrase))
}

/// Only 2000::/3 is global unicast (RFC 4291, 2.4); parts of it are special, and some prefixes carry an
/// IPv4 address to which a translator or a tunnel would forward.
fn check_v6(ip: Ipv6Addr) -> Result<(), Refusal> {
    let segments = ip.segments();
    let embedded =
        |high: u16, low: u16| check_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    let phrase = match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified address",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback address",
        // NAT64 (RFC 6052) and 6to4 (RFC 3056).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            return embedded(high, low);
        }
        [0xfc00..=0xfdff, ..] => "private address",
        [0xfe80..=0xfebf, ..] => "link-local address",
        [0xff00..=0xffff, ..] => "multicast address",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => "documentation address",
        // 2001::/23: Teredo, benchmarking, ORCHID and other protocol assignments (RFC 2928).
        [0x2001, 0..=0x01ff, ..] => "reserved address",
        [0x2000..=0x3fff, ..] => return Ok(()),
        // The rest: IPv4-compatible ::/96, local-use NAT64, discard-only 100::/64, site-local, unassigned.
        _ => "reserved address",
    };
    Err(Refusal(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_refused() {
        let policy = AddressPolicy::default();
        for (text, phrase) in [
            ("0.0.0.0", "unspecified address"),
            ("0.1.2.3", "unspecified address"),
            ("127.0.0.1", "loopback address"),
            ("127.255.255.255", "loopback address"),
            ("10.1.2.3", "private address"),
            ("172.16.0.1", "private address"),
            ("172.31.255.255", "private address"),
            ("192.168.1.1", "private address"),
            ("169.254.169.254", "link-local address"),
            ("100.64.0.1", "carrier-grade NAT address"),
            ("100.127.255.255", "carrier-grade NAT address"),
            ("192.0.2.1", "documentation address"),
            ("198.51.100.7", "documentation address"),
            ("203.0.113.7", "documentation address"),
            ("198.18.0.1", "benchmarking address"),
            ("198.19.255.255", "benchmarking address"),
            ("192.0.0.8", "reserved address"),
            ("192.88.99.1", "reserved address"),
            ("224.0.0.1", "multicast address"),
            ("239.1.1.1", "multicast address"),
            ("240.0.0.1", "reserved address"),
            ("255.255.255.255", "broadcast address"),
            ("::", "unspecified address"),
            ("::1", "loopback address"),
            ("fc00::1", "private address"),
            ("fd12:3456::1", "private address"),
            ("fe80::1", "link-local address"),
            ("fec0::1", "reserved address"),
            ("ff02::1", "multicast address"),
            ("2001:db8::1", "documentation address"),
            ("3fff::1", "documentation address"),
            ("2001::1", "reserved address"),
            ("100::1", "reserved address"),
            ("4000::1", "reserved address"),
            ("64:ff9b:1::808:808", "reserved address"),
            // Forms that carry an IPv4 address.
            ("::ffff:127.0.0.1", "loopback address"),
            ("::ffff:169.254.169.254", "link-local address"),
            ("::127.0.0.1", "reserved address"),
            ("::8.8.8.8", "reserved address"),
            ("64:ff9b::10.0.0.1", "private address"),
            ("2002:7f00:1::", "loopback address"),
            ("2002:c0a8:101::5", "private address"),
        ] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(policy.check(ip), Err(Refusal(phrase)), "{text}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        let policy = AddressPolicy::default();
        for text in [
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "169.253.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert_eq!(policy.check(text.parse().unwrap()), Ok(()), "{text}");
        }
    }

    #[test]
    fn an_allowed_network_opens_itself_and_nothing_else() {
        let policy = AddressPolicy::new(vec!["127.66.0.0/16".parse().unwrap()]);
        for text in ["127.66.0.1", "::ffff:127.66.3.4"] {
            assert_eq!(policy.check(text.parse().unwrap()), Ok(()), "{text}");
        }
        for text in [
            "127.0.0.1",
            "127.67.0.1",
            "::ffff:127.250.0.6",
            "::127.66.0.1",
        ] {
            assert!(policy.check(text.parse().unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn ports_of_other_protocols_are_refused() {
        let policy = AddressPolicy::new(vec!["0.0.0.0/0".parse().unwrap()]);
        assert!(BAD_PORTS.is_sorted());
        for port in [0, 22, 25, 6000, 6667, 10080] {
            assert!(policy.check_port(port).is_err(), "{port}");
        }
        for port in [80, 443, 8080, 18080, 65535] {
            assert_eq!(policy.check_port(port), Ok(()), "{port}");
        }
    }
}
