//! Addresses that are written in several ways and mean one machine.

use std::net::{IpAddr, Ipv4Addr};

/// The machine that an address leads to: whoever counts or limits by address counts by this.
///
/// An IPv4-mapped address (`::ffff:192.0.2.1`, RFC 4291 section 2.5.5.2) is the IPv4 address in it. One of the
/// well-known prefix of NAT64 (`64:ff9b::192.0.2.1`, RFC 6052 section 2.1) is another one to connect to, but a
/// translator forwards to the IPv4 address in it all the same.
pub fn machine(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
            }
            _ => IpAddr::V6(v6),
        },
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_however_it_is_written() {
        for (written, is) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::ffff:c000:201", "192.0.2.1"),
            ("64:ff9b::192.0.2.1", "192.0.2.1"),
            ("64:ff9b:1::192.0.2.1", "64:ff9b:1::192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::1", "::1"),
        ] {
            let ip: IpAddr = written.parse().unwrap();
            assert_eq!(machine(ip), is.parse::<IpAddr>().unwrap(), "{written}");
        }
    }
}
