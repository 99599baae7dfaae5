//! The names and addresses of hosts.

use std::net::Ipv4Addr;

use crate::config::SimConfig;

/// Every fifth named host has a name that is not ASCII.
const IDN_EVERY: u32 = 5;

/// Hosts of one domain. A domain with thousands of them is the mark of a trap, which honest hosts must not
/// bear.
const DOMAIN_HOSTS: u32 = 500;

/// A host's name in its spellings.
#[derive(Debug)]
pub(crate) struct HostName {
    /// Host and, unless it is 80, port: as in a canonical URL.
    pub(crate) authority: String,
    /// Canonical host without port.
    pub(crate) host: String,
    /// The name before punycode, when it has one.
    pub(crate) unicode: Option<String>,
}

impl HostName {
    /// The name of a host; `given` is one that it has for a reason.
    pub(crate) fn new(config: &SimConfig, port: u16, host: u32, given: Option<String>) -> Self {
        let given = given.filter(|_| config.ips > 0);
        let is_idn = config.ips > 0 && host % IDN_EVERY == 2 && given.is_none();
        let unicode = is_idn.then(|| {
            let word = ["bücher", "straße-süd", "façade", "čeština", "пример"];
            let word = word
                .get((host / IDN_EVERY % 5) as usize)
                .unwrap_or(&"bücher");
            format!("{word}-{host}.{}", domain(host))
        });
        let host = match (&unicode, given) {
            (_, Some(name)) => name,
            // The parser of the URL standard decides what the canonical form of a name is.
            (Some(name), None) => {
                url::Host::parse(name).map_or_else(|_| name.clone(), |host| host.to_string())
            }
            (None, None) if config.ips > 0 => format!("h{host}.{}", domain(host)),
            (None, None) => ip(host).to_string(),
        };
        Self {
            authority: match port {
                80 => host.clone(),
                port => format!("{host}:{port}"),
            },
            host,
            unicode,
        }
    }
}

/// The registered domain of a named host.
fn domain(host: u32) -> String {
    match host / DOMAIN_HOSTS {
        0 => "sim.test".to_owned(),
        nth => format!("sim{nth}.test"),
    }
}

/// The address with a number.
pub(crate) fn ip(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(
        127,
        (10 + number / 62_500) as u8,
        (number / 250 % 250) as u8,
        (1 + number % 250) as u8,
    )
}

/// The number of an address, if it has one.
pub(crate) fn number(ip: Ipv4Addr) -> Option<u32> {
    let [net, high, middle, low] = ip.octets().map(u32::from);
    let (high, low) = (high.checked_sub(10)?, low.checked_sub(1)?);
    (net == 127 && middle < 250 && low < 250).then_some(high * 62_500 + middle * 250 + low)
}
