//! Building, watching, changing and stopping a crawl through the library.

use std::time::Duration;

use orbweaver_ring::{Crawl, Error, Kind, Link, LinkRule, Question};

use crate::{crawl_of, small};

#[test]
fn a_crawl_runs_to_its_end_and_says_what_it_did() {
    let (sim, dir) = small(3, 20);
    let crawl = crawl_of(&sim, &dir).start().unwrap();
    let summary = crawl.wait().unwrap();
    assert!(!summary.stopped && summary.limit.is_none());
    assert_eq!(summary.pages, sim.expected_pages().count() as u64);
    assert!(summary.status.balanced && summary.status.queued == 0);
    let url = sim.seeds().remove(0);
    let view = orbweaver_ring::View::open(&dir.path().join("crawl")).unwrap();
    assert_eq!(view.why(&url).unwrap().answer.state, "done");
    assert_eq!(view.status().unwrap().answer.pages, summary.pages);
}

#[test]
fn it_is_watched_paused_and_stopped_while_it_runs() {
    let (sim, dir) = small(2, 200);
    let crawl = crawl_of(&sim, &dir).rate(20.0).start().unwrap();
    crawl.pause().unwrap();
    assert!(crawl.status().unwrap().paused);
    assert!(!crawl.wait_timeout(Duration::ZERO));
    crawl.resume().unwrap();
    assert!(!crawl.status().unwrap().paused);
    let url = sim.seeds().remove(0);
    assert!(crawl.why(&url).unwrap().running);
    assert!(!crawl.slow().unwrap().limit.is_empty());
    let said = crawl.change(Question::Block {
        host: "nobody.example".into(),
    });
    assert_eq!(said.unwrap_err().kind(), Kind::NotFound);
    crawl.stop();
    let summary = crawl.wait().unwrap();
    assert!(summary.stopped && summary.status.queued > 0);
    // The same builder resumes it, with the seeds that the directory keeps.
    let rest = Crawl::builder(dir.path().join("crawl"))
        .rate(0.0)
        .start()
        .unwrap();
    let summary = rest.wait().unwrap();
    assert_eq!(summary.status.pages, sim.expected_pages().count() as u64);
    assert_eq!(sim.stats().duplicates.count, 0);
}

/// All methods work from within another runtime, where waiting for a future would panic.
#[tokio::test]
async fn it_can_be_used_from_a_program_with_a_runtime_of_its_own() {
    let (sim, dir) = small(1, 10);
    let crawl = crawl_of(&sim, &dir).rate(5.0).start().unwrap();
    crawl.pause().unwrap();
    crawl.status().unwrap();
    crawl.resume().unwrap();
    drop(crawl);
}

#[test]
fn mistakes_are_errors_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("crawl");
    let nothing = Crawl::builder(&path).start().err().unwrap();
    assert!(
        matches!(nothing, Error::NoSeeds { kept: None }),
        "{nothing}"
    );
    let wrong = Crawl::builder(&path).seed("https://example.org").rate(-1.0);
    assert_eq!(wrong.start().err().unwrap().kind(), Kind::Input);
    assert!(!path.exists());
}

#[test]
fn one_crawl_in_a_directory() {
    let (sim, dir) = small(1, 50);
    let first = crawl_of(&sim, &dir).rate(2.0).start().unwrap();
    let second = crawl_of(&sim, &dir).start().err().unwrap();
    assert_eq!(second.kind(), Kind::Directory, "{second}");
    drop(first);
    crawl_of(&sim, &dir).start().unwrap().wait().unwrap();
}

/// Nothing but what the test allows.
struct Only(Vec<String>);

impl LinkRule for Only {
    fn name(&self) -> &str {
        "only 1"
    }

    fn refuse(&self, link: &Link) -> Option<String> {
        let wanted = self.0.iter().any(|url| url == link.url.as_str());
        (!wanted).then(|| "not asked for".into())
    }
}

#[test]
fn a_rule_of_the_users_own_decides_which_links_are_followed() {
    let (sim, dir) = small(1, 30);
    let summary = crawl_of(&sim, &dir).rule(Only(Vec::new())).start().unwrap();
    let summary = summary.wait().unwrap();
    // Seeds are never refused.
    assert_eq!(summary.pages, 1);
    assert!(summary.status.refused > 0);
}

#[test]
fn links_from_elsewhere_come_in_and_are_durable() {
    let (sim, dir) = small(1, 30);
    let crawl = crawl_of(&sim, &dir).depth(0).rate(2.0).start().unwrap();
    let inlet = crawl.inlet();
    let all: Vec<String> = sim.expected_pages().map(|url| url.to_string()).collect();
    let link = |url: &String| Link {
        url: inlet.parse(url).unwrap(),
        kind: orbweaver_ring::LinkKind::A,
        depth: 0,
        priority: 16,
        via: None,
        chain: Vec::new(),
    };
    let offered = inlet
        .offer_blocking(all.iter().map(link).collect())
        .unwrap();
    assert_eq!(offered.taken + offered.known, all.len());
    assert!(offered.refused.is_empty());
    let again = inlet
        .offer_blocking(all.iter().map(link).collect())
        .unwrap();
    assert_eq!((again.taken, again.known), (0, all.len()));
    drop(crawl);
    // What was answered is there whatever happened since.
    let view = orbweaver_ring::View::open(&dir.path().join("crawl")).unwrap();
    assert_eq!(view.status().unwrap().answer.accepted, all.len() as u64);
}
