//! The connections to spiders: made, kept, and made again, each in a task of its own.
//!
//! Orders go out through a queue for each; everything that is heard comes back through one. What it means is
//! for `orders` to say.

use orbweaver_model::{Clock, Order};
use orbweaver_wire::conversation::{random, write_all_of};
use orbweaver_wire::line::write_order;
use orbweaver_wire::{
    Backoff, Complaints, Connection, Dialect, Lines, Place, ToSpider, Word, extension,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{info, warn};

/// What is heard from the connections.
#[derive(Debug)]
pub enum Heard {
    /// A spider is connected and takes orders here.
    Up(usize, mpsc::Sender<Outgoing>),
    /// It says something, and with `true` in the spelling of those who know the extension.
    Word(usize, Word, bool),
    /// It is gone.
    Down(usize),
}

/// What is said to a spider.
#[derive(Debug)]
pub enum Outgoing {
    /// An order, and with `true` in the spelling that offers the extension.
    Order(Order, bool),
    /// A word of the extension.
    Say(ToSpider),
}

/// One spider to be connected to.
pub struct Spider {
    /// Its number among all spiders.
    pub number: usize,
    /// Where it listens.
    pub place: Place,
    /// How orders are written.
    pub dialect: Dialect,
    /// Orders that can wait for the connection: as many as can be out.
    pub room: usize,
    /// Where its words go.
    pub heard: mpsc::Sender<Heard>,
    /// The clock.
    pub clock: Clock,
}

impl Spider {
    fn name(&self) -> String {
        format!("{}:{}", self.place.host, self.place.number)
    }

    /// Connects, talks, and connects again, until nobody listens.
    pub async fn run(self) {
        let mut backoff = Backoff::default();
        let name = self.name();
        let mut complained = false;
        while !self.heard.is_closed() {
            match self
                .place
                .port
                .connect(&self.place.host, self.place.number)
                .await
            {
                Ok(connection) => {
                    if !complained {
                        info!(spider = name, "connected to a spider");
                    }
                    let began = Instant::now();
                    let (why, words) = self.talk(connection).await;
                    if self.heard.is_closed() {
                        return;
                    }
                    // One that accepts and hangs up is no better than none.
                    if words > 0 || began.elapsed() >= Backoff::MOST {
                        backoff.reset();
                        complained = false;
                    }
                    if !complained {
                        complained = words == 0;
                        warn!(
                            spider = name,
                            why, "a spider is not reachable any more; its orders are sent again"
                        );
                    }
                    if self.heard.send(Heard::Down(self.number)).await.is_err() {
                        return;
                    }
                }
                // Once is enough: it may be down for hours.
                Err(error) if !complained => {
                    complained = true;
                    warn!(spider = name, %error, "no connection to a spider; retrying");
                }
                Err(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next(random())) => {}
                () = self.heard.closed() => return,
            }
        }
    }

    /// Talks until the connection ends; why it did, and how many words were heard.
    async fn talk(&self, connection: Connection) -> (String, u64) {
        let mut words = 0;
        let why = self.talk_and_count(connection, &mut words).await;
        (why, words)
    }

    async fn talk_and_count(&self, connection: Connection, words: &mut u64) -> String {
        let (reader, writer) = tokio::io::split(connection);
        // Of each order there can be three: its terms, the order itself, and that it is not wanted.
        let (orders, queue) = mpsc::channel(3 * self.room + 64);
        if self
            .heard
            .send(Heard::Up(self.number, orders))
            .await
            .is_err()
        {
            return "the URL server ends".into();
        }
        let dialect = self.dialect;
        let write = write_all_of(queue, writer, |said: Outgoing, out| match said {
            Outgoing::Order(order, offer) => {
                write_order(&order, dialect, offer, out);
            }
            Outgoing::Say(said) => said.write(out),
        });
        tokio::select! {
            why = self.hear(reader, words) => why,
            written = write => match written {
                Ok(()) => "the URL server ends".into(),
                Err(error) => error.to_string(),
            },
        }
    }

    async fn hear(&self, mut reader: impl AsyncRead + Unpin, words: &mut u64) -> String {
        let mut lines = Lines::new();
        let mut complaints = Complaints::default();
        let mut piece = vec![0; 16 << 10];
        loop {
            match reader.read(&mut piece).await {
                Ok(0) => return "it closed the connection".into(),
                Ok(count) => lines.feed(piece.get(..count).unwrap_or_default()),
                Err(error) => return error.to_string(),
            }
            loop {
                let word = match lines.next() {
                    Ok(Some(line)) => Word::read(line).map(|it| (it, extension::is_answer(line))),
                    Ok(None) => break,
                    Err(error) => return error.to_string(),
                };
                match word {
                    Ok((word, extended)) => {
                        *words += 1;
                        let heard = Heard::Word(self.number, word, extended);
                        if self.heard.send(heard).await.is_err() {
                            return "the URL server ends".into();
                        }
                    }
                    Err(error) => {
                        if let Some(count) = complaints.count((self.clock)()) {
                            warn!(count, %error, "invalid lines of a spider were dropped");
                        }
                    }
                }
            }
        }
    }
}
