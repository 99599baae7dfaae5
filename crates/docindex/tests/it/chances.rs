//! URLs that were refused because their robots.txt could not be had: finished, and queued again when their time
//! has come, whether the crawl visits pages again or not.

use std::path::Path;
use std::time::Duration;

use orbweaver_docindex::{DocIndex, IndexOptions};
use orbweaver_model::{Column, Event, OutcomeClass, RecrawlBounds, Report};

use crate::support::*;

fn forever(dir: &Path) -> DocIndex {
    let options = IndexOptions {
        seed: SEED,
        recrawl: true,
        ..IndexOptions::default()
    };
    open_with(dir, options)
}

/// An index in which these URLs have been handed out.
fn handed_out(index: &mut DocIndex, urls: &[&str]) {
    let found = urls.iter().map(|text| link(text, 0)).collect();
    index.apply([links(found)]).unwrap();
    let given = index.candidates(&want(100), at(2)).unwrap();
    assert_eq!(given.len(), urls.len());
}

#[test]
fn a_refused_url_is_finished_until_its_time_has_come() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    handed_out(&mut index, &["http://a/1", "http://a/2", "http://b/1"]);
    let over = done("http://b/1", report(OutcomeClass::Success), vec![]);
    index
        .apply([denied("http://a/1", 500), denied("http://a/2", 700), over])
        .unwrap();
    sound(&index);
    assert_eq!(index.ledger().queued, 0);
    assert_eq!(index.ledger().class(OutcomeClass::DeniedRobots), 2);
    // Nobody stays up for it.
    assert_eq!((index.next_due(), index.next_chance(at(400))), (None, None));
    assert!(index.candidates(&want(9), at(499)).unwrap().is_empty());
    let again = index.candidates(&want(9), at(500)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    assert_eq!((again[0].attempts, &again[0].revisit), (0, &None));
    assert_eq!(index.ledger().queued, 1);
    assert_eq!(index.ledger().column(Column::Refused), 1);
    sound(&index);
    // A kill while it is out brings it back, not twice; and the other one in its time.
    drop(index);
    let mut index = open(dir.path());
    let again = index.candidates(&want(9), at(600)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    index.apply([denied("http://a/1", 1400)]).unwrap();
    sound(&index);
    let again = index.candidates(&want(9), at(700)).unwrap();
    assert_eq!(names(&again), ["http://a/2"]);
    let over = done("http://a/2", report(OutcomeClass::Success), vec![]);
    index.apply([over]).unwrap();
    assert!(index.candidates(&want(9), at(1399)).unwrap().is_empty());
    drop(index);
    let mut index = open(dir.path());
    let again = index.candidates(&want(9), at(9999)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    let over = done("http://a/1", report(OutcomeClass::Success), vec![]);
    index.apply([over]).unwrap();
    assert!(index.candidates(&want(9), at(99_999)).unwrap().is_empty());
    assert_eq!(index.ledger().column(Column::Done), 3);
    assert_eq!(index.ledger().pages, 3);
    sound(&index);
}

#[test]
fn a_crawl_that_goes_on_for_ever_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    handed_out(&mut index, &["http://a/1"]);
    index.apply([denied("http://a/1", 500)]).unwrap();
    assert_eq!(index.next_chance(at(400)), Some(at(500)));
    let again = index.candidates(&want(9), at(500)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
}

#[test]
fn a_page_that_was_visited_before_comes_back_with_what_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    handed_out(&mut index, &["http://a/1"]);
    index.apply([visit("http://a/1", 1, 500)]).unwrap();
    index.candidates(&want(9), at(500)).unwrap();
    let Event::Done { key, report, .. } = denied("http://a/1", 900) else {
        unreachable!();
    };
    let refused = Event::Done {
        key,
        report,
        links: vec![],
        revisit: visited(1, Some(at(900))),
        archived: None,
    };
    index.apply([refused]).unwrap();
    sound(&index);
    assert!(index.candidates(&want(9), at(899)).unwrap().is_empty());
    let again = index.candidates(&want(9), at(900)).unwrap();
    assert!(again[0].revisit.as_ref().unwrap().etag.is_some());
    index.apply([visit("http://a/1", 2, 2000)]).unwrap();
    assert_eq!(index.ledger().pages, 1);
    sound(&index);
}

#[test]
fn plans_for_visits_leave_it_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = forever(dir.path());
    let bounds = RecrawlBounds {
        min: Duration::from_millis(1000),
        max: Duration::from_millis(1000),
    };
    index.plan_visits(Some(bounds)).unwrap();
    handed_out(&mut index, &["http://a/1", "http://a/2", "http://a/3"]);
    let failed = Report {
        at: at(10),
        ..report(OutcomeClass::FailedTimeout)
    };
    let failed = Event::Done {
        key: key("http://a/3"),
        report: failed,
        links: vec![],
        revisit: visited(1, Some(at(1010))),
        archived: None,
    };
    let over = [
        denied("http://a/1", 500),
        visit("http://a/2", 1, 1010),
        failed,
    ];
    index.apply(over).unwrap();
    drop(index);
    // A crawl that ends calls the visits off, and not the other chance.
    let mut index = open(dir.path());
    index.plan_visits(None).unwrap();
    sound(&index);
    let again = index.candidates(&want(9), at(5000)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    index.apply([denied("http://a/1", 9000)]).unwrap();
    assert!(index.candidates(&want(9), at(5000)).unwrap().is_empty());
    drop(index);
    // They are planned again, and the other chance stays where it is.
    let options = IndexOptions {
        seed: SEED,
        recrawl: true,
        ..IndexOptions::default()
    };
    let mut index = DocIndex::open(dir.path(), options, at(5000)).unwrap();
    assert_eq!(index.plan_visits(Some(bounds)).unwrap(), 2);
    sound(&index);
    let again = index.candidates(&want(9), at(5000)).unwrap();
    assert_eq!(names(&again), ["http://a/2", "http://a/3"]);
    let again = index.candidates(&want(9), at(9000)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    sound(&index);
}

#[test]
fn a_spent_budget_leaves_it_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = IndexOptions {
        seed: SEED,
        budgets: pages(1),
        ..IndexOptions::default()
    };
    let mut index = open_with(dir.path(), options);
    let found = vec![
        link("http://a/1", 0),
        link("http://a/2", 1),
        link("http://a/3", 2),
    ];
    index.apply([links(found)]).unwrap();
    index.candidates(&want(9), at(2)).unwrap();
    index.apply([denied("http://a/1", 500)]).unwrap();
    index.candidates(&want(9), at(3)).unwrap();
    let over = done("http://a/2", report(OutcomeClass::Success), vec![]);
    index.apply([over]).unwrap();
    assert!(index.candidates(&want(9), at(4)).unwrap().is_empty());
    assert!(index.candidates(&want(9), at(500)).unwrap().is_empty());
    assert_eq!(class_of(&index, "http://a/1"), OutcomeClass::DeniedRobots);
    assert_eq!(class_of(&index, "http://a/3"), OutcomeClass::DeniedPolicy);
    assert_eq!(index.ledger().queued, 0);
    sound(&index);
}

#[test]
fn a_clock_that_is_set_back_does_not_put_it_off() {
    let dir = tempfile::tempdir().unwrap();
    let year = 365 * 86_400_000;
    let options = || IndexOptions {
        seed: SEED,
        ..IndexOptions::default()
    };
    let mut index = DocIndex::open(dir.path(), options(), at(year)).unwrap();
    index.apply([links(vec![link("http://a/1", 0)])]).unwrap();
    index.candidates(&want(9), at(year)).unwrap();
    index.apply([denied("http://a/1", year + 600_000)]).unwrap();
    drop(index);
    let mut index = DocIndex::open(dir.path(), options(), at(50_000)).unwrap();
    sound(&index);
    assert!(index.candidates(&want(9), at(649_999)).unwrap().is_empty());
    let again = index.candidates(&want(9), at(650_000)).unwrap();
    assert_eq!(names(&again), ["http://a/1"]);
    sound(&index);
}

/// Many more than go back to the queue in one commit.
#[test]
fn ten_thousand_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let urls: Vec<String> = (0..10_000).map(|n| format!("http://a/{n}")).collect();
    let found = urls.iter().map(|text| link(text, 0)).collect();
    index.apply([links(found)]).unwrap();
    let all = orbweaver_docindex::Wanted {
        per_host: 20_000,
        ..want(20_000)
    };
    assert_eq!(index.candidates(&all, at(2)).unwrap().len(), 10_000);
    index
        .apply(urls.iter().map(|text| denied(text, 500)))
        .unwrap();
    let mut again = 0;
    for _ in 0..3 {
        again += index.candidates(&all, at(500)).unwrap().len();
    }
    assert_eq!(again, 10_000);
    sound(&index);
}
