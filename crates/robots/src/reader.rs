//! From the bytes of a robots.txt to the lines that concern one product token.
//!
//! The grammar is RFC 9309 section 2.2, read as leniently as the parser that Google publishes: its list
//! of frequent misspellings, white space instead of the colon, every kind of line end.

use std::time::Duration;

/// What a file says to one product token.
#[derive(Debug, Default)]
pub(super) struct Reading<'a> {
    /// Value and whether it is an Allow, in the order of the file.
    pub(super) rules: Vec<(&'a [u8], bool)>,
    /// The longest sane Crawl-delay.
    pub(super) crawl_delay: Option<Duration>,
    /// Sitemap values that are text.
    pub(super) sitemaps: Vec<Box<str>>,
}

enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// The words for each key. The misspellings are those that Google's parser accepts, and no others:
/// each further guess would be a rule that nobody wrote.
const WORDS: &[(&str, Key)] = &[
    ("user-agent", Key::UserAgent),
    ("useragent", Key::UserAgent),
    ("user agent", Key::UserAgent),
    ("allow", Key::Allow),
    ("disallow", Key::Disallow),
    ("dissallow", Key::Disallow),
    ("dissalow", Key::Disallow),
    ("disalow", Key::Disallow),
    ("diasllow", Key::Disallow),
    ("disallaw", Key::Disallow),
    ("crawl-delay", Key::CrawlDelay),
    ("sitemap", Key::Sitemap),
    ("site-map", Key::Sitemap),
];

/// Reads at most `max` bytes of `body` for `agent`.
pub(super) fn read<'a>(body: &'a [u8], agent: &str, max: usize) -> Reading<'a> {
    let agent = product_token(agent.as_bytes());
    let mut ours = Reading::default();
    let mut everyones = Reading::default();
    let mut sitemaps = Vec::new();
    let mut named = false;
    let mut group = Group::default();
    for (key, value) in lines(cut(body, max)).filter_map(split) {
        match key {
            Key::UserAgent => {
                group.agent_line();
                let token = product_token(value);
                group.ours |= !token.is_empty() && token.eq_ignore_ascii_case(agent);
                group.everyones |= is_star(value);
                named |= group.ours;
            }
            Key::Allow | Key::Disallow => {
                group.rule_line();
                if !value.is_empty() {
                    let rule = (value, matches!(key, Key::Allow));
                    group.each(&mut ours, &mut everyones, |to| to.rules.push(rule));
                }
            }
            // RFC 9309 section 2.2.4: a record outside the protocol does not end a group.
            Key::CrawlDelay => {
                if let Some(delay) = seconds(value) {
                    group.each(&mut ours, &mut everyones, |to| {
                        to.crawl_delay = to.crawl_delay.max(Some(delay));
                    });
                }
            }
            Key::Sitemap => sitemaps.extend(std::str::from_utf8(value).ok().map(Box::from)),
        }
    }
    let chosen = if named { ours } else { everyones };
    Reading { sitemaps, ..chosen }
}

/// Whom the lines being read are for.
#[derive(Default)]
struct Group {
    ours: bool,
    everyones: bool,
    /// A rule has been seen, so that the next user-agent line opens another group.
    ruled: bool,
}

impl Group {
    fn agent_line(&mut self) {
        if self.ruled {
            *self = Self::default();
        }
    }

    fn rule_line(&mut self) {
        self.ruled = true;
    }

    fn each<'a>(
        &self,
        ours: &mut Reading<'a>,
        everyones: &mut Reading<'a>,
        mut change: impl FnMut(&mut Reading<'a>),
    ) {
        if self.ours {
            change(ours);
        }
        if self.everyones {
            change(everyones);
        }
    }
}

/// The first `max` bytes without the line that the cut would split: half a rule is another rule.
fn cut(body: &[u8], max: usize) -> &[u8] {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let Some(head) = body.get(..max).filter(|_| body.len() > max) else {
        return body;
    };
    let end = head.iter().rposition(|byte| is_line_end(*byte));
    head.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// A NUL ends a line too: what stands before it was meant, what follows is anyone's guess.
fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| is_line_end(*byte))
}

fn split(line: &[u8]) -> Option<(&'static Key, &[u8])> {
    let line = line.split(|byte| *byte == b'#').next()?.trim_ascii();
    let (key, value) = match memchr::memchr(b':', line) {
        Some(colon) => (line.get(..colon)?, line.get(colon + 1..)?),
        None => two_words(line)?,
    };
    let key = key.trim_ascii();
    WORDS
        .iter()
        .find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(key))
        .map(|(_, found)| (found, value.trim_ascii()))
}

/// A line without a colon counts when it is exactly a key and a value.
fn two_words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let gap = line.iter().position(u8::is_ascii_whitespace)?;
    let value = line.get(gap..)?.trim_ascii();
    let single = !value.iter().any(u8::is_ascii_whitespace);
    single.then_some((line.get(..gap)?, value))
}

/// The part of a user-agent value that names a product: `Name/1.0 (like Other)` is `Name`.
fn product_token(value: &[u8]) -> &[u8] {
    let in_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let end = value.iter().position(|byte| !in_token(byte));
    value.get(..end.unwrap_or(value.len())).unwrap_or_default()
}

fn is_star(value: &[u8]) -> bool {
    value
        .strip_prefix(b"*")
        .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Seconds, whole or not; what is negative, endless or no number is nothing.
fn seconds(value: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    // More than a Duration holds is still a wish for a very long delay; the caller caps it.
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
