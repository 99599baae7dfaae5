//! A follower of the store's results: it connects, hears, reconnects, and hands on what it heard.
//!
//! Every result comes at least once and in order; after a reconnection the stream goes on behind the
//! last one that was handed on. Who folds them must not mind hearing one twice after its own restart.

use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::conversation::{self, Backoff, write_in_time};
use crate::error::WireError;
use crate::keyed::{Connection, Port};
use crate::record::Decoded;
use crate::results::{Command, Entries};

/// Results that wait to be taken; each can be as large as a document.
const AHEAD: usize = 4;

/// What a follower has to tell.
#[derive(Debug)]
pub enum Followed {
    /// The connection stands.
    Connected,
    /// The connection could not be made or ended, with the reason; it is tried again.
    Lost(String),
    /// A result and its position.
    Result(u64, Decoded),
}

/// Where the results are.
#[derive(Clone, Debug)]
pub struct Source {
    /// Store_Host.
    pub host: String,
    /// Results_Port.
    pub port: u16,
    /// Bytes of data that are kept of one result.
    pub max_data: usize,
}

/// A follower at work in a task of its own, which ends when this is dropped.
#[derive(Debug)]
pub struct Follower {
    heard: mpsc::Receiver<Followed>,
    have: watch::Sender<u64>,
}

impl Follower {
    /// Begins behind `position`, which is 0 for the beginning. Needs a running tokio runtime.
    pub fn start(port: Port, source: Source, position: u64) -> Self {
        let (sender, heard) = mpsc::channel(AHEAD);
        let (have, folded) = watch::channel(position);
        let task = Task {
            port,
            source,
            position,
            sender,
            folded,
        };
        tokio::spawn(task.run());
        Self { heard, have }
    }

    /// The next thing to tell. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Followed> {
        self.heard.recv().await
    }

    /// Says that everything up to here is folded, durably.
    pub fn have(&self, position: u64) {
        self.have.send_if_modified(|had| {
            let further = position > *had;
            *had = position.max(*had);
            further
        });
    }
}

struct Task {
    port: Port,
    source: Source,
    /// The last position that was handed on.
    position: u64,
    sender: mpsc::Sender<Followed>,
    folded: watch::Receiver<u64>,
}

impl Task {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        while !self.sender.is_closed() {
            let why = match self.connect().await {
                Ok(connection) => {
                    let (began, position) = (Instant::now(), self.position);
                    let ended = self.hear(connection).await;
                    // A store that accepts and hangs up is no better than none.
                    if self.position > position || began.elapsed() >= Backoff::MOST {
                        backoff.reset();
                    }
                    match ended {
                        Ok(()) => "the store closed the connection".to_owned(),
                        Err(error) => error.to_string(),
                    }
                }
                Err(error) => error.to_string(),
            };
            let wait = backoff.next(conversation::random());
            if self.sender.send(Followed::Lost(why)).await.is_err() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.sender.closed() => return,
            }
        }
    }

    async fn connect(&self) -> Result<Connection, WireError> {
        self.port.connect(&self.source.host, self.source.port).await
    }

    async fn hear(&mut self, connection: Connection) -> std::io::Result<()> {
        let (mut reader, mut writer) = tokio::io::split(connection);
        say(&mut writer, Command::Follow(self.position)).await?;
        if self.sender.send(Followed::Connected).await.is_err() {
            return Ok(());
        }
        self.folded.mark_changed();
        let mut entries = Entries::new(self.source.max_data);
        let mut piece = vec![0; 64 << 10];
        loop {
            while let Some((position, decoded)) = entries.next() {
                let heard = Followed::Result(position, decoded);
                if self.sender.send(heard).await.is_err() {
                    return Ok(());
                }
                self.position = position;
            }
            tokio::select! {
                read = reader.read(&mut piece) => match read? {
                    0 => return Ok(()),
                    count => entries.feed(piece.get(..count).unwrap_or_default()),
                },
                changed = self.folded.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let have = *self.folded.borrow_and_update();
                    if have > 0 {
                        say(&mut writer, Command::Have(have)).await?;
                    }
                }
            }
        }
    }
}

async fn say(writer: &mut (impl AsyncWrite + Unpin), command: Command) -> std::io::Result<()> {
    let mut line = Vec::new();
    command.write(&mut line);
    write_in_time(writer, &line).await
}
