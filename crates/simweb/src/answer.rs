//! From a request to the bytes of its answer. No socket and no clock here.

use std::time::{Duration, SystemTime};

use crate::count::bump;
use crate::count::{Counters, InFlight};
use crate::layout::{Failure, Layout, Redirect, Use};
use crate::place::{Place, What, put_number};
use crate::request::Request;
use crate::spell::{self, Base};
use crate::trap::Trap;
use crate::web::Web;

/// 2024-03-01T00:00:00Z, the first day on which a page was changed.
const FIRST_DAY: u64 = 1_709_251_200;

/// What is to be done about a request.
pub(crate) struct Plan<'a> {
    /// Ends when dropped; none when the request reached no host.
    pub(crate) in_flight: Option<InFlight<'a>>,
    /// How long to wait before answering.
    pub(crate) wait: Duration,
    /// Whether the connection ends after the answer.
    pub(crate) close: bool,
    kind: Kind,
}

enum Kind {
    /// A status and nothing else.
    Bare(u16),
    Fail(Failure),
    Get(Get),
    /// A page of a trap.
    Trap {
        trap: Trap,
        what: What,
        body: Vec<u8>,
        head_only: bool,
    },
}

struct Get {
    place: Place,
    head_only: bool,
    gzip: bool,
    /// Whether the client's copy is still good.
    fresh: bool,
}

/// What a written answer means to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The connection is to be reset instead.
    Reset,
    /// robots.txt of this host.
    Robots(u32),
    /// A page, by its number among all pages, with 200.
    Page(usize),
    /// The same with 304.
    NotModified(usize),
}

/// Counts and judges a request that came in at the address with number `ip`, and plans its answer.
pub(crate) fn plan<'a>(
    web: &Web,
    counters: &'a Counters,
    request: &Request<'_>,
    ip: Option<u32>,
) -> Plan<'a> {
    let layout = &web.layout;
    let bare = |status| Plan {
        in_flight: None,
        wait: Duration::ZERO,
        close: true,
        kind: Kind::Bare(status),
    };
    let Some(host) = layout
        .host_of_authority(request.authority)
        .filter(|host| Some(layout.ip_of(*host)) == ip)
    else {
        counters.misdirected(format!("http://{}{}", request.authority, request.target));
        return bare(421);
    };
    let target = upper_escapes(request.target);
    let what = layout.find(host, &target);
    let (in_flight, nth) = counters.arrive(layout, host, &target, what);
    let known = matches!(request.method, "GET" | "HEAD");
    let kind = match (layout.failure(host), what) {
        _ if !known => Kind::Bare(405),
        (Some(failure), what) if what != Some(What::Robots) && fails(layout, nth) => {
            Kind::Fail(failure)
        }
        (_, Some(what @ (What::Good(_) | What::Lure))) => match layout.trap(host) {
            Some(trap) => Kind::Trap {
                trap,
                what,
                body: trap.page(layout.config.seed, &target, what),
                head_only: request.method == "HEAD",
            },
            None => Kind::Bare(404),
        },
        (_, Some(what)) => {
            let place = Place { host, what };
            Kind::Get(Get {
                place,
                head_only: request.method == "HEAD",
                gzip: request.gzip && layout.config.gzip,
                fresh: is_fresh(layout, place, request),
            })
        }
        (_, None) => Kind::Bare(404),
    };
    Plan {
        in_flight: Some(in_flight),
        wait: wait(layout, host, what),
        close: request.close,
        kind,
    }
}

/// Whether the nth request to a failing host still fails.
fn fails(layout: &Layout, nth: u32) -> bool {
    layout.config.recover_after == 0 || nth <= layout.config.recover_after
}

fn wait(layout: &Layout, host: u32, what: Option<What>) -> Duration {
    let config = &layout.config;
    let page = match what {
        Some(What::Page(page)) => page,
        _ => u32::MAX,
    };
    let jitter = layout.number(host, page, Use::Jitter) % config.jitter_ms.saturating_add(1).max(1);
    let slow = if layout.is_slow(host) {
        config.slow_ms
    } else {
        0
    };
    Duration::from_millis(
        config
            .latency_ms
            .saturating_add(jitter)
            .saturating_add(slow),
    )
}

/// A server takes `%7e` and `%7E` for the same, so a visitor who does not is seen to ask twice.
fn upper_escapes(target: &str) -> std::borrow::Cow<'_, str> {
    if !target.contains('%') {
        return target.into();
    }
    let mut digits = 0;
    let upper = target.chars().map(|c| {
        let upper = if digits > 0 {
            c.to_ascii_uppercase()
        } else {
            c
        };
        digits = if c == '%' { 2 } else { i32::max(digits - 1, 0) };
        upper
    });
    upper.collect::<String>().into()
}

fn changed(layout: &Layout, host: u32, page: u32) -> SystemTime {
    let number = layout.number(host, page, Use::Version);
    let seconds = number % 28 * 86_400 + (number >> 8) % 86_400;
    SystemTime::UNIX_EPOCH + Duration::from_secs(FIRST_DAY + seconds)
}

/// If-None-Match goes before If-Modified-Since (RFC 9110, 13.2.2).
fn is_fresh(layout: &Layout, place: Place, request: &Request<'_>) -> bool {
    let What::Page(page) = place.what else {
        return false;
    };
    match (request.if_none_match, request.if_modified_since) {
        (Some(tags), _) => {
            let mut own = Vec::new();
            write_tag(&mut own, layout, place.host, page);
            tags.split(',').any(|tag| {
                let tag = tag.trim().trim_start_matches("W/").trim_matches('"');
                tag == "*" || tag.trim_end_matches("-gz").as_bytes() == own
            })
        }
        (None, Some(since)) => httpdate::parse_http_date(since)
            .is_ok_and(|since| changed(layout, place.host, page) <= since),
        (None, None) => false,
    }
}

fn write_tag(out: &mut Vec<u8>, layout: &Layout, host: u32, page: u32) {
    let number = layout.number(host, page, Use::Version);
    out.extend((0..16).map(|nibble| {
        let digit = (number >> (60 - nibble * 4)) & 15;
        b"0123456789abcdef"
            .get(digit as usize)
            .copied()
            .unwrap_or(b'0')
    }));
}

impl Plan<'_> {
    /// Writes the whole answer.
    pub(crate) fn write(&self, web: &Web, counters: &Counters, out: &mut Vec<u8>) -> Effect {
        let tally = counters.tally();
        let mut answer = Answer {
            out,
            close: self.close,
        };
        match &self.kind {
            Kind::Bare(status) => {
                if *status == 404 {
                    bump(&tally.not_found);
                }
                answer.bare(*status);
                Effect::Nothing
            }
            Kind::Fail(failure) => {
                bump(&tally.failures);
                match failure {
                    Failure::InternalError => answer.bare(500),
                    Failure::Unavailable => {
                        answer.status(503);
                        answer.field("Retry-After: 1\r\n");
                        answer.body("text/plain", b"Come back later.\n", false);
                    }
                    Failure::Reset => return Effect::Reset,
                }
                Effect::Nothing
            }
            Kind::Get(get) => answer.get(web, counters, get),
            Kind::Trap {
                trap,
                what,
                body,
                head_only,
            } => {
                counters.trapped(*trap, *what);
                answer.status(200);
                answer.body("text/html; charset=utf-8", body, *head_only);
                Effect::Nothing
            }
        }
    }
}

struct Answer<'a> {
    out: &'a mut Vec<u8>,
    close: bool,
}

impl Answer<'_> {
    fn get(&mut self, web: &Web, counters: &Counters, get: &Get) -> Effect {
        let Place { host, what } = get.place;
        match what {
            What::Page(page) => self.page(web, host, page, get),
            What::Go(page) | What::Hop(page) => {
                bump(&counters.tally().redirects);
                match web.layout.redirect(host, page) {
                    Some(redirect) => self.redirect(&web.layout, get, redirect),
                    None => self.bare(404),
                }
                Effect::Nothing
            }
            What::Away(page) => {
                bump(&counters.tally().redirects);
                self.status(301);
                self.field("Location: ");
                let what = What::Page(page);
                let host = host.saturating_sub(1);
                web.layout.write_url(self.out, Place { host, what });
                self.field("\r\n");
                self.body("text/html", b"<p>Moved.</p>\n", get.head_only);
                Effect::Nothing
            }
            What::Broken(_) => {
                bump(&counters.tally().not_found);
                self.bare(404);
                Effect::Nothing
            }
            _ => {
                let body = web.plain_body(host, what).unwrap_or_default();
                self.status(200);
                self.body(content_type(what), &body, get.head_only);
                if what == What::Robots && !get.head_only {
                    Effect::Robots(host)
                } else {
                    Effect::Nothing
                }
            }
        }
    }

    fn page(&mut self, web: &Web, host: u32, page: u32, get: &Get) -> Effect {
        let index = web.layout.index(host, page);
        self.status(if get.fresh { 304 } else { 200 });
        self.field("ETag: \"");
        write_tag(self.out, &web.layout, host, page);
        self.field(if get.gzip { "-gz\"\r\n" } else { "\"\r\n" });
        let changed = httpdate::fmt_http_date(changed(&web.layout, host, page));
        self.field("Last-Modified: ");
        self.field(&changed);
        self.field("\r\nVary: Accept-Encoding\r\n");
        if get.fresh {
            self.end();
            return Effect::NotModified(index);
        }
        let made = web.pool.page(&web.layout, host, page);
        if get.gzip {
            let mut zipped = Vec::with_capacity(made.body.len());
            made.gzip(&mut zipped);
            self.field("Content-Encoding: gzip\r\n");
            self.body("text/html; charset=utf-8", &zipped, get.head_only);
        } else {
            self.body("text/html; charset=utf-8", &made.body, get.head_only);
        }
        if get.head_only {
            Effect::Nothing
        } else {
            Effect::Page(index)
        }
    }

    fn redirect(&mut self, layout: &Layout, get: &Get, redirect: Redirect) {
        let Place { host, what } = get.place;
        let to = match what {
            What::Go(page) if redirect.chained => Place {
                host,
                what: What::Hop(page),
            },
            _ => redirect.to,
        };
        self.status(redirect.status);
        self.field("Location: ");
        let base = Base::of(layout, get.place);
        let mut rng = match what {
            What::Go(page) | What::Hop(page) => layout.rng(host, page, Use::Redirect),
            _ => return,
        };
        spell::write_location(layout, self.out, &base, to, &mut rng);
        self.field("\r\n");
        self.body("text/html", b"<p>Moved.</p>\n", get.head_only);
    }

    fn bare(&mut self, status: u16) {
        self.status(status);
        self.body("text/plain", reason(status).as_bytes(), false);
    }

    fn status(&mut self, status: u16) {
        self.field("HTTP/1.1 ");
        put_number(self.out, status.into());
        self.field(" ");
        self.field(reason(status));
        self.field("\r\nServer: simweb\r\n");
    }

    fn field(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn body(&mut self, content_type: &str, body: &[u8], head_only: bool) {
        self.field("Content-Type: ");
        self.field(content_type);
        self.field("\r\nContent-Length: ");
        put_number(self.out, body.len() as u64);
        self.field("\r\n");
        self.end();
        if !head_only {
            self.out.extend_from_slice(body);
        }
    }

    fn end(&mut self) {
        self.field(if self.close {
            "Connection: close\r\n\r\n"
        } else {
            "\r\n"
        });
    }
}

fn content_type(what: What) -> &'static str {
    match what {
        What::Robots => "text/plain",
        What::Sitemap(file) => file.content_type(),
        What::Style => "text/css",
        What::Logo => "image/gif",
        _ => "text/html; charset=utf-8",
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        421 => "Misdirected Request",
        500 => "Internal Server Error",
        _ => "Service Unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimConfig;

    #[test]
    fn slow_hosts_take_longer_and_jitter_is_no_surprise() {
        let config = SimConfig {
            latency_ms: 50,
            jitter_ms: 10,
            slow_hosts: 2,
            slow_ms: 700,
            failing_hosts: 3,
            ..SimConfig::default()
        };
        let layout = Layout::new(config, 80);
        let mut seen = std::collections::HashSet::new();
        for page in 0..100 {
            let what = Some(What::Page(page));
            let (quick, slow) = (wait(&layout, 4, what), wait(&layout, 5, what));
            assert!((50..=60).contains(&quick.as_millis()));
            assert!((750..=760).contains(&slow.as_millis()));
            assert_eq!(quick, wait(&layout, 4, what));
            seen.insert(quick);
        }
        assert_eq!(seen.len(), 11);
        let slow: Vec<u32> = (0..10).filter(|host| layout.is_slow(*host)).collect();
        let failing = (0..10).filter(|host| layout.failure(*host).is_some());
        assert_eq!(slow, [5, 6]);
        assert!(failing.eq(7..10));
    }

    #[test]
    fn escapes_are_put_in_upper_case_and_nothing_else_is() {
        assert_eq!(upper_escapes("/ab%7ecd%c3%a9e"), "/ab%7Ecd%C3%A9e");
        assert_eq!(upper_escapes("/ab%"), "/ab%");
    }
}
