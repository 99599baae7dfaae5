//! Forms of robots.txt, and of its absence.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, OPEN, message, moved, page, raw, raw_close, status};

fn rules(body: impl AsRef<[u8]>) -> Vec<Act> {
    raw(message("HTTP/1.1 200 OK\r\nContent-Type: text/plain", body))
}

/// A page that may be fetched, or not.
fn hello(_: &Ask) -> Vec<Act> {
    page("hello")
}

pub(super) fn cases() -> Vec<Case> {
    let mut all = forms();
    all.extend(statuses());
    all.extend(ways());
    all
}

fn allows(name: &'static str, does: &'static str, robots: fn(&Ask) -> Vec<Act>) -> Case {
    Case::new(name, does, &[SUCCESS], hello).robots(robots)
}

fn denies(name: &'static str, does: &'static str, robots: fn(&Ask) -> Vec<Act>) -> Case {
    Case::new(name, does, &[DENIED_ROBOTS], hello)
        .robots(robots)
        .never("/")
        .requests(0)
}

fn forms() -> Vec<Case> {
    vec![
        denies("all", "Disallow: /", |_| {
            rules("User-agent: *\nDisallow: /\n")
        }),
        denies("mark", "a byte order mark first", |_| {
            rules("\u{feff}User-agent: *\nDisallow: /\n")
        }),
        denies("carriage-returns", "lines that end in CR", |_| {
            rules("User-agent: *\rDisallow: /\r")
        }),
        denies("blanks", "blanks wherever there is room", |_| {
            rules("  User-agent :  *  \n\t Disallow :\t/  # all\n")
        }),
        denies("capitals", "capital letters", |_| {
            rules("USER-AGENT: *\nDISALLOW: /\n")
        }),
        denies("no-colon", "a missing colon", |_| {
            rules("User-agent *\nDisallow /\n")
        }),
        denies("noise-first", "64 KiB of noise first", |_| {
            let noise: String = (0..8192).map(|n| format!("\u{1}{n:06x}\n")).collect();
            rules(noise + "User-agent: *\nDisallow: /\n")
        }),
        denies("many-agents", "a group of 5,000 agents", |_| {
            rules(format!(
                "{}User-agent: *\nDisallow: /\n",
                "User-agent: other\n".repeat(5000)
            ))
        }),
        denies("wildcards", "a pattern of 2,000 stars", |_| {
            rules(format!("User-agent: *\nDisallow: /{}\n", "*".repeat(2000)))
        }),
        denies(
            "escaped",
            "a slash as %2F is no slash, but / is all",
            |_| rules("User-agent: *\nDisallow: %2F\nDisallow: /\n"),
        ),
        allows(
            "stars-and-letters",
            "patterns that would take for ever",
            |_| {
                rules(format!(
                    "User-agent: *\n{}",
                    format!("Disallow: /{}b$\n", "*a".repeat(200)).repeat(200)
                ))
            },
        ),
        allows("html", "a page in place of rules", |_| {
            raw(message(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html",
                "<html><body>Disallow: / is what we do not say</body></html>",
            ))
        }),
        allows("empty", "nothing", |_| rules("")),
        allows("nul", "NUL everywhere", |_| rules("\0".repeat(10_000))),
        allows("long-line", "a line of 400,000 letters", |_| {
            rules(format!("Disallow: /{}\n", "a".repeat(400_000)))
        }),
        allows("no-group", "a rule that belongs to nobody", |_| {
            rules("Disallow: /\n")
        }),
        allows("other-agent", "a rule for somebody else", |_| {
            rules("User-agent: other\nDisallow: /\n")
        }),
        allows("longest", "an Allow as long as the Disallow", |_| {
            rules("User-agent: *\nDisallow: /\nAllow: /\n")
        }),
        allows("delay-absurd", "a delay of 10^30 seconds", |_| {
            rules("User-agent: *\nCrawl-delay: 1000000000000000000000000000000\n")
        }),
        allows("delay-negative", "a delay of -10 seconds", |_| {
            rules("User-agent: *\nCrawl-delay: -10\n")
        }),
        allows("delay-word", "a delay of NaN", |_| {
            rules("User-agent: *\nCrawl-delay: NaN\n")
        }),
    ]
}

fn statuses() -> Vec<Case> {
    vec![
        allows("404", "404", |_| status(404, "")),
        allows("410", "410", |_| status(410, "")),
        allows("401", "401", |_| status(401, "")),
        allows("403", "403", |_| status(403, "")),
        Case::new("999", "999", &[SUCCESS, DENIED_ROBOTS], hello).robots(|_| status(999, "")),
        denies("500", "500", |_| status(500, "")),
        denies("503", "503", |_| status(503, "")),
        denies("429", "429", |_| status(429, "")),
        Case::new("204", "204", &[SUCCESS], hello)
            .robots(|_| raw("HTTP/1.1 204 No Content\r\n\r\n")),
        Case::new(
            "304",
            "304 that nobody asked for",
            &[SUCCESS, DENIED_ROBOTS],
            hello,
        )
        .robots(|_| raw("HTTP/1.1 304 Not Modified\r\n\r\n")),
        Case::new(
            "101",
            "101 that nobody asked for",
            &[PROTOCOL, DENIED_ROBOTS],
            hello,
        )
        .robots(|_| raw_close("HTTP/1.1 101 Switching\r\n\r\n"))
        .never("/"),
        Case::new(
            "noise",
            "noise in place of an answer",
            &[PROTOCOL, DENIED_ROBOTS],
            hello,
        )
        .robots(|_| raw_close("noise"))
        .never("/"),
        Case::new(
            "closed",
            "the end in place of an answer",
            &[PROTOCOL, CONNECT, DENIED_ROBOTS],
            hello,
        )
        .robots(|_| vec![Act::Close])
        .never("/"),
        Case::new(
            "cut",
            "rules that break off",
            &[SUCCESS, DENIED_ROBOTS, PROTOCOL],
            hello,
        )
        .robots(|_| {
            raw_close(
                "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nUser-agent: *\nDisallow: /pri",
            )
        }),
        Case::new(
            "undecodable",
            "rules that cannot be decoded",
            &[SUCCESS, DENIED_ROBOTS, DECODE],
            hello,
        )
        .robots(|_| {
            raw(message(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip",
                "User-agent: *\nDisallow: /\n",
            ))
        }),
    ]
}

fn ways() -> Vec<Case> {
    vec![
        Case::new(
            "moved",
            "moved within the host",
            &[DENIED_ROBOTS],
            |ask: &Ask| match ask.target.as_str() {
                "/rules.txt" => rules("User-agent: *\nDisallow: /\n"),
                _ => page("hello"),
            },
        )
        .robots(|_| moved("/rules.txt"))
        .leads_to("/rules.txt")
        .never("/"),
        Case::new(
            "loop",
            "a redirect to itself",
            &[SUCCESS, DENIED_ROBOTS],
            hello,
        )
        .robots(|_| moved("/robots.txt")),
        Case::new(
            "chain",
            "redirects without end",
            &[SUCCESS, DENIED_ROBOTS],
            |ask: &Ask| match ask.target.as_str() {
                "/" => page("hello"),
                _ => moved(&format!("/r/{}", ask.number() + 1)),
            },
        )
        .robots(|_| moved("/r/1"))
        .requests(20),
        Case::new(
            "inside",
            "moved to 127.0.0.1",
            &[SUCCESS, DENIED_ROBOTS, DENIED_POLICY],
            hello,
        )
        .robots(|ask: &Ask| moved(&format!("http://127.0.0.1:{}/robots.txt", ask.port))),
        Case::new(
            "file",
            "moved to a file",
            &[SUCCESS, DENIED_ROBOTS, DENIED_POLICY],
            hello,
        )
        .robots(|_| moved("file:///etc/passwd")),
        Case::new(
            "stuck",
            "half of the rules without end in sight",
            &[SUCCESS, DENIED_ROBOTS, TIMEOUT],
            hello,
        )
        .robots(|_| {
            vec![
                Act::Send(OPEN.into()),
                Act::Send(b"User-agent: *\nAllow: /\n".into()),
                Act::Silence,
            ]
        })
        .slow(),
    ]
}
