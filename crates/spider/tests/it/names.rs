//! Names: a small name server of our own, honest and otherwise.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use orbweaver_model::OutcomeClass;
use orbweaver_spider::{AddressPolicy, ResolveError, Resolver, ResolverOptions};
use tokio::net::UdpSocket;

use crate::server::LOCAL;

/// A name server: `*.test` by the first label, and how often each was asked for.
struct Names {
    address: SocketAddr,
    asked: Arc<Mutex<HashMap<String, usize>>>,
}

impl Names {
    async fn start() -> Self {
        let socket = UdpSocket::bind((LOCAL, 0)).await.unwrap();
        let names = Self {
            address: socket.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&names.asked);
        tokio::spawn(async move {
            let turn = AtomicUsize::new(0);
            let mut packet = [0; 1500];
            while let Ok((length, peer)) = socket.recv_from(&mut packet).await {
                let query = Message::from_vec(&packet[..length]).unwrap();
                let name = query.queries[0].name().to_ascii();
                let label = name.split('.').next().unwrap().to_owned();
                if query.queries[0].query_type() == RecordType::A {
                    *asked.lock().unwrap().entry(label.clone()).or_default() += 1;
                }
                if let Some(answer) = reply(&query, &label, turn.fetch_add(1, Ordering::SeqCst)) {
                    socket.send_to(&answer, peer).await.unwrap();
                }
            }
        });
        names
    }

    fn asked(&self, label: &str) -> usize {
        self.asked.lock().unwrap().get(label).copied().unwrap_or(0)
    }

    fn resolver(&self) -> Resolver {
        let options = ResolverOptions {
            server: Some(self.address),
            ..ResolverOptions::default()
        };
        Resolver::new(options, policy())
    }
}

fn policy() -> AddressPolicy {
    AddressPolicy::new(vec!["127.66.0.0/16".parse().unwrap()])
}

fn reply(query: &Message, label: &str, turn: usize) -> Option<Vec<u8>> {
    let mut message = Message::response(query.metadata.id, OpCode::Query);
    message.metadata.recursion_available = true;
    message.metadata.recursion_desired = true;
    message.add_query(query.queries[0].clone());
    let host = |last: u8| Ipv4Addr::new(127, 66, 0, last);
    let (ttl, addresses) = match label {
        "good" => (300, vec![host(1)]),
        "rebind" if turn.is_multiple_of(2) => (0, vec![host(2)]),
        "rebind" => (0, vec![Ipv4Addr::new(127, 250, 0, 1)]),
        "private" => (
            300,
            vec![Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(127, 250, 0, 1)],
        ),
        "mixed" => (300, vec![Ipv4Addr::new(10, 0, 0, 1), host(3)]),
        "many" => (300, (0..60).map(host).collect()),
        "six" if query.queries[0].query_type() == RecordType::AAAA => {
            let name = query.queries[0].name().clone();
            let ip = Ipv4Addr::new(127, 66, 0, 6).to_ipv6_mapped();
            message.add_answer(Record::from_rdata(name, 300, RData::AAAA(ip.into())));
            return Some(message.to_vec().unwrap());
        }
        "six" | "bare" => (300, vec![]),
        "stall" => return None,
        "garbage" => return Some(b"garbage".to_vec()),
        "servfail" => {
            message.metadata.response_code = ResponseCode::ServFail;
            return Some(message.to_vec().unwrap());
        }
        _ => {
            message.metadata.response_code = ResponseCode::NXDomain;
            return Some(message.to_vec().unwrap());
        }
    };
    if query.queries[0].query_type() == RecordType::A {
        for ip in addresses {
            let name = query.queries[0].name().clone();
            message.add_answer(Record::from_rdata(name, ttl, RData::A(ip.into())));
        }
    }
    Some(message.to_vec().unwrap())
}

#[tokio::test]
async fn an_answer_is_kept_for_as_long_as_it_says() {
    let names = Names::start().await;
    let resolver = names.resolver();
    for _ in 0..3 {
        let found = resolver.resolve("good.test").await.unwrap();
        assert_eq!(found.addresses, [IpAddr::from([127, 66, 0, 1])]);
        assert!(found.ttl <= Duration::from_secs(300) && found.ttl > Duration::from_secs(200));
    }
    assert_eq!(names.asked("good"), 1);
}

/// Time passes at once, so that nobody waits for it.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_answer_is_asked_for_again_when_it_has_expired() {
    let names = Names::start().await;
    let resolver = names.resolver();
    resolver.resolve("good.test").await.unwrap();
    resolver.resolve("nothere.test").await.unwrap_err();
    pass(55).await;
    resolver.resolve("good.test").await.unwrap();
    resolver.resolve("nothere.test").await.unwrap_err();
    assert_eq!((names.asked("good"), names.asked("nothere")), (1, 1));
    // That a name does not exist is believed for a minute, where it was found for five.
    pass(10).await;
    resolver.resolve("good.test").await.unwrap();
    resolver.resolve("nothere.test").await.unwrap_err();
    assert_eq!((names.asked("good"), names.asked("nothere")), (1, 2));
    pass(240).await;
    let found = resolver.resolve("good.test").await.unwrap();
    assert_eq!(names.asked("good"), 2);
    assert!(found.ttl > Duration::from_secs(200), "{found:?}");
}

#[tokio::test]
async fn lookups_of_one_name_are_one_lookup() {
    let names = Names::start().await;
    let resolver = names.resolver();
    let mut lookups = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let resolver = resolver.clone();
        lookups.spawn(async move { resolver.resolve("good.test").await });
    }
    while let Some(found) = lookups.join_next().await {
        assert!(found.unwrap().is_ok());
    }
    assert_eq!(names.asked("good"), 1);
}

#[tokio::test]
async fn what_may_not_be_connected_to_is_not_handed_out() {
    let names = Names::start().await;
    let resolver = names.resolver();
    let denied = resolver.resolve("private.test").await.unwrap_err();
    assert!(matches!(denied, ResolveError::Denied(_)), "{denied}");
    assert_eq!(denied.outcome().class, OutcomeClass::DeniedPolicy);
    let mixed = resolver.resolve("mixed.test").await.unwrap();
    assert_eq!(mixed.addresses, [IpAddr::from([127, 66, 0, 3])]);
    assert_eq!(
        resolver.resolve("many.test").await.unwrap().addresses.len(),
        16
    );
    // An answer for one use is used once: the next asks again, and its answer is checked again.
    let mut seen = (0, 0);
    for _ in 0..4 {
        match resolver.resolve("rebind.test").await {
            Ok(found) => {
                assert_eq!(found.addresses, [IpAddr::from([127, 66, 0, 2])]);
                assert_eq!(found.ttl, Duration::ZERO);
                seen.0 += 1;
            }
            Err(error) => {
                assert!(matches!(error, ResolveError::Denied(_)));
                seen.1 += 1;
            }
        }
    }
    assert_eq!(seen, (2, 2));
}

#[tokio::test]
async fn ipv6_is_asked_for_when_there_is_no_ipv4() {
    let names = Names::start().await;
    let resolver = names.resolver();
    let found = resolver.resolve("six.test").await.unwrap();
    // An IPv4 address in an AAAA record is the IPv4 machine that it names, for every limit and policy.
    assert_eq!(found.addresses, [IpAddr::from([127, 66, 0, 6])]);
    assert_eq!(resolver.resolve("bare.test").await, Err(ResolveError::Nx));
}

#[tokio::test]
async fn missing_and_broken_names_fail_and_are_remembered() {
    let names = Names::start().await;
    let resolver = names.resolver();
    for _ in 0..2 {
        assert_eq!(
            resolver.resolve("nothere.test").await,
            Err(ResolveError::Nx)
        );
        let broken = resolver.resolve("servfail.test").await.unwrap_err();
        assert!(matches!(broken, ResolveError::Broken(_)), "{broken}");
        assert_eq!(broken.outcome().class, OutcomeClass::FailedDns);
    }
    assert_eq!(names.asked("nothere"), 1);
    let tries = names.asked("servfail");
    resolver.resolve("servfail.test").await.unwrap_err();
    assert_eq!(names.asked("servfail"), tries);
    for nonsense in ["", ".", "a..b", &"h".repeat(300)] {
        assert!(resolver.resolve(nonsense).await.is_err(), "{nonsense}");
    }
}

#[tokio::test]
async fn a_stalled_lookup_ends_and_stops_nobody() {
    let names = Names::start().await;
    let options = ResolverOptions {
        server: Some(names.address),
        timeout: Duration::from_millis(500),
        ..ResolverOptions::default()
    };
    let resolver = Resolver::new(options, policy());
    let mut stalled = Vec::new();
    for name in ["stall.test", "garbage.test"] {
        let resolver = resolver.clone();
        stalled.push(tokio::spawn(async move { resolver.resolve(name).await }));
    }
    assert!(resolver.resolve("good.test").await.is_ok());
    assert!(stalled.iter().all(|lookup| !lookup.is_finished()));
    for lookup in stalled {
        let error = lookup.await.unwrap().unwrap_err();
        assert!(matches!(error, ResolveError::Broken(_)), "{error}");
    }
}

/// More names without an answer than there are places for lookups, and one that is answered behind them: it
/// waits for its turn and does not fail for having waited.
#[tokio::test]
async fn a_thousand_stalled_lookups_fail_nobody_else() {
    let names = Names::start().await;
    let options = ResolverOptions {
        server: Some(names.address),
        // Much longer than a busy machine needs for the name that is answered.
        timeout: Duration::from_secs(3),
        ..ResolverOptions::default()
    };
    let resolver = Resolver::new(options, policy());
    let mut stalled = tokio::task::JoinSet::new();
    for n in 0..1000 {
        let resolver = resolver.clone();
        stalled.spawn(async move { resolver.resolve(&format!("stall.n{n}.test")).await });
    }
    until_asked(&names, "stall").await;
    assert!(resolver.resolve("good.test").await.is_ok());
    while let Some(ended) = stalled.join_next().await {
        assert!(matches!(ended.unwrap(), Err(ResolveError::Broken(_))));
    }
}

async fn until_asked(names: &Names, label: &str) {
    while names.asked(label) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_names_kept_are_bounded() {
    let names = Names::start().await;
    let options = ResolverOptions {
        server: Some(names.address),
        max_names: 4,
        ..ResolverOptions::default()
    };
    let resolver = Resolver::new(options, policy());
    for n in 0..20 {
        // Every name below `test` whose first label is not known here does not exist.
        assert_eq!(
            resolver.resolve(&format!("n{n}.test")).await,
            Err(ResolveError::Nx)
        );
    }
    resolver.resolve("n19.test").await.unwrap_err();
    assert_eq!(names.asked("n19"), 1);
    let mut again = 0;
    for n in 0..20 {
        resolver.resolve(&format!("n{n}.test")).await.unwrap_err();
        again += names.asked(&format!("n{n}")) - 1;
    }
    assert!(again >= 16, "{again}");
}

#[tokio::test]
async fn the_hosts_file_works_without_name_servers() {
    let policy = AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let resolver = Resolver::new(ResolverOptions::default(), policy);
    let found = resolver.resolve("localhost").await.unwrap();
    assert_eq!(found.addresses, [LOCAL]);
}
