//! What the tests of the doc index share: short names for URLs, links, reports and events.

use std::collections::HashSet;
use std::path::Path;

use orbweaver_docindex::{Budget, Budgets, DocIndex, IndexOptions, Wanted, check};
use orbweaver_model::{
    Candidate, ChangeRate, CrawlUrl, Event, KeySeed, Link, LinkKind, NewLink, Outcome,
    OutcomeClass, Report, Revisit, Timestamp, UrlKey,
};

pub(crate) const SEED: KeySeed = KeySeed(42);

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn url(text: &str) -> CrawlUrl {
    CrawlUrl::from_canonical(text).unwrap()
}

pub(crate) fn key(text: &str) -> UrlKey {
    url(text).key(SEED)
}

pub(crate) fn link(text: &str, depth: u16) -> NewLink {
    let link = Link {
        url: url(text),
        kind: LinkKind::A,
        depth,
        priority: 16,
        via: None,
        chain: Vec::new(),
    };
    NewLink {
        link,
        refused: None,
    }
}

pub(crate) fn redirect(text: &str, chain: &[&str]) -> NewLink {
    let mut new = link(text, 0);
    new.link.kind = LinkKind::Redirect;
    new.link.chain = chain.iter().map(|hop| key(hop)).collect();
    new
}

pub(crate) fn refused(text: &str, reason: &str) -> NewLink {
    NewLink {
        refused: Some(Outcome::because(OutcomeClass::DeniedPolicy, reason)),
        ..link(text, 1)
    }
}

pub(crate) fn report(class: OutcomeClass) -> Report {
    Report {
        outcome: Outcome::plain(class),
        status: Some(200),
        ip: Some([127, 0, 0, 1].into()),
        bytes: 1000,
        millis: 5,
        at: at(10),
        redirect: None,
    }
}

pub(crate) fn redirects_to(target: &str) -> Report {
    Report {
        redirect: Some(target.into()),
        ..report(OutcomeClass::RedirectFollowed)
    }
}

pub(crate) fn links(list: Vec<NewLink>) -> Event {
    Event::Links {
        links: list,
        at: at(1),
    }
}

pub(crate) fn done(text: &str, report: Report, links: Vec<NewLink>) -> Event {
    Event::Done {
        key: key(text),
        report,
        links,
        revisit: None,
        archived: None,
    }
}

/// Budgets that only limit the pages of a host.
pub(crate) fn pages(pages: u32) -> Budgets {
    let host = Budget {
        pages,
        ..Budget::default()
    };
    Budgets {
        host,
        ..Budgets::default()
    }
}

pub(crate) fn open(dir: &Path) -> DocIndex {
    open_with(
        dir,
        IndexOptions {
            seed: SEED,
            ..IndexOptions::default()
        },
    )
}

pub(crate) fn open_with(dir: &Path, options: IndexOptions) -> DocIndex {
    DocIndex::open(dir, options, at(0)).unwrap()
}

pub(crate) fn want(urls: usize) -> Wanted {
    Wanted {
        urls,
        per_host: 100,
        reject: HashSet::new(),
    }
}

pub(crate) fn names(candidates: &[Candidate]) -> Vec<&str> {
    candidates
        .iter()
        .map(|candidate| candidate.url.as_str())
        .collect()
}

pub(crate) fn sound(index: &DocIndex) {
    let mut findings = Vec::new();
    check(&index.reader(), &mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, []);
}

pub(crate) fn class_of(index: &DocIndex, text: &str) -> OutcomeClass {
    index
        .reader()
        .entry(key(text))
        .unwrap()
        .unwrap()
        .fate
        .unwrap()
        .report
        .outcome
        .class
}

/// What a visit leaves.
pub(crate) fn visited(visits: u32, due: Option<Timestamp>) -> Option<Box<Revisit>> {
    Some(Box::new(Revisit {
        visits,
        rate: ChangeRate::default(),
        seen: at(10),
        captured: at(10),
        digest: 7,
        length: None,
        etag: Some("\"tag\"".into()),
        last_modified: None,
        due,
    }))
}

/// A document that is to be visited again.
pub(crate) fn visit(text: &str, visits: u32, due: u64) -> Event {
    Event::Done {
        key: key(text),
        report: report(OutcomeClass::Success),
        links: vec![],
        revisit: visited(visits, Some(at(due))),
        archived: None,
    }
}

/// A URL whose robots.txt could not be had, and that gets another chance at `again`.
pub(crate) fn denied(text: &str, again: u64) -> Event {
    let outcome = Outcome::because(OutcomeClass::DeniedRobots, "robots.txt: status 503");
    Event::Done {
        key: key(text),
        report: Report::unasked(outcome, at(10)),
        links: vec![],
        revisit: Some(Box::new(Revisit {
            due: Some(at(again)),
            ..Revisit::unvisited(at(10))
        })),
        archived: None,
    }
}
