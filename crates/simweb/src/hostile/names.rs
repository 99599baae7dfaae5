//! The name server of the hostile web: what it answers follows from the first label of the name.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hickory_proto::op::{Message, Metadata, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::time::sleep;

use super::case::{Case, Kind, ZONE};

/// Answers questions forever.
pub(crate) async fn serve(socket: UdpSocket, cases: Arc<[Case]>) {
    let turn = AtomicU64::new(0);
    let mut buffer = vec![0; 4096];
    loop {
        let Ok((len, peer)) = socket.recv_from(&mut buffer).await else {
            // An error of an earlier send may be reported here; it must not turn into a busy loop.
            sleep(Duration::from_millis(1)).await;
            continue;
        };
        let question = buffer
            .get(..len)
            .and_then(|bytes| Message::from_vec(bytes).ok());
        if let Some(answer) = question.and_then(|question| answer(&question, &cases, &turn)) {
            let _ = socket.send_to(&answer, peer).await;
        }
    }
}

fn answer(question: &Message, cases: &[Case], turn: &AtomicU64) -> Option<Vec<u8>> {
    let [query] = question.queries.as_slice() else {
        return None;
    };
    let name = query.name().to_ascii().to_ascii_lowercase();
    let label = name
        .trim_end_matches('.')
        .strip_suffix(ZONE)?
        .trim_end_matches('.')
        .to_owned();
    let host = cases
        .iter()
        .find(|case| case.kind == Kind::Dns && case.name == label)
        .map(Case::ip);
    let mut message = Message::response(question.metadata.id, question.metadata.op_code);
    message.metadata = Metadata::response_from_request(&question.metadata);
    message.metadata.recursion_available = true;
    message.add_query(query.clone());
    let outcome = respond(&label, host, query.query_type(), turn);
    match outcome {
        Respond::Silence => return None,
        Respond::Noise => return Some(b"noise".to_vec()),
        Respond::Code(code) => message.metadata.response_code = code,
        Respond::OtherId(ip) => {
            message.metadata.id = question.metadata.id.wrapping_add(1);
            add(&mut message, query.name(), 300, ip.into());
        }
        Respond::Cut => message.metadata.truncation = true,
        Respond::Alias(to) => {
            let to = Name::from_ascii(format!("{to}.{ZONE}.")).ok()?;
            let alias = RData::CNAME(CNAME(to));
            message.add_answer(Record::from_rdata(query.name().clone(), 300, alias));
        }
        Respond::AliasOf(to, ip) => {
            let to = Name::from_ascii(format!("{to}.{ZONE}.")).ok()?;
            let alias = RData::CNAME(CNAME(to.clone()));
            message.add_answer(Record::from_rdata(query.name().clone(), 300, alias));
            add(&mut message, &to, 300, ip.into());
        }
        Respond::Addresses(ttl, addresses) => {
            for ip in addresses {
                add(&mut message, query.name(), ttl, ip);
            }
        }
    }
    message.to_vec().ok()
}

/// What the name server does.
enum Respond {
    Silence,
    Noise,
    Code(ResponseCode),
    OtherId(Ipv4Addr),
    Cut,
    Alias(&'static str),
    AliasOf(&'static str, Ipv4Addr),
    Addresses(u32, Vec<IpAddr>),
}

fn add(message: &mut Message, name: &Name, ttl: u32, ip: IpAddr) {
    let data = match ip {
        IpAddr::V4(ip) => RData::A(A(ip)),
        IpAddr::V6(ip) => RData::AAAA(AAAA(ip)),
    };
    message.add_answer(Record::from_rdata(name.clone(), ttl, data));
}

fn respond(label: &str, host: Option<Ipv4Addr>, kind: RecordType, turn: &AtomicU64) -> Respond {
    let Some(host) = host else {
        return Respond::Code(ResponseCode::NXDomain);
    };
    let inside = IpAddr::from(Ipv4Addr::LOCALHOST);
    let private = IpAddr::from([10, 0, 0, 1]);
    match (label, kind) {
        ("silence", _) => Respond::Silence,
        ("noise", _) => Respond::Noise,
        ("nxdomain", _) => Respond::Code(ResponseCode::NXDomain),
        ("servfail", _) => Respond::Code(ResponseCode::ServFail),
        ("refused", _) => Respond::Code(ResponseCode::Refused),
        ("other-id", _) => Respond::OtherId(host),
        ("cut", _) => Respond::Cut,
        ("alias-loop", _) => Respond::Alias("alias-loop"),
        ("mapped", RecordType::AAAA) => {
            let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
            Respond::Addresses(300, vec![mapped.into()])
        }
        (_, kind) if kind != RecordType::A => Respond::Addresses(300, vec![]),
        ("mapped" | "empty", _) => Respond::Addresses(300, vec![]),
        ("alias", _) => Respond::AliasOf("plain", host),
        ("ttl-zero", _) => Respond::Addresses(0, vec![host.into()]),
        ("many", _) => Respond::Addresses(300, vec![host.into(); 60]),
        ("mixed", _) => Respond::Addresses(300, vec![private, inside, host.into()]),
        ("private", _) => Respond::Addresses(300, vec![private, IpAddr::from([192, 168, 0, 1])]),
        ("loopback", _) => Respond::Addresses(300, vec![inside]),
        ("rebinding", _) if turn.fetch_add(1, Ordering::Relaxed) > 0 => {
            Respond::Addresses(0, vec![inside])
        }
        ("rebinding", _) => Respond::Addresses(0, vec![host.into()]),
        _ => Respond::Addresses(300, vec![host.into()]),
    }
}
