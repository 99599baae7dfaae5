//! A DNS server for the names of the simulated web.
//!
//! It has A records and nothing else, which it says as a server should: no error and no answer for
//! other types, NXDOMAIN for other names.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::time::sleep;

use crate::Served;
use crate::address;
use crate::count::bump;
use crate::layout::Layout;

pub(crate) async fn listen(port: u16) -> std::io::Result<UdpSocket> {
    UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

/// Answers questions forever.
pub(crate) async fn serve(socket: UdpSocket, shared: Arc<Served>) {
    let mut buffer = vec![0; 4096];
    loop {
        let Ok((len, peer)) = socket.recv_from(&mut buffer).await else {
            // An error of an earlier send may be reported here; it must not turn into a busy loop.
            sleep(Duration::from_millis(1)).await;
            continue;
        };
        bump(&shared.counters.tally().dns_queries);
        let answer = buffer
            .get(..len)
            .and_then(|bytes| answer(&shared.web.layout, bytes));
        if let Some(answer) = answer {
            let _ = socket.send_to(&answer, peer).await;
        }
    }
}

fn answer(layout: &Layout, question: &[u8]) -> Option<Vec<u8>> {
    let question = Message::from_vec(question).ok()?;
    if question.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut message = Message::response(question.metadata.id, question.metadata.op_code);
    message.metadata = Metadata::response_from_request(&question.metadata);
    message.metadata.authoritative = true;
    message.metadata.recursion_available = true;
    message.metadata.response_code = ResponseCode::NotImp;
    if let (OpCode::Query, [query]) = (question.metadata.op_code, question.queries.as_slice()) {
        message.add_query(query.clone());
        let name = query.name().to_ascii().to_ascii_lowercase();
        let host = layout.host(name.trim_end_matches('.'));
        message.metadata.response_code = match host {
            Some(_) => ResponseCode::NoError,
            None => ResponseCode::NXDomain,
        };
        if let (Some(host), RecordType::A) = (host, query.query_type()) {
            let address = RData::A(A(address::ip(layout.ip_of(host))));
            let name = query.name().clone();
            message.add_answer(Record::from_rdata(name, layout.config.dns_ttl, address));
        }
    }
    if question.edns.is_some() {
        message.edns = question.edns;
    }
    message.to_vec().ok()
}
