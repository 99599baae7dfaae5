//! robots.txt files as they are found, and the matcher held against the obvious one.

use std::time::Duration;

use proptest::prelude::*;

use super::{RECOMMENDED_BYTES, Robots, Rule, pattern};

fn read(body: &str) -> Robots {
    Robots::parse(body.as_bytes(), "orbweaver", RECOMMENDED_BYTES)
}

fn rule(robots: &Robots, target: &str) -> Option<String> {
    robots.verdict(target).rule.map(|rule| rule.to_string())
}

#[test]
fn the_line_that_decided_is_named() {
    let robots = read("User-agent: *\nDisallow: /private/\nAllow: /private/open\n");
    let denied = robots.verdict("/private/x");
    assert!(!denied.allowed);
    assert_eq!(
        denied.rule.map(|r| r.to_string()).as_deref(),
        Some("Disallow: /private/")
    );
    assert_eq!(
        rule(&robots, "/private/open/1").as_deref(),
        Some("Allow: /private/open")
    );
    assert_eq!(rule(&robots, "/else"), None);
    assert!(robots.verdict("/robots.txt").allowed);
}

/// Pattern, targets that match, targets that do not: the path examples that RFC 9309 and Google's
/// description of the format give in their own words.
const PATHS: &[(&str, &[&str], &[&str])] = &[
    ("/", &["/", "/any?x=1"], &[]),
    ("/*", &["/", "/any"], &[]),
    ("/$", &["/"], &["/any", "/?x"]),
    (
        "/fish",
        &[
            "/fish",
            "/fish.html",
            "/fish/salmon.html",
            "/fishheads",
            "/fish.php?id=1",
        ],
        &["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish*",
        &["/fish", "/fishheads/yummy.html"],
        &["/Fish", "/catfish"],
    ),
    (
        "/fish/",
        &["/fish/", "/fish/?id=1", "/fish/salmon.htm"],
        &["/fish", "/fish.html", "/animals/fish/"],
    ),
    (
        "/*.php",
        &["/index.php", "/a/b.php?c=d", "/x.php5", "/y.php/"],
        &["/", "/windows.PHP"],
    ),
    (
        "/*.php$",
        &["/filename.php", "/folder/filename.php"],
        &["/filename.php?x", "/filename.php/", "/filename.php5"],
    ),
    (
        "/fish*.php",
        &["/fish.php", "/fishheads/catfish.php?x=y"],
        &["/Fish.PHP"],
    ),
    ("*gif$", &["/a.gif", "/b/c.gif"], &["/a.gif?x"]),
    ("/a$b", &["/a$b", "/a$bc"], &["/ab", "/a"]),
    ("/a%24$", &["/a$"], &["/a$b", "/a"]),
    (
        "/file-with-a-%2A.html",
        &["/file-with-a-*.html"],
        &["/file-with-a-x.html"],
    ),
    (
        "/foo/bar?baz=quz",
        &["/foo/bar?baz=quz&more"],
        &["/foo/bar?baz=qu"],
    ),
    (
        "/foo/bar/ツ",
        &["/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"],
        &["/foo/bar/"],
    ),
    (
        "/foo/bar/%e3%83%84",
        &["/foo/bar/%E3%83%84"],
        &["/foo/bar/%E3%83%85"],
    ),
    (
        "/foo/bar/%62%61%7A",
        &["/foo/bar/baz", "/foo/bar/b%61z"],
        &["/foo/bar/b%2Fz"],
    ),
    ("/a%2fb", &["/a%2Fb"], &["/a/b"]),
    ("/a b", &["/a%20b"], &["/a+b"]),
    ("/100%", &["/100%25", "/100%"], &["/100"]),
    ("nothing", &["/nothing", "/nothing/x"], &["/x/nothing"]),
    ("/**a**b$", &["/ab", "/xaxxb"], &["/ba", "/abx"]),
];

#[test]
fn documented_paths() {
    for (pattern, matching, others) in PATHS {
        let robots = read(&format!("User-agent: *\nDisallow: {pattern}\n"));
        for target in *matching {
            assert!(
                !robots.verdict(target).allowed,
                "{pattern} must match {target}"
            );
        }
        for target in *others {
            assert!(
                robots.verdict(target).allowed,
                "{pattern} must not match {target}"
            );
        }
    }
}

#[test]
fn the_longest_pattern_wins_and_allow_wins_ties() {
    for (rules, target, allowed) in [
        ("Allow: /p\nDisallow: /", "/page", true),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", true),
        ("Disallow: /folder\nAllow: /folder", "/folder/page", true),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", false),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", true),
        ("Allow: /$\nDisallow: /", "/", true),
        ("Allow: /$\nDisallow: /", "/page.htm", false),
        (
            "Allow: /example/page/\nDisallow: /example/page/disallowed.gif",
            "/example/page/disallowed.gif",
            false,
        ),
    ] {
        let robots = read(&format!("User-agent: *\n{rules}\n"));
        assert_eq!(
            robots.verdict(target).allowed,
            allowed,
            "{rules} on {target}"
        );
    }
}

#[test]
fn groups() {
    let deny = |body: &str| !read(body).verdict("/x").allowed;
    let own = "User-agent: *\nDisallow: /\nUser-agent: orbweaver\nDisallow: /private\n";
    assert!(!deny(own), "a group for us replaces the one for everyone");
    assert!(
        deny("User-agent: *\nAllow: /y\nUser-agent: *\nDisallow: /x\n"),
        "groups are merged"
    );
    assert!(deny(
        "User-agent: ORBWEAVER\nDisallow: /y\n\nUser-agent: other\nDisallow:\nUser-agent: OrbWeaver/2.1 (x)\nDisallow: /x"
    ));
    assert!(
        deny("User-agent: other\nUser-agent: orbweaver\nDisallow: /"),
        "one group, two agents"
    );
    assert!(
        deny("User-agent: orbweaver\nSitemap: http://s/\nUser-agent: other\nDisallow: /"),
        "a sitemap ends no group"
    );
    assert!(
        deny("User-agent: orbweaver\nCrawl-delay: 1\nUser-agent: other\nDisallow: /"),
        "nor does a delay"
    );
    assert!(
        !deny("User-agent: orbweaver\nDisallow:\nUser-agent: *\nDisallow: /"),
        "an empty group is a group"
    );
    assert!(
        !deny("User-agent: orbweavers\nDisallow: /"),
        "a longer name is another name"
    );
    assert!(!deny("User-agent: orb\nDisallow: /"), "so is a shorter one");
    assert!(
        !deny("Disallow: /\nUser-agent: *\nAllow: /y"),
        "a rule before any group is no rule"
    );
    assert!(deny("User-agent: * # everyone\nDisallow: /"));
    assert!(!deny("User-agent: *bot\nDisallow: /"));
    assert!(!deny("User-agent:\nDisallow: /"));
}

#[test]
fn lines_in_every_spelling() {
    for body in [
        "\u{feff}User-agent: *\nDisallow: /x",
        "User-agent: *\rDisallow: /x\r",
        "User-agent: *\r\nDisallow: /x\r\n",
        "USER-AGENT:*\n  dIsAlLoW  :  /x  # why\n",
        "user agent: *\ndisalow: /x",
        "useragent *\nDisallow /x",
        "User-agent: *\nDiasllow: /x\0Allow: /xx",
        "junk\n<html>\nUser-agent: *\nnonsense: 1\nDisallow: /x",
    ] {
        assert!(!read(body).verdict("/x").allowed, "{body:?}");
    }
    for body in [
        "",
        "\0\0\0",
        "<!DOCTYPE html><html><head><title>Not found</title></head><body>Disallow: everything</body></html>",
        "User-agent: *\nDisallow:\n",
        "User-agent: *\nDisallow: # nothing\n",
        "User-agent: *\nAlow: /\nDisallow this page please\n",
        "User-agent: *\nAllow: /\n",
    ] {
        let robots = read(body);
        assert!(robots.verdict("/x").allowed, "{body:?}");
        assert_eq!(
            robots.heap_bytes(),
            0,
            "an allow-all costs nothing: {body:?}"
        );
    }
}

#[test]
fn a_long_file_is_cut_at_a_line_end() {
    let parse = |body: &str| Robots::parse(body.as_bytes(), "orbweaver", 40);
    let body = "User-agent: *\nDisallow: /a\nDisallow: /bcdef\n";
    assert!(body.len() > 40);
    let robots = parse(body);
    assert!(!robots.verdict("/a").allowed);
    assert!(
        robots.verdict("/b").allowed,
        "half a line must not become a rule of its own"
    );
    assert!(parse(&"x".repeat(100)).verdict("/").allowed);
}

#[test]
fn delays() {
    let delay = |value: &str| read(&format!("User-agent: *\nCrawl-delay: {value}\n")).crawl_delay();
    assert_eq!(delay("3"), Some(Duration::from_secs(3)));
    assert_eq!(delay("0.5"), Some(Duration::from_millis(500)));
    assert_eq!(delay("99999999"), Some(Duration::from_secs(99_999_999)));
    assert_eq!(delay("1e300"), Some(Duration::MAX), "more than can be held");
    for garbage in ["-5", "NaN", "1e999", "inf", "ten", "", "3 s"] {
        assert_eq!(delay(garbage), None, "{garbage}");
    }
    let ours = read(
        "User-agent: orbweaver\nCrawl-delay: 2\nUser-agent: *\nDisallow: /x\nCrawl-delay: 9\n",
    );
    assert_eq!(
        ours.crawl_delay(),
        Some(Duration::from_secs(9)),
        "a delay ends no group, the rule does"
    );
}

#[test]
fn sitemaps_belong_to_no_group() {
    let mut robots = read(
        "Sitemap: https://a.example/s.xml\nUser-agent: other\nDisallow: /\nSITE-MAP: /rel.xml\n",
    );
    assert_eq!(
        robots.sitemaps(),
        [Box::from("https://a.example/s.xml"), Box::from("/rel.xml")]
    );
    assert_eq!(robots.take_sitemaps().len(), 2);
    assert_eq!(robots.heap_bytes(), 0);
}

#[test]
fn most_files_are_small_in_memory() {
    let mut body = String::from("User-agent: *\n");
    for n in 0..30 {
        body.push_str(&format!("Disallow: /directory-{n}/\n"));
    }
    assert!(read(&body).heap_bytes() < 700);
}

#[test]
fn sixty_stars_do_not_blow_up() {
    let stars = "a*".repeat(60);
    let robots = read(&format!("User-agent: *\nDisallow: /{stars}b$\n"));
    // A matcher that backtracks would need more steps than there are atoms.
    assert!(robots.verdict(&format!("/{}", "a".repeat(8000))).allowed);
    assert!(!robots.verdict(&format!("/{}b", "a".repeat(8000))).allowed);
}

/// Files as large as they may be, of one kind of pattern each: the cost of a verdict does not follow their number.
#[test]
fn a_verdict_costs_the_same_with_many_rules_as_with_few() {
    type Kind = fn(usize) -> String;
    let kinds: [(Kind, &str); 7] = [
        (|n| format!("/p{n:05}"), "/p02345/x"),
        (|n| format!("/*{n:05}x"), "/a/02345x"),
        (|n| format!("/*/{n:05}$"), "/a/02345"),
        (|n| format!("/{n:05}*a"), "/02345/a"),
        (|n| format!("/{n:05}$"), "/02345"),
        (|n| format!("/*secret*{n:05}"), "/secret/02345"),
        (|n| format!("/{n:05}*"), "/02345"),
    ];
    for (kind, target) in kinds {
        let cost = |count: usize| {
            let mut body = String::from("User-agent: *\n");
            for n in 0..count {
                body.push_str(&format!("Disallow: {}\n", kind(n * 5)));
            }
            let robots = Robots::parse(body.as_bytes(), "orbweaver", usize::MAX);
            assert!(robots.heap_bytes() < 3 * body.len(), "{}", kind(0));
            let (verdict, hit) = robots.weighed_verdict(target);
            let rule = verdict.rule.unwrap().pattern;
            assert!(!verdict.allowed && rule.contains("02345"), "{rule}");
            let (verdict, miss) = robots.weighed_verdict("/nothing/of/the/kind/02341");
            assert!(verdict.allowed);
            hit.max(miss)
        };
        let (few, many) = (cost(1000), cost(20_000));
        assert!(many < 2 * few, "{}: {few} and {many}", kind(0));
    }
}

/// The definition of a match, tried in every way.
fn slow_match(pattern: &[u8], target: &[u8]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((b'$', [])) => target.is_empty(),
        Some((b'*', rest)) => (0..=target.len()).any(|skip| slow_match(rest, &target[skip..])),
        Some((byte, rest)) => target.first() == Some(byte) && slow_match(rest, &target[1..]),
    }
}

/// The definition of a verdict: every rule is tried.
fn slow_verdict<'a>(robots: &'a Robots, target: &str) -> Option<Rule<'a>> {
    let target = pattern::normalise_target(target);
    let matching = robots
        .rules
        .iter()
        .filter(|rule| pattern::matches(rule.pattern.as_bytes(), target.as_bytes()));
    matching.reduce(|best, rule| {
        if rule.decides_before(best) {
            rule
        } else {
            best
        }
    })
}

/// Short pieces of few letters, so that patterns share beginnings, match often, and are of equal length; some of them
/// long enough to be found by four bytes.
fn many_rules() -> impl Strategy<Value = Vec<(bool, String)>> {
    let pattern = prop_oneof![
        "/[ab]{0,9}",
        "/[ab*]{0,7}[$]?",
        "[*][ab]{1,6}[$]?",
        "/(abba|bab|b)[*](aabb|a)[*]?[ab]{0,5}[$]?",
        "/[ab]{4,8}[$]",
        "/[ab]{1,3}[*]{1,3}[$]?",
        "/[ab%*$é]{0,5}",
    ];
    proptest::collection::vec((any::<bool>(), pattern), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// However the rules are laid out, the one decides that decides when all are tried.
    #[test]
    fn a_verdict_is_what_trying_every_rule_gives(
        rules in many_rules(),
        targets in proptest::collection::vec("/[ab]{0,14}([%$*é?][ab]{0,4})?", 1..40),
    ) {
        let mut body = String::from("User-agent: *\n");
        for (allow, pattern) in &rules {
            body.push_str(&format!("{}: {pattern}\n", if *allow { "Allow" } else { "Disallow" }));
        }
        let robots = read(&body);
        for target in &targets {
            let verdict = robots.verdict(target);
            let slow = slow_verdict(&robots, target);
            prop_assert_eq!(verdict.rule, slow, "{} on {}", body, target);
            prop_assert_eq!(verdict.allowed, slow.is_none_or(|rule| rule.allow));
        }
    }

    #[test]
    fn matching_is_what_the_definition_says(pattern in "/[ab*]{0,8}[$]?", target in "/[ab]{0,10}") {
        prop_assert_eq!(
            pattern::matches(pattern.as_bytes(), target.as_bytes()),
            slow_match(pattern.as_bytes(), target.as_bytes())
        );
    }

    #[test]
    fn any_bytes_are_a_robots_txt(body in proptest::collection::vec(any::<u8>(), 0..400), target in "/[ -~]{0,40}") {
        let robots = Robots::parse(&body, "orbweaver", RECOMMENDED_BYTES);
        robots.verdict(&target);
    }

    #[test]
    fn normalising_twice_is_normalising_once(target in "/[ -~]{0,40}") {
        let once = pattern::normalise_target(&target).into_owned();
        prop_assert_eq!(pattern::normalise_target(&once).into_owned(), once);
    }
}
