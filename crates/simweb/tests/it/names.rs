//! The DNS server.

use std::net::{Ipv4Addr, UdpSocket};

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use orbweaver_simweb::{SimConfig, SimWeb};
use url::Url;

/// The address of a host, asked of the web's own DNS server when it is a name.
pub(crate) fn address(web: &SimWeb, host: &str) -> Ipv4Addr {
    if let Ok(address) = host.parse() {
        return address;
    }
    match &ask(web, host, RecordType::A).answers.as_slice() {
        [answer] => match answer.data {
            RData::A(address) => address.0,
            ref other => panic!("{host} is {other}"),
        },
        other => panic!("{host} has {other:?}"),
    }
}

fn ask(web: &SimWeb, name: &str, kind: RecordType) -> Message {
    let mut question = Message::query();
    question.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = web.dns_addr().unwrap();
    socket.send_to(&question.to_vec().unwrap(), server).unwrap();
    let mut buffer = [0; 512];
    let (len, _) = socket.recv_from(&mut buffer).unwrap();
    let answer = Message::from_vec(&buffer[..len]).unwrap();
    assert_eq!(answer.metadata.id, question.metadata.id);
    answer
}

fn named() -> SimWeb {
    SimWeb::start(SimConfig {
        hosts: 8,
        pages: 1,
        ips: 3,
        dns_ttl: 17,
        ..SimConfig::default()
    })
    .unwrap()
}

#[test]
fn every_host_has_an_address_and_some_share_one() {
    let web = named();
    let mut addresses: Vec<Ipv4Addr> = web
        .all_roots()
        .iter()
        .map(|root| address(&web, Url::parse(root).unwrap().host_str().unwrap()))
        .collect();
    assert_eq!(addresses.len(), 8);
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 3);
    assert_eq!(web.stats().dns_queries, 8);
}

#[test]
fn other_types_and_other_names_are_answered_as_they_should_be() {
    let web = named();
    let record = ask(&web, "H0.sim.test.", RecordType::A);
    assert_eq!(record.answers[0].ttl, 17);
    let other_type = ask(&web, "h0.sim.test.", RecordType::AAAA);
    assert_eq!(other_type.metadata.response_code, ResponseCode::NoError);
    assert!(other_type.answers.is_empty());
    let unknown = ask(&web, "h99.sim.test.", RecordType::A);
    assert_eq!(unknown.metadata.response_code, ResponseCode::NXDomain);
}

#[test]
fn rubbish_does_not_stop_the_server() {
    let web = named();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for rubbish in [&b""[..], b"x", &[0xff; 600]] {
        socket.send_to(rubbish, web.dns_addr().unwrap()).unwrap();
    }
    address(&web, "h1.sim.test");
}
