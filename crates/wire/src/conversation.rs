//! What every talker needs: how long to wait before the next attempt, when to complain, and a writer
//! that nobody can make grow.
//!
//! Time and randomness are passed in, so that both can be tested without either.

use std::time::Duration;

use orbweaver_model::Timestamp;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How long a peer may leave what was written to it unread before the connection is given up: longer
/// than any pause of a healthy process, shorter than an operator's patience.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits between attempts: each twice as long as the one before, up to a bound, and of each a random
/// share of up to a half less, so that those who lost the same peer do not come back together.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Self::MOST)
    }
}

impl Backoff {
    /// The longest wait. A connection that has lasted as long was of use, even if nothing was said.
    pub const MOST: Duration = Duration::from_secs(10);

    /// Begins at `first` and never waits longer than `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            attempts: 0,
        }
    }

    /// The wait before the next attempt; `random` is any number.
    pub fn next(&mut self, random: u64) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.attempts.min(20));
        self.attempts = self.attempts.saturating_add(1);
        let whole = doubled.min(self.most);
        let share = (random % 1024) as u32;
        whole - whole * share / 2048
    }

    /// The attempt succeeded: the peer was of use, and did not only accept the connection.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// Any number, different each time and in each process.
pub fn random() -> u64 {
    rand::random()
}

/// Complaints about one peer: each is counted, one a minute is worth a line in the log.
#[derive(Debug, Default)]
pub struct Complaints {
    told: Option<Timestamp>,
    untold: u64,
    total: u64,
}

impl Complaints {
    /// The shortest time between two lines about one peer.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// Counts one. When it is time for a line: how many there were since the last one.
    pub fn count(&mut self, now: Timestamp) -> Option<u64> {
        self.untold += 1;
        self.total += 1;
        let due = self
            .told
            .is_none_or(|told| now.since(told) >= Self::INTERVAL);
        due.then(|| {
            self.told = Some(now);
            std::mem::take(&mut self.untold)
        })
    }

    /// All that were counted.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// Writes what comes through the queue until it closes, many messages at a time. The queue's bound is
/// the bound of what waits here; a peer that does not read for [`WRITE_TIMEOUT`] is an error.
pub async fn write_all_of<M>(
    mut queue: mpsc::Receiver<M>,
    mut stream: impl AsyncWrite + Unpin,
    mut render: impl FnMut(M, &mut Vec<u8>),
) -> std::io::Result<()> {
    const AT_ONCE: usize = 1024;
    let mut messages = Vec::new();
    let mut bytes = Vec::new();
    while queue.recv_many(&mut messages, AT_ONCE).await > 0 {
        for message in messages.drain(..) {
            render(message, &mut bytes);
        }
        write_in_time(&mut stream, &bytes).await?;
        bytes.clear();
    }
    stream.shutdown().await
}

/// Writes and flushes, unless the peer does not read for [`WRITE_TIMEOUT`].
pub async fn write_in_time(
    stream: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
) -> std::io::Result<()> {
    let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "the peer does not read");
    // Counted per piece: a long message to a slow peer is no silence.
    while !bytes.is_empty() {
        let written = tokio::time::timeout(WRITE_TIMEOUT, stream.write(bytes))
            .await
            .map_err(|_| late())??;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    tokio::time::timeout(WRITE_TIMEOUT, stream.flush())
        .await
        .map_err(|_| late())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_differ() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        let waits: Vec<u128> = (0..8).map(|_| backoff.next(0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3000, 3000, 3000]);
        for random in [1, 511, 1023, u64::MAX] {
            let wait = backoff.next(random).as_millis();
            assert!((1500..3000).contains(&wait), "{wait}");
        }
        backoff.reset();
        assert_eq!(backoff.next(0).as_millis(), 100);
        let mut long = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!(long.next(0), Duration::MAX);
    }

    #[test]
    fn one_complaint_a_minute() {
        let mut complaints = Complaints::default();
        let at = Timestamp::from_millis;
        assert_eq!(complaints.count(at(0)), Some(1));
        assert_eq!(complaints.count(at(10)), None);
        assert_eq!(complaints.count(at(59_999)), None);
        assert_eq!(complaints.count(at(60_000)), Some(3));
        assert_eq!(complaints.total(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (near, _far) = tokio::io::duplex(16);
        let (sender, queue) = mpsc::channel(4);
        sender.send(64).await.unwrap();
        let render = |length, out: &mut Vec<u8>| out.resize(length, b'x');
        let error = write_all_of(queue, near, render).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(sender.send(1).await.is_err());
    }
}
