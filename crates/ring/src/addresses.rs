//! From hosts to addresses, as the URL server asks for them: names through the resolver, addresses through
//! the address policy.

use std::net::IpAddr;
use std::time::Duration;

use orbweaver_model::{Outcome, OutcomeClass};
use orbweaver_spider::{AddressPolicy, Resolver};
use orbweaver_urlserver::server::Resolving;
use orbweaver_urlserver::{Resolve, Resolved};

/// The resolver, as the URL server wants it: an address as a host resolves to itself, if it may.
pub(crate) struct Addresses {
    pub(crate) resolver: Resolver,
    pub(crate) policy: AddressPolicy,
}

impl Resolve for Addresses {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            if let Some(ip) = literal(host) {
                self.policy.check(ip).map_err(|why| {
                    Outcome::because(OutcomeClass::DeniedPolicy, format!("{ip}: {}", why.0))
                })?;
                return Ok(Resolved {
                    addresses: vec![ip],
                    ttl: Duration::MAX,
                });
            }
            let found = self.resolver.resolve(host).await;
            found
                .map(|found| Resolved {
                    addresses: found.addresses,
                    ttl: found.ttl,
                })
                .map_err(|error| error.outcome())
        })
    }
}

fn literal(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let ip: IpAddr = bare.unwrap_or(host).parse().ok()?;
    Some(ip.to_canonical())
}
