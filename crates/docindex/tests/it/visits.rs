//! URLs that are visited again, URLs that move up, and budgets that run out.

use std::time::Duration;

use orbweaver_docindex::{Budget, Budgets, DocIndex, IndexOptions};
use orbweaver_model::{
    Archived, CapturePlace, Column, Event, LinkKind, Outcome, OutcomeClass, RecrawlBounds, Report,
};

use crate::support::*;

fn forever(dir: &std::path::Path) -> DocIndex {
    let options = IndexOptions {
        seed: SEED,
        recrawl: true,
        ..IndexOptions::default()
    };
    open_with(dir, options)
}

#[test]
fn a_finished_url_comes_back_when_it_is_due_with_what_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    index.candidates(&want(10), at(2)).unwrap();
    index.apply([visit("http://a/1", 1, 500)]).unwrap();
    assert_eq!(index.next_due(), Some(at(500)));
    assert!(index.candidates(&want(10), at(499)).unwrap().is_empty());
    assert_eq!(index.ledger().column(Column::Done), 1);
    let again = index.candidates(&want(10), at(500)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    let left = again[0].revisit.as_ref().unwrap();
    assert_eq!((left.etag.as_deref(), left.visits), (Some("\"tag\""), 1));
    assert_eq!(
        (index.ledger().queued, index.ledger().column(Column::Done)),
        (1, 0)
    );
    sound(&index);
    // A kill while it is out brings it back, not twice, with the same.
    drop(index);
    let mut index = forever(dir.path());
    let again = index.candidates(&want(10), at(501)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    assert!(again[0].revisit.is_some());
    index.apply([visit("http://a/1", 2, 900)]).unwrap();
    assert_eq!(index.next_due(), Some(at(900)));
    sound(&index);
    let host = index.host(key("http://a/1").host).unwrap();
    assert_eq!((host.asked, host.requests), (1, 2), "one page, asked twice");
    let entry = index.reader().entry(key("http://a/1")).unwrap().unwrap();
    assert_eq!(entry.fate.unwrap().earlier.len(), 1);
}

#[test]
fn only_pages_that_are_known_are_handed_out_when_no_others_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    let found = vec![link("http://a/1", 2), link("http://b/1", 0)];
    index.apply([links(found)]).unwrap();
    assert_eq!(index.candidates(&want(10), at(2)).unwrap().len(), 2);
    let done = [visit("http://a/1", 1, 500), visit("http://b/1", 1, 800)];
    index.apply(done).unwrap();
    assert_eq!(index.ledger().pages, 2);
    // New ones, of which one ranks before the page that is to be visited.
    let found = vec![link("http://a/0", 1), link("http://c/1", 0)];
    index.apply([links(found)]).unwrap();
    assert!(index.visits(&want(10), at(499)).unwrap().is_empty());
    let again = index.visits(&want(10), at(500)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    assert!(index.visits(&want(10), at(500)).unwrap().is_empty());
    assert!(!index.has_visits());
    // One that is given back waits again, also when the store is opened anew.
    let keys = vec![key("http://a/1")];
    index.apply([Event::Return { keys }]).unwrap();
    assert!(index.has_visits());
    drop(index);
    let mut index = forever(dir.path());
    let again = index.visits(&want(10), at(501)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    index.apply([visit("http://a/1", 2, 900)]).unwrap();
    assert_eq!(index.ledger().pages, 2, "the same page twice is one page");
    // What was passed over is not forgotten.
    let mut rest = index.candidates(&want(10), at(502)).unwrap();
    rest.sort_by(|one, other| one.url.as_str().cmp(other.url.as_str()));
    assert_eq!(names(&rest), ["http://a/0", "http://c/1"]);
    sound(&index);
}

#[test]
fn a_visit_that_is_put_off_keeps_what_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    index.candidates(&want(10), at(2)).unwrap();
    index.apply([visit("http://a/1", 1, 500)]).unwrap();
    index.candidates(&want(10), at(500)).unwrap();
    let off = Event::Retry {
        key: key("http://a/1"),
        report: report(OutcomeClass::Deferred),
        due: at(600),
        archived: None,
    };
    index.apply([off]).unwrap();
    drop(index);
    let mut index = forever(dir.path());
    let again = index.candidates(&want(10), at(600)).unwrap();
    assert_eq!((again.len(), again[0].attempts), (1, 1));
    assert!(again[0].revisit.is_some());
    sound(&index);
}

#[test]
fn a_crawl_that_ends_leaves_planned_visits_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    index.candidates(&want(10), at(2)).unwrap();
    index.apply([visit("http://a/1", 1, 500)]).unwrap();
    drop(index);
    let mut index = open(dir.path());
    assert!(index.candidates(&want(10), at(9999)).unwrap().is_empty());
    assert_eq!(index.next_due(), None);
    drop(index);
    let mut index = forever(dir.path());
    assert_eq!(index.candidates(&want(10), at(9999)).unwrap().len(), 1);
    sound(&index);
}

#[test]
fn visits_are_planned_for_a_crawl_that_had_none_and_again_for_other_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    let found = (0..9).map(|n| link(&format!("http://a/{n}"), 0)).collect();
    index.apply([links(found)]).unwrap();
    index.candidates(&want(10), at(2)).unwrap();
    for n in 0..9 {
        let done = Event::Done {
            key: key(&format!("http://a/{n}")),
            report: report(OutcomeClass::Success),
            links: vec![],
            revisit: visited(1, None),
            archived: None,
        };
        index.apply([done]).unwrap();
    }
    assert_eq!(index.next_due(), None);
    let bounds = |min, max| RecrawlBounds {
        min: Duration::from_secs(min),
        max: Duration::from_secs(max),
    };
    assert_eq!(index.plan_visits(Some(bounds(100, 100))).unwrap(), 9);
    assert_eq!(index.next_due(), Some(at(10 + 100_000)));
    assert_eq!(index.plan_visits(Some(bounds(100, 100))).unwrap(), 0);
    assert_eq!(index.plan_visits(Some(bounds(5, 5))).unwrap(), 9);
    assert_eq!(index.next_due(), Some(at(10 + 5000)));
    sound(&index);
    assert_eq!(index.candidates(&want(20), at(6000)).unwrap().len(), 9);
    assert!(index.candidates(&want(20), at(200_000)).unwrap().is_empty());
    sound(&index);
}

#[test]
fn a_url_that_many_pages_link_to_moves_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let found = (0..5).map(|n| link(&format!("http://a/{n}"), 3)).collect();
    index.apply([links(found)]).unwrap();
    let first = index.candidates(&want(1), at(2)).unwrap();
    assert_eq!(names(&first), ["http://a/0"]);
    let better = |text: &str| (key(text), 0);
    let urls = vec![
        better("http://a/4"),
        better("http://a/0"),
        better("http://b/9"),
    ];
    index.apply([Event::Promote { urls }]).unwrap();
    sound(&index);
    drop(index);
    let mut index = open(dir.path());
    let rest = index.candidates(&want(9), at(3)).unwrap();
    assert_eq!(names(&rest)[0], "http://a/4");
    assert_eq!(rest.len(), 5);
    sound(&index);
}

/// Ten URLs on two hosts of one domain, of which so many are handed out before a budget ends it.
fn handed_out(budgets: Budgets, bytes: u64) -> (usize, DocIndex, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let options = IndexOptions {
        seed: SEED,
        budgets,
        domain_of: |host| host.rsplit_once('.').map_or(host, |(_, domain)| domain),
        ..IndexOptions::default()
    };
    let mut index = open_with(dir.path(), options.clone());
    let page = |n: u64| format!("http://h{}.dom/{n}", n % 2);
    let found = (0..10).map(|n| link(&page(n), 0)).collect();
    index.apply([links(found)]).unwrap();
    let mut count = 0;
    let mut now = 100;
    loop {
        let found = index.candidates(&want(1), at(now)).unwrap();
        let Some(candidate) = found.first() else {
            break;
        };
        now += 10;
        count += 1;
        let report = Report {
            bytes,
            at: at(now),
            ..report(OutcomeClass::Success)
        };
        index
            .apply([done(candidate.url.as_str(), report, vec![])])
            .unwrap();
        if count == 3 {
            // What was used is known after a restart.
            drop(index);
            index = open_with(dir.path(), options.clone());
        }
    }
    // Those that follow are refused at once or when it is their turn.
    index
        .apply([links(vec![link("http://h0.dom/new", 0)])])
        .unwrap();
    assert!(index.candidates(&want(9), at(now)).unwrap().is_empty());
    assert_eq!(index.ledger().queued, 0);
    sound(&index);
    (count, index, dir)
}

#[test]
fn budgets_end_in_pages_bytes_and_time_for_hosts_and_for_domains() {
    let pages = |pages| Budget {
        pages,
        ..Budget::default()
    };
    let bytes = |bytes| Budget {
        bytes,
        ..Budget::default()
    };
    let time = |millis| Budget {
        time: Duration::from_millis(millis),
        ..Budget::default()
    };
    let host = |host| Budgets {
        host,
        ..Budgets::default()
    };
    let domain = |domain| Budgets {
        domain,
        ..Budgets::default()
    };
    for (budgets, wanted, word) in [
        (host(pages(2)), 4, "2 pages for h"),
        (domain(pages(5)), 5, "5 pages for dom"),
        // The answer that passes the mark is the last.
        (host(bytes(2500)), 6, "2500 bytes for h"),
        (domain(bytes(3500)), 4, "3500 bytes for dom"),
        (host(time(25)), 5, "0 seconds for h"),
        (domain(time(35)), 5, "0 seconds for dom"),
    ] {
        let (count, index, _dir) = handed_out(budgets, 1000);
        assert_eq!(count, wanted, "{budgets:?}");
        let said = index.reader().entries().any(|entry| {
            let reason = entry.unwrap().fate.unwrap().report.outcome.reason;
            reason.contains(word)
        });
        assert!(said, "{word}");
    }
}

#[test]
fn a_spent_page_budget_lets_known_pages_be_visited_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = IndexOptions {
        seed: SEED,
        budgets: pages(1),
        recrawl: true,
        ..IndexOptions::default()
    };
    let mut index = open_with(dir.path(), options);
    let both = vec![link("http://a/1", 0), link("http://a/2", 0)];
    index.apply([links(both)]).unwrap();
    assert_eq!(index.candidates(&want(9), at(2)).unwrap().len(), 1);
    index.apply([visit("http://a/1", 1, 500)]).unwrap();
    assert!(index.candidates(&want(9), at(3)).unwrap().is_empty());
    assert_eq!(class_of(&index, "http://a/2"), OutcomeClass::DeniedPolicy);
    let again = index.candidates(&want(9), at(500)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    sound(&index);
}

#[test]
fn a_seed_whose_server_was_away_is_asked_for_again_and_one_that_was_answered_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let because = |class, reason: &str| Report {
        outcome: Outcome::because(class, reason),
        ip: None,
        ..report(class)
    };
    let cases = [
        (
            "http://a/",
            because(OutcomeClass::FailedConnect, "refused"),
            true,
        ),
        (
            "http://b/",
            because(OutcomeClass::DeniedRobots, "robots.txt: status 503"),
            true,
        ),
        (
            "http://c/",
            because(OutcomeClass::DeniedRobots, "robots.txt: Disallow: /"),
            false,
        ),
        ("http://d/", report(OutcomeClass::Success), false),
        ("http://e/", report(OutcomeClass::HttpError), false),
        (
            "http://f/",
            because(OutcomeClass::FailedDns, "no such name"),
            true,
        ),
    ];
    let seeds = || {
        let named = cases.iter().map(|(text, ..)| {
            let mut named = link(text, 0);
            named.link.kind = LinkKind::Seed;
            named
        });
        links(named.collect())
    };
    index.apply([seeds()]).unwrap();
    index.candidates(&want(20), at(2)).unwrap();
    for (text, report, _) in &cases {
        let over = match report.outcome.reason.ends_with("503") {
            true => denied(text, 500),
            false => done(text, report.clone(), vec![]),
        };
        index.apply([over]).unwrap();
    }
    sound(&index);
    index.apply([seeds()]).unwrap();
    sound(&index);
    let again = index.candidates(&want(20), at(3)).unwrap();
    let mut again = names(&again);
    again.sort_unstable();
    let wanted = cases.iter().filter(|case| case.2).map(|case| case.0);
    assert_eq!(again, wanted.collect::<Vec<_>>());
    sound(&index);
}

#[test]
fn hosts_of_one_domain_share_its_budget_also_within_one_hand_out() {
    let dir = tempfile::tempdir().unwrap();
    let domain = Budget {
        pages: 7,
        ..Budget::default()
    };
    let options = IndexOptions {
        seed: SEED,
        budgets: Budgets {
            domain,
            ..Budgets::default()
        },
        domain_of: |_| "all",
        ..IndexOptions::default()
    };
    let mut index = open_with(dir.path(), options);
    let found = (0..40).map(|n| link(&format!("http://h{}/{n}", n % 4), 0));
    index.apply([links(found.collect())]).unwrap();
    assert_eq!(index.candidates(&want(40), at(2)).unwrap().len(), 7);
    assert!(index.candidates(&want(40), at(2)).unwrap().is_empty());
    sound(&index);
}

/// The newest capture of a URL is found with its record, whatever the attempts after it come to.
#[test]
fn the_place_of_the_newest_capture_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    let kept = |index: &DocIndex| {
        let entry = index.reader().entry(key("http://a/1")).unwrap().unwrap();
        entry.fate.unwrap().capture
    };
    let place = |offset| Some(CapturePlace { file: 3, offset });
    let archived = |offset, position| {
        let place = CapturePlace { file: 3, offset };
        Some(Archived { place, position })
    };
    let attempt = |archived, due| Event::Retry {
        key: key("http://a/1"),
        report: report(OutcomeClass::Deferred),
        due: at(due),
        archived,
    };
    assert_eq!(index.followed(), None);
    index.candidates(&want(1), at(1)).unwrap();
    index.apply([attempt(archived(10, 7), 20)]).unwrap();
    assert_eq!(kept(&index), place(10), "an answer that asks to wait");
    index.candidates(&want(1), at(20)).unwrap();
    index.apply([attempt(None, 30)]).unwrap();
    assert_eq!(kept(&index), place(10), "nothing was archived");
    index.candidates(&want(1), at(30)).unwrap();
    let mut event = visit("http://a/1", 1, 100);
    if let Event::Done { archived: kept, .. } = &mut event {
        *kept = archived(20, 9);
    }
    index.apply([event.clone()]).unwrap();
    assert_eq!(kept(&index), place(20));
    assert_eq!(index.followed(), Some(9));
    // What is known already changes nothing, but its result is folded.
    if let Event::Done { archived: kept, .. } = &mut event {
        *kept = archived(30, 8);
    }
    index.apply([event]).unwrap();
    assert_eq!(kept(&index), place(20));
    assert_eq!(index.reader().followed().unwrap(), Some(8), "as it is told");
    assert_eq!(index.candidates(&want(1), at(100)).unwrap().len(), 1);
    let mut same = visit("http://a/1", 2, 200);
    if let Event::Done {
        report,
        archived: kept,
        ..
    } = &mut same
    {
        report.status = Some(304);
        *kept = archived(40, 10);
    }
    index.apply([same]).unwrap();
    assert_eq!(kept(&index), place(20), "the document is in the one before");
    assert_eq!(index.followed(), Some(10));
    assert_eq!(index.candidates(&want(1), at(200)).unwrap().len(), 1);
    index.apply([denied("http://a/1", 500)]).unwrap();
    assert_eq!(kept(&index), place(20), "nobody was asked");
}
