//! The shell in paused time: orders flow, names resolve, notices arrive, and it stops in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use orbweaver_model::{
    Candidate, Clock, CrawlUrl, KeySeed, LinkKind, Order, Outcome, OutcomeClass, Purpose, Timestamp,
};
use orbweaver_urlserver::server::Resolving;
use orbweaver_urlserver::{
    Done, Handle, Links, Notice, Resolve, Resolved, RobotsAnswer, UrlServer, UrlServerError,
    UrlServerOptions,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Names that begin with `gone` have no address, with `silent` never get an answer, and `broken` ones
/// bring the resolver down.
struct Script {
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Resolve for Script {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(open, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.open.fetch_sub(1, Ordering::SeqCst);
            if host.starts_with("gone") {
                return Err(Outcome::plain(OutcomeClass::FailedDns));
            }
            if host.starts_with("silent") {
                std::future::pending::<()>().await;
            }
            assert!(!host.starts_with("broken"), "the resolver breaks");
            Ok(Resolved {
                addresses: vec![[127, 0, 0, 1].into()],
                ttl: Duration::from_secs(600),
            })
        })
    }
}

struct Rig {
    handle: Handle,
    task: JoinHandle<()>,
    orders: mpsc::Receiver<Order>,
    notices: mpsc::Receiver<Notice>,
    clock: Clock,
    script: Arc<Script>,
}

fn clock() -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || Timestamp::from_millis(1_000_000).after(start.elapsed()))
}

fn rig(options: UrlServerOptions, room: usize) -> Rig {
    let (order_sender, orders) = mpsc::channel(options.in_flight);
    let (notice_sender, notices) = mpsc::channel(room);
    let clock = clock();
    let script = Arc::new(Script {
        open: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let links = Links {
        give_up: None,
        orders: order_sender,
        notices: notice_sender,
        resolver: script.clone(),
        clock: clock.clone(),
    };
    let (handle, task) = UrlServer::spawn(options, links).unwrap();
    Rig {
        handle,
        task,
        orders,
        notices,
        clock,
        script,
    }
}

fn candidate(url: &str) -> Candidate {
    let url = CrawlUrl::from_canonical(url).unwrap();
    Candidate {
        key: url.key(KeySeed(7)),
        doc_id: 1,
        url,
        kind: LinkKind::A,
        depth: 1,
        attempts: 0,
        chain: Vec::new(),
        revisit: None,
    }
}

impl Rig {
    async fn finish(&self, order: &Order) {
        let now = (self.clock)();
        let robots = (order.purpose() == Purpose::Robots)
            .then_some(RobotsAnswer::Unavailable { status: 404 });
        let done = Done {
            sent: Some(now),
            first_byte: Some(now),
            ended: now,
            connect_failed: false,
            failed: false,
            robots,
        };
        self.handle.done(order.trans, done).await.unwrap();
    }

    async fn order(&mut self, url: &str) -> Order {
        let order = self.orders.recv().await.unwrap();
        assert_eq!(order.url().as_str(), url);
        order
    }

    /// The next notice that is no request for candidates.
    async fn notice(&mut self) -> Notice {
        loop {
            match self.notices.recv().await.unwrap() {
                Notice::NeedCandidates { .. } => {}
                notice => return notice,
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_from_the_first_request_to_the_last_order() {
    let mut rig = rig(UrlServerOptions::default(), 16);
    let Some(Notice::NeedCandidates { reject, .. }) = rig.notices.recv().await else {
        panic!("an empty URL server asks for candidates");
    };
    assert!(reject.is_empty());
    let urls = vec![candidate("http://a/1"), candidate("http://a/2")];
    rig.handle.candidates(urls).await.unwrap();
    let mut times = Vec::new();
    for url in ["http://a/robots.txt", "http://a/1", "http://a/2"] {
        let order = rig.order(url).await;
        times.push((rig.clock)());
        rig.handle.sent(order.trans, (rig.clock)()).await.unwrap();
        rig.finish(&order).await;
    }
    for pair in times.windows(2) {
        let [before, after] = pair else {
            unreachable!()
        };
        assert!(after.since(*before) > Duration::from_secs(1));
    }
    let census = rig.handle.census().await.unwrap();
    assert_eq!((census.orders, census.queued, census.hosts), (0, 0, 0));
    drop(rig.handle);
    rig.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn names_that_fail_in_any_way_refuse_their_urls() {
    let mut rig = rig(UrlServerOptions::default(), 16);
    for host in ["gone", "silent", "broken"] {
        let urls = vec![candidate(&format!("http://{host}/"))];
        rig.handle.candidates(urls).await.unwrap();
        let Notice::Refuse {
            candidate, outcome, ..
        } = rig.notice().await
        else {
            panic!("{host} must be refused");
        };
        assert_eq!(candidate.url.host(), host);
        assert_eq!(outcome.class, OutcomeClass::FailedDns);
    }
}

#[tokio::test(start_paused = true)]
async fn resolutions_are_bounded_in_number() {
    let options = UrlServerOptions {
        ip_concurrent: 2000,
        ip_per_sec: 0.0,
        in_flight: 1000,
        ..UrlServerOptions::default()
    };
    let mut rig = rig(options, 16);
    let urls = (0..1000)
        .map(|n| candidate(&format!("http://h{n}/")))
        .collect();
    rig.handle.candidates(urls).await.unwrap();
    for _ in 0..1000 {
        rig.orders.recv().await.unwrap();
    }
    assert_eq!(rig.script.most.load(Ordering::SeqCst), 256);
}

/// A host whose address is known goes on while the resolver is silent about as many names as it may be asked for
/// at once; a new name behind them has its turn when they are given up.
#[tokio::test(start_paused = true)]
async fn a_silent_resolver_holds_up_only_those_who_need_it() {
    let options = UrlServerOptions {
        host_per_sec: 0.0,
        ip_per_sec: 0.0,
        ..UrlServerOptions::default()
    };
    let limit = options.limits.total_timeout;
    let mut rig = rig(options, 2000);
    let began = tokio::time::Instant::now();
    rig.handle
        .candidates(vec![candidate("http://known/1")])
        .await
        .unwrap();
    let order = rig.order("http://known/robots.txt").await;
    let urls = (0..300).map(|n| candidate(&format!("http://silent{n}/")));
    rig.handle.candidates(urls.collect()).await.unwrap();
    let more = vec![candidate("http://known/2"), candidate("http://new/1")];
    rig.handle.candidates(more).await.unwrap();
    rig.finish(&order).await;
    for url in ["http://known/1", "http://known/2"] {
        let order = rig.order(url).await;
        rig.finish(&order).await;
    }
    assert!(began.elapsed() < limit, "nobody waited for the silent ones");
    rig.order("http://new/robots.txt").await;
    let mut refused = 0;
    while refused < 300 {
        refused += usize::from(matches!(rig.notice().await, Notice::Refuse { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_channel_of_notices_does_not_stop_the_inbox() {
    let mut rig = rig(UrlServerOptions::default(), 1);
    // More refusals than the channel holds, and nobody reads them; messages are taken all the same.
    for n in 0..3000 {
        let urls = vec![candidate(&format!("http://gone{n}/"))];
        rig.handle.candidates(urls).await.unwrap();
    }
    let mut refused = 0;
    while refused < 3000 {
        refused += usize::from(matches!(rig.notice().await, Notice::Refuse { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_gives_back_what_is_not_out() {
    let mut rig = rig(UrlServerOptions::default(), 16);
    let urls = vec![candidate("http://a/1"), candidate("http://a/2")];
    rig.handle.candidates(urls).await.unwrap();
    let order = rig.order("http://a/robots.txt").await;
    let back = rig.handle.drain().await.unwrap();
    assert_eq!(back.len(), 2);
    rig.handle
        .candidates(vec![candidate("http://b/1")])
        .await
        .unwrap();
    let notice = rig.notice().await;
    assert!(matches!(notice, Notice::Return { candidates, until: None } if candidates.len() == 1));
    rig.finish(&order).await;
    assert_eq!(rig.handle.census().await.unwrap().orders, 0);
    drop(rig.handle);
    rig.task.await.unwrap();
    assert!(rig.orders.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn without_a_spider_it_ends_and_says_so() {
    let rig = rig(UrlServerOptions::default(), 16);
    drop(rig.orders);
    rig.handle
        .candidates(vec![candidate("http://a/1")])
        .await
        .unwrap();
    rig.task.await.unwrap();
    assert_eq!(rig.handle.census().await, Err(UrlServerError::Stopped));
}

#[tokio::test]
async fn options_that_make_no_sense_are_named() {
    let options = UrlServerOptions {
        queue_len: 0,
        ..UrlServerOptions::default()
    };
    let (orders, _orders) = mpsc::channel(options.in_flight);
    let (notices, _notices) = mpsc::channel(1);
    let links = Links {
        give_up: None,
        orders,
        notices,
        resolver: Arc::new(Script {
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }),
        clock: clock(),
    };
    let failure = UrlServer::spawn(options, links).map(|_| ()).unwrap_err();
    assert_eq!(failure.to_string(), "queue_len must be at least 1");
}
