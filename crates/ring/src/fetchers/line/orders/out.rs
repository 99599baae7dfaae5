//! One order that is out with spiders, and how it ends.

use std::time::Duration;

use orbweaver_model::{Order, Timestamp, TransId};
use orbweaver_urlserver::Done;

use crate::fetchers::line::window::Turn;

/// An order that is over, and what the URL server is to hear of it.
#[derive(Debug)]
pub(in crate::fetchers::line) struct Over {
    pub(in crate::fetchers::line) trans: TransId,
    pub(in crate::fetchers::line) done: Done,
    /// Which spider has said DONE, and when.
    pub(in crate::fetchers::line) turn: Option<(usize, Turn)>,
}

/// Where an order is that is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fetchers::line) enum Wish {
    /// It waits here.
    Here,
    /// This spider has it, under this number.
    With(usize, u64),
}

/// An order that is not over.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) order: Order,
    /// Who has it; none while it waits for one who can take it.
    pub(super) spider: Option<usize>,
    /// When it was written to a spider last.
    pub(super) sent: Option<Timestamp>,
    /// When anything was heard of it last.
    pub(super) heard: Timestamp,
    /// How often it was lost.
    pub(super) losses: u32,
    /// Who had it when it was lost last.
    pub(super) had: Option<usize>,
    /// It was lost, and not sent again since.
    pub(super) is_lost: bool,
    /// The URL server has been told that its request was written, or was to be.
    pub(super) announced: bool,
    /// When its request was written, by the word of its spider.
    pub(super) requested: Option<Timestamp>,
    /// Its name before it was sent again last, and when it was sent under that.
    pub(super) former: Option<(u64, Timestamp)>,
    /// When the spider said DONE.
    pub(super) done_at: Option<Timestamp>,
    /// How long the fetch took, by its result.
    pub(super) took: Option<Duration>,
    /// What its result means to the URL server, once that is here.
    pub(super) word: Option<Box<Done>>,
}

impl Out {
    /// One that waits for a spider.
    pub(super) fn new(order: Order, now: Timestamp) -> Self {
        Self {
            order,
            spider: None,
            sent: None,
            heard: now,
            losses: 0,
            had: None,
            is_lost: false,
            announced: false,
            requested: None,
            former: None,
            done_at: None,
            took: None,
            word: None,
        }
    }

    /// Where it is, unless it is over or as good as over.
    pub(super) fn wish(&self, number: u64) -> Option<Wish> {
        let is_over = self.done_at.is_some() || self.word.is_some();
        (!is_over).then(|| match self.spider {
            Some(spider) => Wish::With(spider, number),
            None => Wish::Here,
        })
    }

    /// When its request was written, as well as that is known.
    pub(super) fn written(&self) -> Option<Timestamp> {
        self.requested.or(self.sent)
    }

    /// It is over.
    pub(super) fn end(self, now: Timestamp) -> (Over, Order) {
        let done = self.word.map_or_else(
            || Done {
                sent: self.sent,
                first_byte: None,
                ended: now,
                connect_failed: false,
                failed: false,
                robots: None,
            },
            |word| *word,
        );
        let trans = self.order.trans;
        let turn = (self.spider.zip(self.sent).zip(self.done_at)).map(|((spider, sent), done)| {
            let took = self.took;
            (spider, Turn { sent, done, took })
        });
        (Over { trans, done, turn }, self.order)
    }
}
