//! What an origin makes of its robots.txt, state by state.

use orbweaver_testkit::candidate;

use super::*;

const HTTP: Door = (Scheme::Http, 80);
const CAP: Duration = Duration::from_secs(300);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn judge(origins: &mut Origins, url: &str, recalls: bool, now: Timestamp) -> Judgement {
    origins.judge(&"a".into(), candidate(url), recalls, &mut 0, now)
}

fn rules(body: &str) -> Robots {
    Robots::parse(body.as_bytes(), "orbweaver", usize::MAX)
}

/// Rules that are worth giving up.
fn heavy() -> Robots {
    let body = (0..500).fold("User-agent: *\n".to_owned(), |body, line| {
        body + &format!("Disallow: /no/{line}\n")
    });
    rules(&body)
}

#[test]
fn the_first_url_asks_and_the_others_wait_with_it() {
    let mut origins = Origins::default();
    let Judgement::Parked(Some(job)) = judge(&mut origins, "http://a/1", false, at(0)) else {
        panic!("the file is to be asked for");
    };
    assert_eq!(job.url.as_str(), "http://a/robots.txt");
    assert!(matches!(
        judge(&mut origins, "http://a/2", false, at(0)),
        Judgement::Parked(None)
    ));
    assert!(matches!(
        judge(&mut origins, "http://a:81/", false, at(0)),
        Judgement::Parked(Some(_))
    ));
    assert_eq!(origins.parked(), 3);
    assert!(!origins.all_wait_at(HTTP), "one waits for another file");
    origins.know(HTTP, rules("User-agent: *\nDisallow: /2\n"), CAP, at(10));
    assert_eq!(origins.take_parked(HTTP).len(), 2);
    assert_eq!(origins.parked(), 1);
    assert!(matches!(
        judge(&mut origins, "http://a/1", false, at(9)),
        Judgement::Allowed(_, until) if until == at(10)
    ));
    assert!(matches!(
        judge(&mut origins, "http://a/2", false, at(9)),
        Judgement::Denied(_, _, None)
    ));
    assert!(matches!(
        judge(&mut origins, "http://a/1", false, at(10)),
        Judgement::Parked(Some(_))
    ));
    let mut all = Vec::new();
    origins.take_all_parked(&mut all);
    assert_eq!((all.len(), origins.parked()), (2, 0));
}

/// What allows everything is known without its rules; when rules come, that is over.
#[test]
fn an_allow_all_ends_when_rules_come() {
    let mut origins = Origins::default();
    origins.know(HTTP, Robots::default(), CAP, at(10));
    assert!(matches!(
        judge(&mut origins, "http://a/x", false, at(0)),
        Judgement::Allowed(..)
    ));
    origins.know(HTTP, rules("User-agent: *\nDisallow: /\n"), CAP, at(10));
    assert!(matches!(
        judge(&mut origins, "http://a/x", false, at(0)),
        Judgement::Denied(..)
    ));
}

#[test]
fn failed_attempts_rest_and_then_deny() {
    let mut origins = Origins::default();
    judge(&mut origins, "http://a/1", false, at(0));
    origins.rest(HTTP, at(5), 1);
    assert!(origins.due(&"a".into(), at(4)).is_empty());
    let due = origins.due(&"a".into(), at(5));
    assert_eq!((due.len(), due[0].attempts), (1, 1));
    assert!(
        origins.due(&"a".into(), at(5)).is_empty(),
        "it is asked for"
    );
    let outcome = Outcome::because(OutcomeClass::DeniedRobots, "down");
    origins.give_up(HTTP, outcome, at(60));
    assert_eq!(origins.outages(HTTP), 1);
    assert!(matches!(
        judge(&mut origins, "http://a/1", false, at(59)),
        Judgement::Denied(_, _, Some(until)) if until == at(60)
    ));
    origins.know(HTTP, Robots::default(), CAP, at(99));
    assert_eq!(origins.outages(HTTP), 0);
}

#[test]
fn rules_that_were_given_up_are_recalled_and_what_they_allowed_stays_allowed() {
    let mut origins = Origins::default();
    for url in ["http://a/yes", "http://a/no/7"] {
        judge(&mut origins, url, false, at(0));
    }
    origins.know(HTTP, heavy(), CAP, at(99));
    let denied = origins.shed(HTTP, HashSet::default());
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0].0.url.as_str(), "http://a/no/7");
    assert_eq!(origins.parked(), 1);
    assert!(origins.rules_bytes() <= 16);
    assert!(matches!(
        judge(&mut origins, "http://a/yes", false, at(1)),
        Judgement::Allowed(..)
    ));
    assert!(matches!(
        judge(&mut origins, "http://a/yes", false, at(1)),
        Judgement::Recalled(origin, true) if origin == "http://a"
    ));
    origins.know_again(HTTP, heavy(), CAP, at(99));
    assert!(matches!(
        judge(&mut origins, "http://a/no/9", false, at(1)),
        Judgement::Denied(..)
    ));
}

#[test]
fn the_server_is_asked_when_the_doc_index_has_nothing() {
    let mut origins = Origins::default();
    let url = candidate("http://a/1").url;
    assert!(matches!(
        judge(&mut origins, "http://a/1", true, at(0)),
        Judgement::Recalled(_, false)
    ));
    assert!(origins.ask_after_all(&"a".into(), &url).is_some());
    assert!(origins.ask_after_all(&"a".into(), &url).is_none());
    origins.forget_question(HTTP);
    assert!(matches!(
        judge(&mut origins, "http://a/1", false, at(0)),
        Judgement::Parked(Some(_))
    ));
}

#[test]
fn few_origins_are_remembered_that_nobody_waits_for() {
    let mut origins = Origins::default();
    for port in 1..500 {
        origins.know((Scheme::Http, port), Robots::default(), CAP, at(9));
    }
    assert_eq!(origins.all.len(), MAX_ORIGINS);
    for port in 1..200 {
        judge(
            &mut origins,
            &format!("http://b:{}/", port + 1000),
            false,
            at(0),
        );
    }
    assert_eq!(origins.parked(), 199, "those that are waited for all are");
}

#[test]
fn crawl_delays_are_capped() {
    let mut origins = Origins::default();
    assert_eq!(origins.crawl_delay(), None);
    let delay = |seconds| rules(&format!("User-agent: *\nCrawl-delay: {seconds}\n"));
    origins.know(HTTP, delay(7), CAP, at(9));
    origins.know((Scheme::Https, 443), delay(9000), CAP, at(9));
    assert_eq!(origins.crawl_delay(), Some(CAP));
}
