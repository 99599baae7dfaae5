//! What is heard on a port without a key is kept back here until it is recognised as the protocol of the port.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;
use tokio::sync::OwnedSemaphorePermit;

use super::waiting::WaitingPlace;
use super::{DaemonPlaces, Stream};
use crate::error::WireError;
use crate::service::Service;
use crate::stranger::{FirstWords, judge};

/// Bytes that are read at once while nothing is recognised.
const PIECE: usize = 512;

/// The first bytes of a connection.
#[derive(Debug)]
pub(super) struct Gate {
    service: Service,
    peer: SocketAddr,
    /// Bounded by the longest line and a piece: then the verdict is there.
    heard: Vec<u8>,
    given: usize,
    /// The place while nothing is recognised.
    held: Option<WaitingPlace>,
    places: DaemonPlaces,
}

impl Gate {
    pub(super) fn new(
        service: Service,
        peer: SocketAddr,
        held: WaitingPlace,
        places: DaemonPlaces,
    ) -> Self {
        Self {
            service,
            peer,
            heard: Vec::new(),
            given: 0,
            held: Some(held),
            places,
        }
    }

    /// Ready when the first words are recognised, or the connection has ended before them; an error when they are
    /// foreign, or when there is no place.
    pub(super) fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        place: &mut Option<OwnedSemaphorePermit>,
    ) -> Poll<io::Result<()>> {
        let address = self.peer;
        while let Some(held) = &mut self.held {
            match judge(self.service, &self.heard) {
                FirstWords::Ours => {
                    *place = Some(self.places.take(address).map_err(io::Error::other)?);
                    self.held = None;
                    break;
                }
                FirstWords::Foreign(why) => {
                    let error = WireError::Stranger { address, why };
                    return Poll::Ready(Err(io::Error::other(error)));
                }
                FirstWords::Unfinished => {}
            }
            if let Poll::Ready(count) = Pin::new(&mut held.go).poll(cx) {
                let count = count.unwrap_or_default();
                let error = WireError::Crowded { address, count };
                return Poll::Ready(Err(io::Error::other(error)));
            }
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(stream.poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                // It ends before it has said anything: what there is of it is nothing.
                self.heard.clear();
                self.held = None;
                break;
            }
            held.has_spoken();
            self.heard.extend_from_slice(piece.filled());
        }
        Poll::Ready(Ok(()))
    }

    /// Hands on what was kept back; true when that was all.
    pub(super) fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let rest = self.heard.get(self.given..).unwrap_or_default();
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..count).unwrap_or_default());
        self.given += count;
        self.given >= self.heard.len()
    }
}
