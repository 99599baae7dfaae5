//! The clock of one fetch: a limit for the current step inside a limit for the whole.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// No limit is longer, so that adding it to a moment cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// One timer for all limits of a fetch. Moving the limit later costs nothing: the timer finds out
/// when it fires, and goes on waiting.
pub(crate) struct Deadline {
    total: Instant,
    step: Instant,
    armed: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Deadline {
    /// A fetch that begins now and must be over after `total`.
    pub(crate) fn new(total: Duration) -> Self {
        let total = Instant::now() + total.min(LONGEST);
        Self {
            total,
            step: total,
            armed: total,
            sleep: Box::pin(sleep_until(total)),
        }
    }

    /// The next step begins now and may take `span`, but not longer than the whole.
    pub(crate) fn step(&mut self, span: Duration) {
        self.step = self.total.min(Instant::now() + span.min(LONGEST));
        if self.step < self.armed {
            self.arm();
        }
    }

    /// The next step may take whatever is left of the whole.
    pub(crate) fn last_step(&mut self) {
        self.step = self.total;
    }

    /// True when the time of the whole is up.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.total
    }

    /// Ready when the step's time is up.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.step {
                return Poll::Ready(());
            }
            self.arm();
        }
        Poll::Pending
    }

    /// Runs `work` until it is done or the step's time is up.
    pub(crate) async fn bound<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll(cx).map(|()| None),
        })
        .await
    }

    fn arm(&mut self) {
        self.armed = self.step;
        self.sleep.as_mut().reset(self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn steps_move_but_the_whole_stands() {
        let start = Instant::now();
        let mut deadline = Deadline::new(Duration::from_secs(30));
        deadline.step(Duration::from_secs(10));
        let nothing = std::future::pending::<()>;
        tokio::time::advance(Duration::from_secs(9)).await;
        deadline.step(Duration::from_secs(10));
        assert_eq!(deadline.bound(nothing()).await, None);
        assert_eq!(start.elapsed().as_secs(), 19);
        // A shorter step ends earlier than the timer was set for.
        deadline.step(Duration::from_secs(20));
        deadline.step(Duration::from_secs(1));
        assert_eq!(deadline.bound(nothing()).await, None);
        assert_eq!(start.elapsed().as_secs(), 20);
        deadline.step(Duration::from_secs(100));
        assert_eq!(deadline.bound(nothing()).await, None);
        assert_eq!(start.elapsed().as_secs(), 30);
        assert_eq!(deadline.bound(async { 7 }).await, Some(7));
    }
}
