//! From a host name to the addresses that may be connected to.
//!
//! One lookup per name at a time, its answer kept for as long as the answer says, and no lookup takes
//! longer than its limit: a server that never answers stops nobody but those who ask for that name.
//! The wire format is hickory's. URLs whose host is an address never come here, and nothing here
//! connects to what was found: who connects must connect to an address handed out here, not ask again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use orbweaver_model::{Outcome, OutcomeClass};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::address_policy::{AddressPolicy, Refusal};
use crate::shortage;

/// How names are looked up.
#[derive(Clone, Debug)]
pub struct ResolverOptions {
    /// The server to ask, over UDP and, for long answers, TCP; none for the system's own settings
    /// (resolv.conf and the hosts file).
    pub server: Option<SocketAddr>,
    /// Hard end of one lookup, repetitions included.
    pub timeout: Duration,
    /// Names whose answers are kept; 0 keeps none.
    pub max_names: usize,
    /// Lookups at once; each holds a UDP socket.
    pub max_lookups: usize,
}

impl Default for ResolverOptions {
    fn default() -> Self {
        Self {
            server: None,
            timeout: Duration::from_secs(5),
            // About 150 bytes each.
            max_names: 65_536,
            max_lookups: MAX_LOOKUPS,
        }
    }
}

/// Where a name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Allowed addresses, at most sixteen, never empty; IPv6 only when there is no IPv4.
    pub addresses: Vec<IpAddr>,
    /// How long they may be used; zero means for this use only.
    pub ttl: Duration,
}

/// Why a name leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name does not exist or has no address. Nothing to do but to drop the host.
    #[error("no such name")]
    Nx,
    /// The name servers failed to answer. Try again later; if every name fails, check the resolver.
    #[error("{0}")]
    Broken(Arc<str>),
    /// The name has only addresses that the policy refuses. Allow their network if that is wanted.
    #[error("resolves to a {0}")]
    Denied(Refusal),
}

impl ResolveError {
    /// The outcome of a URL whose host cannot be resolved.
    pub fn outcome(&self) -> Outcome {
        let class = match self {
            Self::Nx | Self::Broken(_) => OutcomeClass::FailedDns,
            Self::Denied(_) => OutcomeClass::DeniedPolicy,
        };
        Outcome::because(class, self.to_string())
    }
}

/// Addresses kept of one answer. A host that needs more than a handful is balancing load, not failing over.
const MAX_ADDRESSES: usize = 16;

/// Answers are requested again at least once a day, however long they say they hold.
const MAX_TTL: Duration = Duration::from_secs(86_400);

/// How long "no such name" is believed when the answer does not say, and at most (RFC 2308, 5).
const NX_TTL: Duration = Duration::from_secs(60);
const MAX_NX_TTL: Duration = Duration::from_secs(3_600);

/// A failure is remembered, so that a host with many URLs does not ask for each (RFC 9520, 3.2: one
/// second at least, five minutes at most).
const FAILURE_TTL: Duration = Duration::from_secs(10);

/// Lookups under way at once: each holds a UDP socket, and descriptors are few. At one second for an
/// unanswered try this still lets hundreds of dead names pass per second.
pub const MAX_LOOKUPS: usize = 512;

/// How late a lookup must be over for the process to have been stopped, and how often that is believed.
const STALLED: Duration = Duration::from_secs(1);
const MAX_STALLS: usize = 3;

/// Tries at a lookup while this machine has no socket for it, within the time of the lookup.
const SOCKET_PAUSE: Duration = Duration::from_millis(100);

type Addresses = Result<Vec<IpAddr>, ResolveError>;

/// Looks names up. Clones share everything.
#[derive(Clone)]
pub struct Resolver {
    shared: Arc<SharedResolver>,
}

struct SharedResolver {
    /// None when the system has no usable settings and no server was given: the reason is the error's.
    hickory: Result<TokioResolver, Arc<str>>,
    policy: AddressPolicy,
    options: ResolverOptions,
    /// Filled and emptied by `resolve` and the lookup tasks; bounded by `max_names`.
    names: Mutex<HashMap<Box<str>, Slot>>,
    lookups: Semaphore,
}

/// What is known about a name.
enum Slot {
    /// A lookup is under way; the channel gets its answer and how long it holds.
    Flying(watch::Receiver<Option<(Addresses, Instant)>>),
    /// The answer, good until then.
    Known(Addresses, Instant),
}

impl Resolver {
    /// A resolver. It asks nobody yet; a system without usable settings is reported by the first lookup.
    pub fn new(options: ResolverOptions, policy: AddressPolicy) -> Self {
        Self {
            shared: Arc::new(SharedResolver {
                hickory: build(&options),
                policy,
                lookups: Semaphore::new(options.max_lookups.max(1)),
                options,
                names: Mutex::default(),
            }),
        }
    }

    /// The addresses of `host`, a name in its ASCII form. Must be called inside a tokio runtime.
    pub async fn resolve(&self, host: &str) -> Result<Resolved, ResolveError> {
        let mut flight = match self.shared.lookup_or_join(host) {
            Slot::Known(answer, until) => return finish(answer, until),
            Slot::Flying(flight) => flight,
        };
        let landed = match flight.wait_for(Option::is_some).await {
            Ok(value) => value.clone(),
            Err(_) => None,
        };
        match landed {
            Some((answer, until)) => finish(answer, until),
            None => Err(ResolveError::Broken("the lookup was cancelled".into())),
        }
    }
}

fn finish(answer: Addresses, until: Instant) -> Result<Resolved, ResolveError> {
    answer.map(|addresses| Resolved {
        addresses,
        ttl: until.saturating_duration_since(Instant::now()),
    })
}

impl SharedResolver {
    /// What is known, or the flight that will tell: one already under way, or a new one.
    fn lookup_or_join(self: &Arc<Self>, host: &str) -> Slot {
        let now = Instant::now();
        let mut names = self.lock();
        match names.get(host) {
            Some(Slot::Known(answer, until)) if *until > now => {
                return Slot::Known(answer.clone(), *until);
            }
            // A closed channel is a lookup whose runtime went away.
            Some(Slot::Flying(flight)) if flight.has_changed().is_ok() => {
                return Slot::Flying(flight.clone());
            }
            _ => {}
        }
        self.make_room(&mut names, now);
        let (landing, flight) = watch::channel(None);
        names.insert(host.into(), Slot::Flying(flight.clone()));
        drop(names);
        let shared = Arc::clone(self);
        let host: Box<str> = host.into();
        // A task of its own, so that the lookup outlives the one who asked first.
        tokio::spawn(async move {
            let (answer, ttl) = shared.lookup(&host).await;
            let until = Instant::now() + ttl;
            shared.settle(&host, &answer, ttl, until);
            landing.send_replace(Some((answer, until)));
        });
        Slot::Flying(flight)
    }

    /// Remembers an answer, or forgets the name when the answer is for one use only.
    fn settle(&self, host: &str, answer: &Addresses, ttl: Duration, until: Instant) {
        let mut names = self.lock();
        if ttl.is_zero() || self.options.max_names == 0 {
            names.remove(host);
        } else if let Entry::Occupied(mut slot) = names.entry(host.into()) {
            slot.insert(Slot::Known(answer.clone(), until));
        }
    }

    /// Drops what has expired and, when that is not enough, a quarter of what has not: which quarter is
    /// the hash map's accident, for keeping the order of use would cost more than asking again.
    fn make_room(&self, names: &mut HashMap<Box<str>, Slot>, now: Instant) {
        if names.len() < self.options.max_names.max(1) {
            return;
        }
        names.retain(|_, slot| match slot {
            Slot::Known(_, until) => *until > now,
            Slot::Flying(_) => true,
        });
        let mut excess =
            (names.len() + self.options.max_names / 4).saturating_sub(self.options.max_names);
        names.retain(|_, slot| {
            let drop = excess > 0 && matches!(slot, Slot::Known(..));
            excess -= usize::from(drop);
            !drop
        });
    }

    /// Asks when its turn comes. The limit counts from then: names whose servers are silent make others wait
    /// for a place, but must not make them fail.
    async fn lookup(&self, host: &str) -> (Addresses, Duration) {
        let Ok(_place) = self.lookups.acquire().await else {
            return broken("the resolver is shut down");
        };
        let limit = self.options.timeout;
        for _ in 0..MAX_STALLS {
            let began = Instant::now();
            let answer = match tokio::time::timeout(limit, self.ask(host)).await {
                Ok(answer) => answer,
                Err(_) => broken("the name servers did not answer in time"),
            };
            // Over later than it can be: the process was stopped meanwhile, and the servers had no chance.
            let stopped = began.elapsed() > limit + STALLED;
            if !stopped || !matches!(answer.0, Err(ResolveError::Broken(_))) {
                return answer;
            }
        }
        broken("the name servers did not answer in time")
    }

    async fn ask(&self, host: &str) -> (Addresses, Duration) {
        let hickory = match &self.hickory {
            Ok(hickory) => hickory,
            Err(reason) => return (Err(ResolveError::Broken(Arc::clone(reason))), FAILURE_TTL),
        };
        let Ok(mut name) = Name::from_ascii(host) else {
            return (Err(ResolveError::Nx), MAX_NX_TTL);
        };
        // URLs hold whole names: no search list of this machine applies to them.
        name.set_fqdn(true);
        // The crawler connects to the first address, and IPv4 comes first: IPv6 is asked for only when
        // the name exists without IPv4, for both would double the queries.
        let mut found = loop {
            let found = hickory.lookup(name.clone(), RecordType::A).await;
            match &found {
                Err(NetError::Io(error)) if shortage::lack(error).is_some() => {
                    tokio::time::sleep(SOCKET_PAUSE).await;
                }
                _ => break found,
            }
        };
        if matches!(&found, Err(error) if is_without_records(error)) {
            found = hickory.lookup(name, RecordType::AAAA).await;
        }
        match found {
            Ok(found) => {
                let records = found.answers();
                let ttl = records.iter().map(|record| record.ttl).min();
                let ttl = Duration::from_secs(ttl.unwrap_or(0).into()).min(MAX_TTL);
                let addresses = records.iter().filter_map(|record| record.data.ip_addr());
                (self.allowed(addresses), ttl)
            }
            Err(error) => failure(&error),
        }
    }

    /// The addresses the policy allows.
    fn allowed(&self, found: impl Iterator<Item = IpAddr>) -> Addresses {
        let mut refusal = None;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for ip in found.take(MAX_ADDRESSES * 16).map(|ip| ip.to_canonical()) {
            match self.policy.check(ip) {
                Ok(()) if addresses.len() < MAX_ADDRESSES => addresses.push(ip),
                Ok(()) => {}
                Err(why) => refusal = Some(why),
            }
        }
        match (addresses.is_empty(), refusal) {
            (false, _) => Ok(addresses),
            (true, Some(refusal)) => Err(ResolveError::Denied(refusal)),
            (true, None) => Err(ResolveError::Nx),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Slot>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True when the name exists, but not with the kind of record that was asked for.
fn is_without_records(error: &NetError) -> bool {
    matches!(
        error,
        NetError::Dns(DnsError::NoRecordsFound(none)) if none.response_code == ResponseCode::NoError
    )
}

fn broken(reason: &'static str) -> (Addresses, Duration) {
    (Err(ResolveError::Broken(reason.into())), FAILURE_TTL)
}

fn failure(error: &NetError) -> (Addresses, Duration) {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => {
            let ttl = none
                .negative_ttl
                .map_or(NX_TTL, |secs| Duration::from_secs(secs.into()))
                .min(MAX_NX_TTL);
            (Err(ResolveError::Nx), ttl)
        }
        NetError::Dns(DnsError::ResponseCode(code)) => {
            let reason = format!("the name servers failed: {code}");
            (Err(ResolveError::Broken(reason.into())), FAILURE_TTL)
        }
        NetError::Timeout => broken("the name servers did not answer in time"),
        NetError::NoConnections => broken("no name server is reachable"),
        // Other messages can quote bytes of the answer, which have no place in a log.
        _ => broken("the name servers gave no usable answer"),
    }
}

/// Sets hickory up. Its own cache stays empty: ours also merges lookups and remembers failures.
fn build(options: &ResolverOptions) -> Result<TokioResolver, Arc<str>> {
    let (config, mut opts) = match options.server {
        Some(server) => (one_server(server), ResolverOpts::default()),
        None => match hickory_resolver::system_conf::read_system_conf() {
            Ok(system) => system,
            // Without servers the hosts file and `localhost` still work; other names fail by
            // themselves, with the reason that no server can be reached.
            Err(_) => (
                ResolverConfig::from_name_servers(Vec::new()),
                ResolverOpts::default(),
            ),
        },
    };
    opts.use_hosts_file = match options.server {
        Some(_) => ResolveHosts::Never,
        None => ResolveHosts::Always,
    };
    // Three tries fit into the limit, so that one lost packet does not lose a host.
    opts.timeout = options.timeout.mul_f32(0.3);
    opts.attempts = 2;
    opts.cache_size = 0;
    // The default of 32 answers "busy" beyond it; `MAX_LOOKUPS` bounds us instead.
    opts.max_active_requests = MAX_LOOKUPS;
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = opts;
    builder
        .build()
        .map_err(|error| format!("the resolver could not be set up: {error}").into())
}

fn one_server(server: SocketAddr) -> ResolverConfig {
    let on_port = |mut connection: ConnectionConfig| {
        connection.port = server.port();
        connection
    };
    let connections = vec![
        on_port(ConnectionConfig::udp()),
        on_port(ConnectionConfig::tcp()),
    ];
    ResolverConfig::from_name_servers(vec![NameServerConfig::new(server.ip(), true, connections)])
}
