//! One spider elsewhere, as far as it is known here.

use orbweaver_model::{Order, Timestamp};
use orbweaver_wire::line::trans_number;
use orbweaver_wire::{Complaints, Terms, ToSpider};
use tokio::sync::mpsc;

use crate::spiders::Outgoing;
use crate::window::Window;

/// The most credit that a spider can have: more than any has sockets.
const MAX_CREDIT: u64 = 1 << 20;

/// Whether a spider knows the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// Its first word will tell; until then the ids of orders offer it.
    Offered,
    /// It does, and has been told that we do.
    Agreed,
    /// It does not, or does not understand the offer.
    Unknown,
}

/// A spider.
pub struct Peer {
    /// Host and port, for the log.
    pub name: String,
    /// The way to it; none while it is not connected.
    way: Option<mpsc::Sender<Outgoing>>,
    extension: Extension,
    /// It was silent after the last offer: perhaps it reads the ids as other numbers. It is not offered again.
    is_plain: bool,
    /// Orders that it has requested and not received.
    credit: u64,
    /// Orders that it gets without asking.
    pub window: Window,
    /// About its silence.
    complaints: Complaints,
}

impl Peer {
    /// One that is not connected; `room` is how many orders there can be.
    pub fn new(name: String, room: usize) -> Self {
        Self {
            name,
            way: None,
            extension: Extension::Offered,
            is_plain: false,
            credit: 0,
            window: Window::new(room),
            complaints: Complaints::default(),
        }
    }

    /// True while it can be given orders.
    pub fn is_connected(&self) -> bool {
        self.way.is_some()
    }

    /// True when it speaks the extension.
    pub fn has_agreed(&self) -> bool {
        self.extension == Extension::Agreed
    }

    /// It takes orders here.
    pub fn connected(&mut self, way: mpsc::Sender<Outgoing>) {
        self.way = Some(way);
        self.credit = 0;
        self.extension = match self.is_plain {
            true => Extension::Unknown,
            false => Extension::Offered,
        };
        self.window.restart();
    }

    /// It is gone.
    pub fn lost(&mut self) {
        self.way = None;
        self.credit = 0;
    }

    /// It has spoken of an order, in the spelling of those who know the extension or not. True when that is how it is
    /// known that it does.
    pub fn learns(&mut self, extended: bool) -> bool {
        if self.extension != Extension::Offered || self.way.is_none() {
            return false;
        }
        self.extension = match extended {
            true => Extension::Agreed,
            false => Extension::Unknown,
        };
        extended
    }

    /// It has said nothing of some orders while it was at work on so many. Says how often that was, when it is time for a
    /// line in the log.
    pub fn fell_silent(&mut self, at_work: usize, now: Timestamp) -> Option<u64> {
        self.window.fell_silent(at_work, now);
        if self.extension == Extension::Offered {
            self.extension = Extension::Unknown;
            self.is_plain = true;
        }
        self.complaints.count(now)
    }

    /// True when it has asked for more orders than it got.
    pub fn has_credit(&self) -> bool {
        self.credit > 0
    }

    /// It has requested this many orders.
    pub fn asked_for(&mut self, count: u32) {
        self.credit = self.credit.saturating_add(count.into()).min(MAX_CREDIT);
    }

    /// Sends an order, with its terms when they can be understood; says whether they can. None when it is gone.
    pub fn send(&mut self, order: Order, terms: Terms) -> Option<bool> {
        let agreed = self.has_agreed();
        let number = trans_number(order.trans)?;
        if agreed && !terms.is_plain() {
            self.say(ToSpider::If(number, terms));
        }
        let offer = self.extension == Extension::Offered;
        let sent = (self.way.as_ref())
            .is_some_and(|way| way.try_send(Outgoing::Order(order, offer)).is_ok());
        // There is room for all that can be out; when it takes none, it is about to be reported gone.
        if !sent {
            self.way = None;
            return None;
        }
        self.credit = self.credit.saturating_sub(1);
        Some(agreed)
    }

    /// Says something of the extension. What finds no room is said to nobody: the connection is about to end.
    pub fn say(&self, said: ToSpider) {
        if let Some(way) = &self.way {
            let _ = way.try_send(Outgoing::Say(said));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_after_an_offer_is_not_offered_again() {
        let mut peer = Peer::new("spider".to_owned(), 8);
        let (way, _queue) = mpsc::channel(8);
        peer.connected(way.clone());
        assert!(peer.learns(true) && peer.has_agreed());
        // It has been learnt once.
        assert!(!peer.learns(true));
        peer.lost();
        // Perhaps it comes back as another program.
        peer.connected(way.clone());
        assert!(!peer.has_agreed() && !peer.learns(false) && !peer.learns(true));
        peer.connected(way.clone());
        let _ = peer.fell_silent(0, Timestamp::from_millis(1));
        assert!(!peer.learns(true));
        peer.connected(way);
        assert!(!peer.learns(true) && !peer.has_agreed());
    }
}
