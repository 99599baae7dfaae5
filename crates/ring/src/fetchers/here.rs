//! Orders carried out by the spider of this process, each in a task of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;

use orbweaver_model::{FetchRequest, Order, Timestamp, TransId};
use orbweaver_spider::{Gate, Refused, Spider};

use super::gate::SendGate;
use super::intake::ResultIntake;
use super::{Fetchers, LAST_REQUESTS, Work};
use crate::sync::lock;

/// The spider of this process.
pub(crate) struct Here {
    pub(crate) spider: Spider,
    /// Documents that were fetched before are requested with HEAD first.
    pub(crate) head_first: bool,
    pub(crate) intake: ResultIntake,
    /// Results that may be on their way to the doc index.
    pub(crate) permits: Arc<Semaphore>,
}

impl Fetchers for Here {
    async fn run(self, mut work: Work) {
        let Self {
            spider,
            head_first,
            intake,
            permits,
        } = self;
        let shared = Arc::new(Shared {
            spider,
            head_first,
            intake,
            gate: work.gate,
            out: OrdersOut::default(),
        });
        let mut tasks = JoinSet::new();
        loop {
            let order = tokio::select! {
                order = work.orders.recv() => order,
                Some(trans) = work.give_up.recv() => {
                    shared.out.give_up(trans);
                    continue;
                }
                _ = work.stop.wait_for(|stop| *stop) => None,
            };
            let Some(order) = order else {
                break;
            };
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit,
                _ = work.stop.wait_for(|stop| *stop) => break,
            };
            let Ok(permit) = permit else {
                break;
            };
            let shared = Arc::clone(&shared);
            tasks.spawn(async move { shared.carry_out(order, permit).await });
            while tasks.try_join_next().is_some() {}
        }
        // What has not been sent is not, and goes back to the queue.
        shared.gate.close();
        // What does not end in time stays claimed and is fetched by the next run.
        let rest = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_REQUESTS, rest).await;
    }
}

/// What the tasks share.
struct Shared {
    spider: Spider,
    head_first: bool,
    intake: ResultIntake,
    gate: Arc<SendGate>,
    out: OrdersOut,
}

impl Shared {
    async fn carry_out(&self, order: Order, permit: OwnedSemaphorePermit) {
        let (trans, request) = (order.trans, order.request(self.head_first));
        let gate = OrderGate {
            gate: &self.gate,
            sent: OnceLock::new(),
            told: Notify::new(),
        };
        let given_up = self.out.add(trans);
        let fetch = async {
            tokio::select! {
                result = self.spider.fetch(&request, &gate) => result,
                Ok(()) = given_up => Err(Refused),
            }
        };
        let result = match order.announce {
            true => self.announcing(trans, &gate, fetch).await,
            false => fetch.await,
        };
        self.out.remove(trans);
        match result {
            Ok(result) => self.intake.take(order, result, permit).await,
            Err(Refused) => self.intake.give_up(order, Some(permit)).await,
        }
    }

    /// Tells the URL server when the request has been written, while the fetch goes on. At most one announcement
    /// waits for each order, here in its task.
    async fn announcing<T>(
        &self,
        trans: TransId,
        gate: &OrderGate<'_>,
        fetch: impl Future<Output = T>,
    ) -> T {
        let announce = async {
            gate.told.notified().await;
            if let Some(at) = gate.sent.get() {
                // The URL server ends only when the crawl does.
                let _ = self.intake.urlserver.sent(trans, *at).await;
            }
        };
        tokio::pin!(fetch, announce);
        let (early, is_announced) = tokio::select! {
            // A fetch that is over may have told on the way, and then that goes first.
            biased;
            () = &mut announce => (None, true),
            result = &mut fetch => (Some(result), false),
        };
        match early {
            None => fetch.await,
            Some(result) => {
                if !is_announced && gate.sent.get().is_some() {
                    announce.await;
                }
                result
            }
        }
    }
}

/// The gate of the crawl, as one order sees it.
struct OrderGate<'a> {
    gate: &'a SendGate,
    sent: OnceLock<Timestamp>,
    told: Notify,
}

impl Gate for OrderGate<'_> {
    fn may_send(&self, request: &FetchRequest) -> bool {
        self.gate.may_send(&request.url)
    }

    fn sent(&self, at: Timestamp) {
        if self.sent.set(at).is_ok() {
            self.told.notify_one();
        }
    }
}

/// Orders that are being carried out, and how each is told that it is to be given up. Filled and emptied by the tasks
/// that carry them out; as many as are out.
#[derive(Default)]
struct OrdersOut {
    out: Mutex<HashMap<TransId, oneshot::Sender<()>>>,
}

impl OrdersOut {
    fn add(&self, trans: TransId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.out).insert(trans, sender);
        receiver
    }

    fn remove(&self, trans: TransId) {
        lock(&self.out).remove(&trans);
    }

    /// Tells the task of this order. One that is over, or has not begun, goes on as if nothing had been said.
    fn give_up(&self, trans: TransId) {
        let out = lock(&self.out).remove(&trans);
        let _ = out.map(|out| out.send(()));
    }
}
