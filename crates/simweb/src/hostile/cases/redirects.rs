//! Redirects, and the addresses that must not be asked, however they are spelled.
//!
//! Whatever listens outside of the hosts of this web stands for what a crawler must not reach: that
//! somebody connects there is counted, whichever case sent them.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, first, link, moved, page, raw, status};

pub(super) fn cases() -> Vec<Case> {
    let mut all = loops();
    all.extend(spellings());
    all.extend(schemes());
    all.extend(odd());
    all
}

fn loops() -> Vec<Case> {
    vec![
        Case::new("self", "a redirect to itself", &[REDIRECT_LIMIT], |_| moved("/")).requests(1),
        Case::new("self-fragment", "a redirect to itself with a fragment", &[REDIRECT_LIMIT], |_| moved("/#again")).requests(1),
        Case::new("two", "two pages that redirect to each other", &[REDIRECT_LIMIT], |ask: &Ask| {
            first(ask, moved("/other"), moved("/"))
        })
        .leads_to("/other")
        .requests(2),
        Case::new("without-end", "a redirect to the next number", &[REDIRECT_LIMIT], |ask: &Ask| {
            moved(&format!("/hop/{}", ask.number() + 1))
        })
        .leads_to("/hop/3")
        .requests(30),
        Case::new("growing", "a redirect to a longer path", &[REDIRECT_LIMIT], |ask: &Ask| {
            moved(&format!("{}a/", ask.target))
        })
        .requests(30),
        Case::new("refresh-loop", "a page that refreshes itself", &[SUCCESS], |_| {
            page("<meta http-equiv=refresh content='0; url=/'>words")
        })
        .requests(1),
        Case::new("refresh-field-loop", "a Refresh field without end", &[SUCCESS], |ask: &Ask| {
            let next = ask.number() + 1;
            raw(format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nRefresh: 0; url=/r/{next}\r\nContent-Length: 5\r\n\r\nhello"))
        })
        .requests(120),
    ]
}

/// Sends the client to an authority, with the port where everybody listens.
fn to(host: &str, ask: &Ask) -> Vec<Act> {
    moved(&format!("http://{host}:{}/inside", ask.port))
}

fn spellings() -> Vec<Case> {
    vec![
        Case::new(
            "loopback",
            "a redirect to 127.0.0.1",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("127.0.0.1", ask),
        ),
        Case::new(
            "loopback-decimal",
            "to 2130706433",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("2130706433", ask),
        ),
        Case::new(
            "loopback-hex",
            "to 0x7f000001",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("0x7f000001", ask),
        ),
        Case::new(
            "loopback-hex-dots",
            "to 0x7f.0.0.0x1",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("0x7f.0.0.0x1", ask),
        ),
        Case::new(
            "loopback-octal",
            "to 0177.0.0.01",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("0177.0.0.01", ask),
        ),
        Case::new(
            "loopback-short",
            "to 127.1",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("127.1", ask),
        ),
        Case::new(
            "loopback-wide",
            "to 127.0.0.1 in wide letters",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("\u{ff11}\u{ff12}\u{ff17}.0.0.1", ask),
        ),
        Case::new(
            "loopback-escaped",
            "to %31%32%37.0.0.1",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("%31%32%37.0.0.1", ask),
        ),
        Case::new(
            "loopback-dot",
            "to 127.0.0.1. with a dot",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("127.0.0.1.", ask),
        ),
        Case::new(
            "loopback-mapped",
            "to [::ffff:127.0.0.1]",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("[::ffff:127.0.0.1]", ask),
        ),
        Case::new(
            "loopback-mapped-hex",
            "to [::ffff:7f00:1]",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("[::ffff:7f00:1]", ask),
        ),
        Case::new(
            "loopback-compatible",
            "to [::127.0.0.1]",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("[::127.0.0.1]", ask),
        ),
        Case::new(
            "loopback-six",
            "to [::1]",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("[::1]", ask),
        ),
        Case::new(
            "loopback-nat64",
            "to [64:ff9b::7f00:1]",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("[64:ff9b::7f00:1]", ask),
        ),
        Case::new(
            "any-address",
            "to 0.0.0.0",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("0.0.0.0", ask),
        ),
        Case::new(
            "any-address-zero",
            "to 0",
            &[REDIRECT_REFUSED],
            |ask: &Ask| to("0", ask),
        ),
        Case::new(
            "metadata",
            "to 169.254.169.254",
            &[REDIRECT_REFUSED],
            |_| moved("http://169.254.169.254/latest/"),
        ),
        Case::new("private", "to 10.0.0.1", &[REDIRECT_REFUSED], |_| {
            moved("http://10.0.0.1/")
        }),
        Case::new("unique-local", "to [fd00::1]", &[REDIRECT_REFUSED], |_| {
            moved("http://[fd00::1]/")
        }),
        Case::new(
            "broadcast",
            "to 255.255.255.255",
            &[REDIRECT_REFUSED],
            |_| moved("http://255.255.255.255/"),
        ),
        Case::new(
            "port-mail",
            "to port 25 of the same host",
            &[REDIRECT_REFUSED],
            |ask: &Ask| {
                let host = ask.authority.split(':').next().unwrap_or_default();
                moved(&format!("http://{host}:25/"))
            },
        ),
        Case::new(
            "linked-loopback",
            "a page that links to 127.0.0.1",
            &[SUCCESS],
            |ask: &Ask| page(link(&format!("http://127.0.0.1:{}/inside", ask.port))),
        ),
    ]
}

fn schemes() -> Vec<Case> {
    vec![
        Case::new("javascript", "to javascript:", &[REDIRECT_REFUSED], |_| {
            moved("javascript:alert(1)")
        }),
        Case::new("file", "to file:", &[REDIRECT_REFUSED], |_| {
            moved("file:///etc/passwd")
        }),
        Case::new("data", "to data:", &[REDIRECT_REFUSED], |_| {
            moved("data:text/html,<a href=/data>x</a>")
        })
        .never("/data"),
        Case::new("ftp", "to ftp:", &[REDIRECT_REFUSED], |_| {
            moved("ftp://127.0.0.1/")
        }),
        Case::new("gopher", "to gopher:", &[REDIRECT_REFUSED], |_| {
            moved("gopher://127.0.0.1:25/_HELO")
        }),
        Case::new("about", "to about:blank", &[REDIRECT_REFUSED], |_| {
            moved("about:blank")
        }),
        Case::new("mailto", "to mailto:", &[REDIRECT_REFUSED], |_| {
            moved("mailto:me@example.org")
        }),
    ]
}

fn odd() -> Vec<Case> {
    vec![
        Case::new(
            "long",
            "to a URL of 40,000 letters",
            &[REDIRECT_REFUSED, PROTOCOL],
            |_| moved(&format!("/{}", "long".repeat(10_000))),
        )
        .requests(2),
        Case::new("empty", "an empty Location", &[HTTP_ERROR], |_| moved("")).requests(1),
        Case::new("missing", "301 without a Location", &[HTTP_ERROR], |_| {
            status(301, "")
        })
        .requests(1),
        Case::new(
            "garbage",
            "a Location that is no URL",
            &[REDIRECT_REFUSED],
            |_| moved("ht!tp://[::bad]:99999/%%%"),
        ),
        Case::new(
            "bad-port",
            "a port above 65,535",
            &[REDIRECT_REFUSED],
            |ask: &Ask| {
                let host = ask.authority.split(':').next().unwrap_or_default();
                moved(&format!("http://{host}:99999/"))
            },
        ),
        Case::new(
            "two-locations",
            "two Locations",
            &[FOLLOWED, REDIRECT_REFUSED],
            |ask: &Ask| {
                first(
                    ask,
                    status(302, "Location: /one\r\nLocation: /two\r\n"),
                    page("hello"),
                )
            },
        )
        .requests(2),
        Case::new(
            "userinfo",
            "a Location with name and password",
            &[FOLLOWED, REDIRECT_REFUSED],
            |ask: &Ask| {
                let to = format!("http://name:word@{}/next", ask.authority);
                first(ask, moved(&to), page("hello"))
            },
        ),
        Case::new(
            "three-slashes",
            "a Location with three slashes",
            &[FOLLOWED],
            |ask: &Ask| {
                let to = format!("///{}/next", ask.authority);
                first(ask, moved(&to), page("hello"))
            },
        )
        .leads_to("/next"),
        Case::new("one-slash", "to http:/next", &[FOLLOWED], |ask: &Ask| {
            first(ask, moved("http:/next"), page("hello"))
        })
        .leads_to("/next"),
        Case::new("no-slash", "to http:next", &[FOLLOWED], |ask: &Ask| {
            first(ask, moved("http:next"), page("hello"))
        })
        .leads_to("/next"),
        Case::new(
            "userinfo-is-the-host",
            "to 127.0.0.1 with this host as the user",
            &[FOLLOWED, REDIRECT_REFUSED],
            |ask: &Ask| moved(&format!("http://{}@127.0.0.1:{}/", ask.authority, ask.port)),
        ),
        Case::new(
            "line-break",
            "a Location with an encoded line break",
            &[FOLLOWED],
            |ask: &Ask| first(ask, moved("/a%0d%0aX-Injected:%20yes"), page("hello")),
        ),
        Case::new(
            "letters",
            "a Location in raw UTF-8",
            &[FOLLOWED],
            |ask: &Ask| first(ask, moved("/über"), page("hello")),
        )
        .leads_to("/%C3%BCber"),
        Case::new(
            "blanks",
            "a Location with blanks",
            &[FOLLOWED],
            |ask: &Ask| first(ask, moved("  /a b  "), page("hello")),
        )
        .leads_to("/a%20b"),
        Case::new(
            "backslash",
            "a Location with backslashes",
            &[FOLLOWED, REDIRECT_REFUSED],
            |ask: &Ask| first(ask, moved("\\next"), page("hello")),
        )
        .leads_to("/next"),
        Case::new("use-proxy", "305 with a Location", &[HTTP_ERROR], |_| {
            status(305, "Location: /proxy\r\n")
        })
        .never("/proxy")
        .requests(1),
        Case::new("choices", "300 with a Location", &[HTTP_ERROR], |_| {
            status(300, "Location: /choice\r\n")
        })
        .never("/choice")
        .requests(1),
        Case::new(
            "not-modified",
            "304 to a question without a condition",
            &[HTTP_ERROR, EMPTY],
            |_| raw("HTTP/1.1 304 Not Modified\r\n\r\n"),
        )
        .requests(2),
        Case::new(
            "ok-with-location",
            "200 with a Location",
            &[SUCCESS],
            |_| raw("HTTP/1.1 200 OK\r\nLocation: /elsewhere\r\nContent-Length: 5\r\n\r\nhello"),
        )
        .never("/elsewhere"),
    ]
}
