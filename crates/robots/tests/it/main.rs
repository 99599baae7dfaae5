//! The examples of RFC 9309, and the cases of Google's published parser and description, as tables. Where we
//! decide otherwise, the case stands under `OTHERWISE` with what we do; `docs/robots.md` says why.
//!
//! Files are written in our own words, with the structure of the originals.

#![allow(
    clippy::unwrap_used,
    reason = "a test that fails should panic and say where"
)]

use std::time::Duration;

use orbweaver_robots::{RECOMMENDED_BYTES, Robots};

/// A file, for whom it is read, and what it allows and denies.
struct Example {
    name: &'static str,
    file: &'static str,
    agent: &'static str,
    allowed: &'static [&'static str],
    denied: &'static [&'static str],
}

fn read(file: &[u8], agent: &str) -> Robots {
    Robots::parse(file, agent, RECOMMENDED_BYTES)
}

fn agree(examples: &[Example]) {
    for example in examples {
        let robots = read(example.file.as_bytes(), example.agent);
        for (targets, allowed) in [(example.allowed, true), (example.denied, false)] {
            for target in targets {
                assert_eq!(
                    robots.verdict(target).allowed,
                    allowed,
                    "{}: {target} for {}",
                    example.name,
                    example.agent
                );
            }
        }
    }
}

/// RFC 9309 section 5.1: a file with a group for everyone, one of exceptions, one for two crawlers, and one
/// without any rule.
const SECTION_5_1: &str = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
    User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
    User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
    User-Agent: quxbot\n";

const RFC_9309: &[Example] = &[
    Example {
        name: "5.1, everyone",
        file: SECTION_5_1,
        agent: "anybot",
        allowed: &["/", "/publications/", "/a.gif?size=1", "/example"],
        denied: &[
            "/example/",
            "/example/page.html",
            "/a.gif",
            "/publications.gif",
        ],
    },
    Example {
        name: "5.1, the longer pattern decides for a picture among the publications",
        file: SECTION_5_1,
        agent: "anybot",
        allowed: &["/publications/a.gif"],
        denied: &[],
    },
    Example {
        name: "5.1, exceptions",
        file: SECTION_5_1,
        agent: "foobot",
        allowed: &["/example/page.html", "/example/allowed.gif"],
        denied: &["/", "/example/", "/publications/", "/example/other.gif"],
    },
    Example {
        name: "5.1, the first of two",
        file: SECTION_5_1,
        agent: "barbot",
        allowed: &["/", "/example/", "/a.gif"],
        denied: &["/example/page.html"],
    },
    Example {
        name: "5.1, the second of two",
        file: SECTION_5_1,
        agent: "BazBot",
        allowed: &["/", "/example/", "/a.gif"],
        denied: &["/example/page.html"],
    },
    Example {
        name: "5.1, a group without rules",
        file: SECTION_5_1,
        agent: "quxbot",
        allowed: &["/", "/example/page.html", "/a.gif"],
        denied: &[],
    },
    Example {
        name: "5.2, the longest match",
        file: "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n",
        agent: "foobot",
        allowed: &["/example/page/", "/example/page/allowed.gif"],
        denied: &["/example/page/disallowed.gif"],
    },
    Example {
        name: "2.2.1, groups of one crawler are one group",
        file: "User-Agent: examplebot\nDisallow: /foo\nDisallow: /bar\n\nUser-Agent: ExampleBot\nDisallow: /baz\n",
        agent: "ExampleBot",
        allowed: &["/", "/qux"],
        denied: &["/foo", "/bar/1", "/baz"],
    },
    Example {
        name: "2.2.1, only without a group of its own a crawler is everyone",
        file: "User-Agent: *\nDisallow: /a\nUser-Agent: examplebot\nDisallow: /b\n",
        agent: "examplebot",
        allowed: &["/a"],
        denied: &["/b"],
    },
    Example {
        name: "2.2.1, no group at all",
        file: "User-Agent: other\nDisallow: /\n",
        agent: "examplebot",
        allowed: &["/", "/a"],
        denied: &[],
    },
    Example {
        name: "2.2.2, characters outside of ASCII",
        file: "User-Agent: *\nDisallow: /foo/bar/ツ\nDisallow: /qux/%E3%83%84\n",
        agent: "examplebot",
        allowed: &["/foo/bar/", "/qux/"],
        denied: &["/foo/bar/%E3%83%84", "/qux/%e3%83%84"],
    },
    Example {
        name: "2.2.2, encoded without need",
        file: "User-Agent: *\nDisallow: /foo/bar/%62%61%7A\n",
        agent: "examplebot",
        allowed: &["/foo/bar/"],
        denied: &["/foo/bar/baz", "/foo/bar/%62%61%7A"],
    },
    Example {
        name: "2.2.2, a query",
        file: "User-Agent: *\nDisallow: /foo/bar?baz=quz\n",
        agent: "examplebot",
        allowed: &["/foo/bar", "/foo/bar?baz=qu"],
        denied: &["/foo/bar?baz=quz"],
    },
    Example {
        name: "2.2.3, special characters by their codes",
        file: "User-Agent: *\nDisallow: /path/file-with-a-%2A.html\nDisallow: /path/foo-%24\n",
        agent: "examplebot",
        allowed: &["/path/file-with-a-b.html", "/path/foo-"],
        denied: &["/path/file-with-a-*.html", "/path/foo-$"],
    },
    Example {
        name: "2.2.3, the three of them",
        file: "User-Agent: * # everyone\nDisallow: /a # and what is in it\nAllow: /this/path/exactly$\nDisallow: /this/*/exactly\n",
        agent: "examplebot",
        allowed: &["/this/path/exactly", "/this/exactly"],
        denied: &["/a", "/a/b", "/this/path/exactly/", "/this/x/y/exactly"],
    },
    Example {
        name: "2.2.4, other records end no group",
        file: "User-Agent: examplebot\nSitemap: https://example.org/s.xml\nUser-Agent: *\nDisallow: /\n",
        agent: "examplebot",
        allowed: &["/robots.txt"],
        denied: &["/"],
    },
];

#[test]
fn rfc_9309() {
    agree(RFC_9309);
}

/// Rules outside of any group, groups that follow on each other, and one crawler with two of them.
const GROUPS: &str = "allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\n\
    user-agent: BarBot\ndisallow: /\nallow: /y/\n\n\nallow: /w/\nuser-agent: BazBot\n\n\
    user-agent: FooBot\nallow: /z/\ndisallow: /\n";

const GOOGLE: &[Example] = &[
    Example {
        name: "nothing",
        file: "",
        agent: "FooBot",
        allowed: &["/", "/x/y"],
        denied: &[],
    },
    Example {
        name: "a line",
        file: "user-agent: FooBot\ndisallow: /\n",
        agent: "FooBot",
        allowed: &[],
        denied: &["/x/y"],
    },
    Example {
        name: "lines that are no rules",
        file: "foo: FooBot\nbar: /\n",
        agent: "FooBot",
        allowed: &["/x/y"],
        denied: &[],
    },
    Example {
        name: "lines without a colon",
        file: "user-agent FooBot\ndisallow /\n",
        agent: "FooBot",
        allowed: &[],
        denied: &["/x/y"],
    },
    Example {
        name: "groups, the first",
        file: GROUPS,
        agent: "FooBot",
        allowed: &["/x/b", "/z/d"],
        denied: &["/y/c", "/w/a", "/foo/bar/"],
    },
    Example {
        name: "groups, the second",
        file: GROUPS,
        agent: "BarBot",
        allowed: &["/y/c", "/w/a"],
        denied: &["/z/d", "/foo/bar/"],
    },
    Example {
        name: "groups, the third",
        file: GROUPS,
        agent: "BazBot",
        allowed: &["/z/d"],
        denied: &["/x/b", "/y/c", "/foo/bar/"],
    },
    Example {
        name: "a line of unknown meaning ends no group",
        file: "User-agent: BarBot\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n",
        agent: "BarBot",
        allowed: &[],
        denied: &["/"],
    },
    Example {
        name: "keys in any case",
        file: "USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /\n",
        agent: "FooBot",
        allowed: &["/x/y"],
        denied: &["/a/b"],
    },
    Example {
        name: "keys in mixed case",
        file: "uSeR-aGeNt: FooBot\nAlLoW: /x/\ndIsAlLoW: /\n",
        agent: "FooBot",
        allowed: &["/x/y"],
        denied: &["/a/b"],
    },
    Example {
        name: "names in any case",
        file: "User-Agent: FOO BAR\nAllow: /x/\nDisallow: /\n",
        agent: "foo",
        allowed: &["/x/y"],
        denied: &["/a/b"],
    },
    Example {
        name: "a name ends at the first space",
        file: "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n",
        agent: "Foo",
        allowed: &["/x/y"],
        denied: &["/"],
    },
    Example {
        name: "everyone is who has no group",
        file: "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n",
        agent: "QuxBot",
        allowed: &["/x/y"],
        denied: &[],
    },
    Example {
        name: "paths are not in any case",
        file: "user-agent: FooBot\ndisallow: /X/\n",
        agent: "FooBot",
        allowed: &["/x/y"],
        denied: &["/X/y"],
    },
    Example {
        name: "the longer deny",
        file: "user-agent: FooBot\ndisallow: /x/page.html\nallow: /x/\n",
        agent: "FooBot",
        allowed: &["/x/", "/x/page"],
        denied: &["/x/page.html"],
    },
    Example {
        name: "the longer allow",
        file: "user-agent: FooBot\nallow: /x/page.html\ndisallow: /x/\n",
        agent: "FooBot",
        allowed: &["/x/page.html"],
        denied: &["/x/", "/x/page"],
    },
    Example {
        name: "empty patterns",
        file: "user-agent: FooBot\ndisallow: \nallow: \n",
        agent: "FooBot",
        allowed: &["/x/page.html"],
        denied: &[],
    },
    Example {
        name: "between equals allow wins",
        file: "user-agent: FooBot\ndisallow: /\nallow: /\n",
        agent: "FooBot",
        allowed: &["/x/page.html"],
        denied: &[],
    },
    Example {
        name: "a slash more",
        file: "user-agent: FooBot\ndisallow: /x\nallow: /x/\n",
        agent: "FooBot",
        allowed: &["/x/"],
        denied: &["/x"],
    },
    Example {
        name: "a star counts as a character",
        file: "user-agent: FooBot\nallow: /page\ndisallow: /*.html\n",
        agent: "FooBot",
        allowed: &["/page"],
        denied: &["/page.html"],
    },
    Example {
        name: "the longer allow against a star",
        file: "user-agent: FooBot\nallow: /x/page.\ndisallow: /*.html\n",
        agent: "FooBot",
        allowed: &["/x/page.html"],
        denied: &["/x/y.html"],
    },
    Example {
        name: "rules of everyone are not added to one's own",
        file: "User-agent: *\nDisallow: /x/\nUser-agent: FooBot\nDisallow: /y/\n",
        agent: "FooBot",
        allowed: &["/x/page"],
        denied: &["/y/page"],
    },
    Example {
        name: "an address in a query",
        file: "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par\n",
        agent: "FooBot",
        allowed: &["/foo/bar?qux=taz&baz=http://foo.bar?tar&par"],
        denied: &["/foo/bar?qux=taz"],
    },
    Example {
        name: "a pattern outside of ASCII",
        file: "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar/ツ\n",
        agent: "FooBot",
        allowed: &["/foo/bar/%E3%83%84"],
        denied: &["/foo/bar/"],
    },
    Example {
        name: "a star",
        file: "User-agent: FooBot\nDisallow: /foo/bar/quz\nAllow: /foo/*/qux\n",
        agent: "FooBot",
        allowed: &["/foo/quz", "/foo//quz", "/foo/bax/quz"],
        denied: &["/foo/bar/quz"],
    },
    Example {
        name: "a dollar",
        file: "User-agent: FooBot\nDisallow: /foo/bar$\nAllow: /foo/bar/qux\n",
        agent: "FooBot",
        allowed: &["/foo/bar/qux", "/foo/bar/", "/foo/bar/baz"],
        denied: &["/foo/bar"],
    },
    Example {
        name: "a hash",
        file: "User-agent: FooBot\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /\n",
        agent: "FooBot",
        allowed: &["/foo/bar"],
        denied: &["/foo/quz"],
    },
    Example {
        name: "the description's order of rules, a shop of fish",
        file: "user-agent: FooBot\nallow: /p\ndisallow: /\n",
        agent: "FooBot",
        allowed: &["/page"],
        denied: &["/fish"],
    },
    Example {
        name: "the description's order of rules, a root",
        file: "user-agent: FooBot\nallow: /$\ndisallow: /\n",
        agent: "FooBot",
        allowed: &["/"],
        denied: &["/page.html"],
    },
    Example {
        name: "the description's crawlers: of several names the own one",
        file: "user-agent: foobot-news\ndisallow: /fish\nuser-agent: *\ndisallow: /carrots\nuser-agent: foobot\ndisallow: /shrimps\n",
        agent: "foobot",
        allowed: &["/fish", "/carrots"],
        denied: &["/shrimps"],
    },
    Example {
        name: "line ends of every kind",
        file: "User-Agent: foo\rAllow: /some/path\r\nUser-Agent: bar\n\rDisallow: /\r",
        agent: "bar",
        allowed: &[],
        denied: &["/", "/some/path"],
    },
    Example {
        name: "a byte order mark",
        file: "\u{feff}User-Agent: foo\nDisallow: /AnyValue\n",
        agent: "foo",
        allowed: &["/"],
        denied: &["/AnyValue"],
    },
    Example {
        name: "a byte order mark in the middle spoils its line",
        file: "User-Agent: foo\n\u{feff}Disallow: /AnyValue\n",
        agent: "foo",
        allowed: &["/AnyValue"],
        denied: &[],
    },
];

#[test]
fn google() {
    agree(GOOGLE);
}

/// Pattern, what it matches and what not, as Google's description tabulates them.
const PATTERNS: &[(&str, &[&str], &[&str])] = &[
    (
        "/fish",
        &[
            "/fish",
            "/fish.html",
            "/fish/salmon.html",
            "/fishheads",
            "/fishheads/yummy.html",
            "/fish.php?id=anything",
        ],
        &["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish*",
        &[
            "/fish",
            "/fish.html",
            "/fish/salmon.html",
            "/fishheads",
            "/fishheads/yummy.html",
            "/fish.php?id=anything",
        ],
        &["/Fish.asp", "/catfish", "/?id=fish"],
    ),
    (
        "/fish/",
        &[
            "/fish/",
            "/fish/salmon",
            "/fish/?id=anything",
            "/fish/salmon.htm",
        ],
        &["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    (
        "/*.php",
        &[
            "/filename.php",
            "/folder/filename.php",
            "/folder/filename.php?parameters",
            "/folder/any.php.file.html",
            "/filename.php/",
            "/index.php",
        ],
        &["/", "/windows.PHP"],
    ),
    (
        "/*.php$",
        &["/filename.php", "/folder/filename.php"],
        &[
            "/filename.php?parameters",
            "/filename.php/",
            "/filename.php5",
            "/windows.PHP",
        ],
    ),
    (
        "/fish*.php",
        &["/fish.php", "/fishheads/catfish.php?parameters"],
        &["/Fish.PHP", "/fish"],
    ),
    ("/", &["/", "/anything", "/a?b"], &[]),
    ("/*", &["/", "/anything", "/a?b"], &[]),
    ("/$", &["/"], &["/anything", "/?a"]),
];

#[test]
fn google_s_table_of_patterns() {
    for (pattern, matching, others) in PATTERNS {
        for (key, hit) in [("disallow", false), ("allow", true)] {
            let other = if hit { "disallow: /" } else { "allow: /$" };
            let body = format!("user-agent: FooBot\n{key}: {pattern}\n{other}\n");
            let robots = read(body.as_bytes(), "FooBot");
            // An allow for the same path in as many characters would win.
            let skip = |target: &&&str| !(**target == "/" && pattern.len() <= 2);
            for target in matching.iter().filter(skip) {
                assert_eq!(robots.verdict(target).allowed, hit, "{body} on {target}");
            }
            if hit {
                for target in *others {
                    assert!(!robots.verdict(target).allowed, "{body} on {target}");
                }
            }
        }
    }
}

/// Where Google's parser, or a line of the RFC, says something else; `docs/robots.md` has the reasons.
const OTHERWISE: &[Example] = &[
    Example {
        name: "index.html is no other name of its directory",
        file: "User-Agent: *\nAllow: /allowed-slash/index.html\nDisallow: /\n",
        agent: "FooBot",
        allowed: &["/allowed-slash/index.html"],
        denied: &["/allowed-slash/", "/allowed-slash/index.htm"],
    },
    Example {
        name: "unreserved characters are the same, encoded or not",
        file: "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar/%62%61%7A\n",
        agent: "FooBot",
        allowed: &["/foo/bar/baz", "/foo/bar/%62%61%7A"],
        denied: &[],
    },
    Example {
        name: "reserved characters are not, in a query either",
        file: "User-agent: FooBot\nDisallow: /foo/bar?baz=https://foo.bar\n",
        agent: "FooBot",
        allowed: &["/foo/bar?baz=https%3A%2F%2Ffoo.bar"],
        denied: &["/foo/bar?baz=https://foo.bar"],
    },
    Example {
        name: "a name with a digit is another name",
        file: "User-agent: FooBot2\nDisallow: /\n",
        agent: "FooBot",
        allowed: &["/"],
        denied: &[],
    },
    Example {
        name: "a pattern without a slash has one",
        file: "User-agent: FooBot\nDisallow: private\n",
        agent: "FooBot",
        allowed: &["/", "/x/private"],
        denied: &["/private", "/private/x"],
    },
];

#[test]
fn what_we_do_otherwise() {
    agree(OTHERWISE);
    // Part of a byte order mark is no byte order mark.
    let partial = read(b"\xef\xbbUser-Agent: foo\nDisallow: /\n", "foo");
    assert!(partial.verdict("/").allowed);
    // A line is as long as it is.
    let long = "x".repeat(20_000);
    let robots = read(
        format!("user-agent: FooBot\ndisallow: /{long}/y\n").as_bytes(),
        "FooBot",
    );
    assert!(robots.verdict(&format!("/{long}")).allowed);
    assert!(!robots.verdict(&format!("/{long}/y")).allowed);
}

/// RFC 9309 section 2.5 has at least 500 KiB read; we read so much and no half line.
#[test]
fn half_a_mebibyte_is_read_to_the_end_of_a_line() {
    let limit = RECOMMENDED_BYTES;
    assert_eq!(limit, 500 * 1024);
    for end in ["\n", "\r", "\r\n", "\0"] {
        let mut file = format!("User-agent: *{end}Disallow: /first{end}").into_bytes();
        let filler = format!("# nothing{end}");
        while file.len() + filler.len() <= limit - 12 {
            file.extend(filler.as_bytes());
        }
        file.extend(format!("Disallow: /cut/in/two{end}Disallow: /behind{end}").as_bytes());
        let robots = read(&file, "FooBot");
        assert!(!robots.verdict("/first").allowed);
        for target in ["/", "/cut/in/two", "/cut", "/c", "/behind"] {
            assert!(robots.verdict(target).allowed, "{target}");
        }
    }
    // One line without end says nothing.
    let robots = read("Disallow: /".repeat(100_000).as_bytes(), "FooBot");
    assert!(robots.verdict("/").allowed);
}

/// Pages of errors that come with status 200, and files of nothing but zeroes, are no rules.
#[test]
fn what_is_no_robots_txt_allows_everything() {
    let page = "<!DOCTYPE html>\n<html>\n<head><title>Not found</title>\n<style>a:hover { allow: none }</style></head>\n\
                <body>User-agent is not welcome. Disallow: me</body></html>\n";
    for file in [page.as_bytes(), &[0; 5000], b"\xff\xfe\x00U\x00s\x00e\x00r"] {
        let robots = read(file, "FooBot");
        assert!(robots.allows_all() && robots.crawl_delay().is_none());
    }
}

/// Neither standard knows Crawl-delay; the longest of a group counts, and capping it is the caller's.
#[test]
fn crawl_delay() {
    let robots = read(b"User-agent: *\nCrawl-delay: 2\nCrawl-delay: 100000\n", "a");
    assert_eq!(robots.crawl_delay(), Some(Duration::from_secs(100_000)));
}
