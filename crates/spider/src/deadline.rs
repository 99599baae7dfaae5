//! The clock of one fetch: a limit for the current step inside a limit for the whole.
//!
//! Only the server's time counts. What the fetch waits for on our side, memory or a disk, stands outside
//! (`pause`). So does the time in which this process did not run at all, because it was stopped, the machine
//! suspended, or its processors taken: the timer is never set further ahead than a second, and when it
//! comes much later than it was set for, the limits move along.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, Sleep, sleep_until};

/// No limit is longer, so that adding it to a moment cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The timer is set no further ahead than this.
const PULSE: Duration = Duration::from_secs(1);

/// A timer that comes this late shows that nobody was there to hear it. A busy runtime is late by
/// milliseconds.
const LATE: Duration = Duration::from_millis(500);

/// One timer for all limits of a fetch. Moving the limit later costs nothing: the timer finds out
/// when it fires, and goes on waiting.
pub(crate) struct Deadline {
    began: Instant,
    /// What the whole may take, with what was earned since.
    allowed: Duration,
    total: Instant,
    step: Instant,
    armed: Instant,
    sleep: Pin<Box<Sleep>>,
    /// When the fetch was last driven.
    seen: Instant,
    /// Time in which nobody drove it.
    lost: Duration,
    /// Time that it waited for this process.
    waited: Duration,
    /// How long the machine had been suspended when it began.
    suspended: Duration,
}

impl Deadline {
    /// A fetch that begins now and must be over after `total`.
    pub(crate) fn new(total: Duration) -> Self {
        let now = Instant::now();
        let allowed = total.min(LONGEST);
        let total = now + allowed;
        let armed = total.min(now + PULSE);
        Self {
            began: now,
            allowed,
            total,
            step: total,
            armed,
            sleep: Box::pin(sleep_until(armed)),
            seen: now,
            lost: Duration::ZERO,
            waited: Duration::ZERO,
            suspended: suspended(),
        }
    }

    /// The next step begins now and may take `span`, but not longer than the whole.
    pub(crate) fn step(&mut self, span: Duration) {
        let now = self.look();
        self.step = self.total.min(now + span.min(LONGEST));
        if self.step < self.armed {
            self.arm(now);
        }
    }

    /// The whole may take this long, not counting what is ours, if it may not take longer already.
    pub(crate) fn extend(&mut self, allowed: Duration) {
        let allowed = allowed.min(LONGEST);
        if allowed > self.allowed {
            self.allowed = allowed;
            self.total = self.began + allowed + self.lost + self.waited;
        }
    }

    /// True when the time of the whole is up.
    pub(crate) fn is_over(&mut self) -> bool {
        self.look() >= self.total
    }

    /// Ready when the step's time is up.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = self.look();
            if now >= self.step {
                return Poll::Ready(());
            }
            self.arm(now);
        }
        self.seen = Instant::now();
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

    /// Waits for something of our own, however long it takes: the server's clock stands still.
    pub(crate) async fn pause<T>(&mut self, work: impl Future<Output = T>) -> T {
        let began = self.look();
        let done = work.await;
        let now = Instant::now();
        let spent = now.saturating_duration_since(began);
        self.waited += spent;
        self.shift(spent, now);
        done
    }

    /// Time since the beginning that is not the server's.
    pub(crate) fn ours(&mut self) -> Duration {
        self.stalled() + self.waited
    }

    /// Time in which nobody drove the fetch, or the machine slept.
    pub(crate) fn stalled(&mut self) -> Duration {
        self.look();
        self.lost + self.slept()
    }

    /// Time that the machine slept.
    pub(crate) fn slept(&self) -> Duration {
        suspended().saturating_sub(self.suspended)
    }

    /// Time that the fetch waited for something of ours.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Notices when the timer is overdue and nobody has been here since.
    fn look(&mut self) -> Instant {
        let now = Instant::now();
        let late = now.saturating_duration_since(self.armed.max(self.seen));
        if late > LATE {
            self.lost += late;
            self.shift(late, now);
        }
        self.seen = now;
        now
    }

    fn shift(&mut self, span: Duration, now: Instant) {
        self.total += span;
        self.step += span;
        self.seen = now;
        self.arm(now);
    }

    fn arm(&mut self, now: Instant) {
        self.armed = self.step.min(now + PULSE);
        self.sleep.as_mut().reset(self.armed);
    }
}

/// How long the machine has been suspended since it was started. The clock of timers stands still then.
fn suspended() -> Duration {
    let since_boot = span_of(ClockId::Boottime);
    since_boot.saturating_sub(span_of(ClockId::Monotonic))
}

fn span_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives a deadline for so long, as a fetch does that hears nothing.
    async fn drive(deadline: &mut Deadline, seconds: u64) {
        let span = Duration::from_secs(seconds);
        assert_eq!(
            deadline.bound(tokio::time::sleep(span)).await,
            Some(()),
            "the step ended first"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn steps_move_but_the_whole_stands() {
        let start = Instant::now();
        let mut deadline = Deadline::new(Duration::from_secs(30));
        deadline.step(Duration::from_secs(10));
        let nothing = std::future::pending::<()>;
        drive(&mut deadline, 9).await;
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
        assert!(deadline.ours() < PULSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_stopped_gives_the_time_back() {
        let start = Instant::now();
        let mut deadline = Deadline::new(Duration::from_secs(30));
        deadline.step(Duration::from_secs(10));
        drive(&mut deadline, 5).await;
        // Nobody drives it for 45 seconds.
        tokio::time::advance(Duration::from_secs(45)).await;
        assert_eq!(deadline.bound(std::future::pending::<()>()).await, None);
        let took = start.elapsed().as_secs();
        assert!((54..=56).contains(&took), "{took}");
        assert!(deadline.ours().as_secs() >= 44);
        // Busy is not stopped: who asks all the time runs, whether the timer is heard or not.
        let mut busy = Deadline::new(Duration::from_secs(3));
        for _ in 0..30 {
            tokio::time::advance(Duration::from_millis(100)).await;
            busy.step(Duration::from_secs(10));
        }
        assert!(busy.is_over() && busy.ours() < LATE);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_ourselves_is_not_the_servers_time() {
        let start = Instant::now();
        let mut deadline = Deadline::new(Duration::from_secs(30));
        deadline.step(Duration::from_secs(10));
        drive(&mut deadline, 2).await;
        deadline
            .pause(tokio::time::sleep(Duration::from_secs(600)))
            .await;
        assert_eq!(deadline.ours().as_secs(), 600);
        assert_eq!(deadline.bound(std::future::pending::<()>()).await, None);
        assert_eq!(start.elapsed().as_secs(), 610);
        // What was earned comes on top.
        deadline.extend(Duration::from_secs(50));
        deadline.step(Duration::from_secs(100));
        assert_eq!(deadline.bound(std::future::pending::<()>()).await, None);
        assert_eq!(start.elapsed().as_secs(), 650);
    }
}
