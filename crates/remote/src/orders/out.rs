//! One order that is out with spiders, and how it ends.

use std::time::Duration;

use orbweaver_model::{Order, Timestamp, TransId};
use orbweaver_urlserver::Done;

use crate::window::Turn;

/// An order that is over, and what the URL server is to hear of it.
#[derive(Debug)]
pub struct Over {
    /// Which.
    pub trans: TransId,
    /// What the URL server is to hear.
    pub done: Done,
    /// Which spider has said DONE, and when.
    pub turn: Option<(usize, Turn)>,
}

/// Where an order is that is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It waits here.
    Here,
    /// This spider has it, under this number.
    With(usize, u64),
}

/// An order that is not over.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) order: Order,
    /// Who has it; none while it waits for one who can take it.
    pub(crate) spider: Option<usize>,
    /// When it was written to a spider last.
    pub(crate) sent: Option<Timestamp>,
    /// When anything was heard of it last.
    pub(crate) heard: Timestamp,
    /// How often it was lost.
    pub(crate) losses: u32,
    /// Who had it when it was lost last.
    pub(crate) had: Option<usize>,
    /// It was lost, and not sent again since.
    pub(crate) is_lost: bool,
    /// The URL server has been told that its request was written, or was to be.
    pub(crate) announced: bool,
    /// When its request was written, by the word of its spider.
    pub(crate) requested: Option<Timestamp>,
    /// Its name before it was sent again last, and when it was sent under that.
    pub(crate) former: Option<(u64, Timestamp)>,
    /// When the spider said DONE.
    pub(crate) done_at: Option<Timestamp>,
    /// How long the fetch took, by its result.
    pub(crate) took: Option<Duration>,
    /// What its result means to the URL server, once that is here.
    pub(crate) word: Option<Box<Done>>,
}

impl Out {
    /// One that waits for a spider.
    pub(crate) fn new(order: Order, now: Timestamp) -> Self {
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
    pub(crate) fn wish(&self, number: u64) -> Option<Wish> {
        let is_over = self.done_at.is_some() || self.word.is_some();
        (!is_over).then_some(match self.spider {
            Some(spider) => Wish::With(spider, number),
            None => Wish::Here,
        })
    }

    /// When its request was written, as well as that is known.
    pub(crate) fn written(&self) -> Option<Timestamp> {
        self.requested.or(self.sent)
    }

    /// It is over.
    pub(crate) fn end(self, now: Timestamp) -> (Over, Order) {
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
