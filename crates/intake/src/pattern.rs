//! The pattern of a URL: what is left when numbers, ids and dates are folded away.
//!
//! `/calendar/2031/06?view=week&sid=9f3e…` and `/calendar/1999/12?sid=07ab…&view=day` are one pattern,
//! `/calendar/{n}/{n}?sid&view`. What is done about a pattern is the business of `traps`.

use std::borrow::Cow;

use orbweaver_model::CrawlUrl;

use crate::session;

/// Parameters that are looked at; the rest are left out. A form has a dozen at most.
const MAX_NAMES: usize = 32;

/// A segment from this length on is folded whatever it says: no name of a section is that long.
const LONG: usize = 32;

/// From this length on letters mixed with digits are an id and not a name with a number.
const ID: usize = 20;

/// From this length on hexadecimal digits are an id: `deadbeef`, but not `cafe` or `added`.
const HEX_ID: usize = 8;

/// A value of this length or more that is letters mixed with digits can be a session id.
const SESSION_VALUE: usize = 16;

/// A URL with what varies folded away.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern<'a> {
    /// Host, path and sorted names of the parameters, fit to be shown.
    pub(crate) text: String,
    /// How much of the text is host and path.
    path_len: usize,
    /// The names of the parameters in the order of the URL.
    names: Vec<&'a str>,
    /// The URL without what looks like session ids, where there are any.
    pub(crate) twin: Option<String>,
}

impl<'a> Pattern<'a> {
    pub(crate) fn of(url: &'a CrawlUrl) -> Self {
        let (path, query) = parts(url);
        let mut text = String::with_capacity(url.as_str().len() + 8);
        text.push_str(url.host());
        let mut parameters = false;
        for segment in split(path.get(1..).unwrap_or_default(), b'/') {
            text.push('/');
            match split_once(segment, b';') {
                None => fold(segment, &mut text),
                // Parameters of a segment, as in `;jsessionid=…`.
                Some((name, rest)) => {
                    parameters = true;
                    fold(name, &mut text);
                    for parameter in split(rest, b';') {
                        text.push(';');
                        text.push_str(name_of(parameter));
                    }
                }
            }
        }
        let mut pattern = Self {
            path_len: text.len(),
            text,
            names: Vec::new(),
            twin: None,
        };
        let session = pattern.add_query(query);
        // Most URLs have nothing that could be a session id.
        if session || parameters || split(path, b'/').any(|segment| segment.starts_with('(')) {
            pattern.twin = twin(url.as_str());
        }
        pattern
    }

    /// Host and path alone.
    pub(crate) fn path(&self) -> &str {
        self.text.get(..self.path_len).unwrap_or_default()
    }

    /// Adds the names of a query; true when one of its values looks like a session id.
    fn add_query(&mut self, query: &'a str) -> bool {
        if query.is_empty() {
            return false;
        }
        let mut session = false;
        for argument in split(query, b'&').take(MAX_NAMES) {
            let name = name_of(argument);
            self.names.push(name);
            session |= session::is_session_name(name)
                || argument.get(name.len() + 1..).is_some_and(is_random);
        }
        if let [name] = self.names.as_slice() {
            self.text.push('?');
            // A query without a name is a value, and varies like one.
            if name.len() == query.len() {
                fold(name, &mut self.text);
            } else {
                self.text.push_str(name);
            }
            return session;
        }
        let mut sorted = self.names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        for (index, name) in sorted.into_iter().enumerate() {
            self.text.push(if index == 0 { '?' } else { '&' });
            self.text.push_str(name);
        }
        session
    }
}

/// Path and query. Found byte by byte, here and below: the searches of the standard library are made for
/// texts longer than these.
fn parts(url: &CrawlUrl) -> (&str, &str) {
    let target = url.target();
    split_once(target, b'?').unwrap_or((target, ""))
}

fn name_of(argument: &str) -> &str {
    split_once(argument, b'=').map_or(argument, |(name, _)| name)
}

fn split_once(text: &str, at: u8) -> Option<(&str, &str)> {
    let place = text.bytes().position(|b| b == at)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

fn split(text: &str, at: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, after) = match split_once(text, at) {
            Some((part, after)) => (part, Some(after)),
            None => (text, None),
        };
        rest = after;
        Some(part)
    })
}

/// Appends a segment with what varies in it replaced.
fn fold(segment: &str, out: &mut String) {
    let mut digits = 0;
    let mut hex = 0;
    let mut joints = 0;
    let mut marks = 0;
    for b in segment.bytes() {
        match b {
            b'0'..=b'9' => digits += 1,
            b'a'..=b'f' | b'A'..=b'F' => hex += 1,
            b'-' | b'_' => joints += 1,
            b'g'..=b'z' | b'G'..=b'Z' => {}
            _ => marks += 1,
        }
    }
    let len = segment.len();
    let is_hex = len >= HEX_ID && digits > 0 && hex > 0 && digits + hex + joints == len;
    let is_mixed = len >= ID && digits >= 3 && marks == 0;
    if digits == 0 && len < LONG {
        out.push_str(if is_month(segment) {
            "{month}"
        } else {
            segment
        });
    } else if digits == len {
        out.push_str("{n}");
    } else if digits >= 5 && digits + joints == len && is_date(segment) {
        out.push_str("{date}");
    } else if is_hex || is_mixed {
        out.push_str("{id}");
    } else if len >= LONG {
        out.push_str("{text}");
    } else {
        fold_numbers(segment, out);
    }
}

fn fold_numbers(segment: &str, out: &mut String) {
    let mut rest = segment;
    loop {
        let text = rest.bytes().take_while(|b| !b.is_ascii_digit()).count();
        out.push_str(rest.get(..text).unwrap_or_default());
        rest = rest.get(text..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        out.push_str("{n}");
        let number = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest = rest.get(number..).unwrap_or_default();
    }
}

/// The URL without session ids, known by their names or by their looks; none when there are none.
fn twin(url: &str) -> Option<String> {
    let stripped = session::strip_session_ids(url);
    let random = |argument: &str| {
        argument
            .split_once('=')
            .is_some_and(|(_, value)| is_random(value))
    };
    let (before, query) = stripped.split_once('?').unwrap_or((&stripped, ""));
    if query.split('&').any(random) {
        let mut twin = before.to_owned();
        let kept = query.split('&').filter(|argument| !random(argument));
        for (index, argument) in kept.enumerate() {
            twin.push(if index == 0 { '?' } else { '&' });
            twin.push_str(argument);
        }
        return Some(twin);
    }
    match stripped {
        Cow::Borrowed(_) => None,
        Cow::Owned(twin) => Some(twin),
    }
}

/// Letters and digits in such a mixture and length that nobody has typed them.
fn is_random(value: &str) -> bool {
    value.len() >= SESSION_VALUE
        && value.bytes().all(|b| b.is_ascii_alphanumeric())
        && value.bytes().filter(u8::is_ascii_digit).count() >= 3
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

#[rustfmt::skip]
const MONTHS: &[&str] = &[
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
];

/// An English name of a month, or its first three letters.
fn is_month(segment: &str) -> bool {
    let first = segment.bytes().next().map(|b| b.to_ascii_lowercase());
    (3..=9).contains(&segment.len())
        && matches!(
            first,
            Some(b'a' | b'd' | b'f' | b'j' | b'm' | b'n' | b'o' | b's')
        )
        && MONTHS.iter().any(|month| {
            month.eq_ignore_ascii_case(segment)
                || (segment.len() == 3
                    && month
                        .get(..3)
                        .is_some_and(|short| short.eq_ignore_ascii_case(segment)))
        })
}

/// `2031-06` and `2031-06-30`.
fn is_date(text: &str) -> bool {
    year_of_date(text).is_some()
}

/// The year of `2031-06` or `2031-06-30`.
fn year_of_date(text: &str) -> Option<u16> {
    let mut parts = text.split('-');
    let year = year(parts.next()?)?;
    let month = parts.next().is_some_and(|part| number_up_to(part, 12));
    let day = parts.next().is_none_or(|part| number_up_to(part, 31));
    (month && day && parts.next().is_none()).then_some(year)
}

/// Four digits that can be a year of some calendar page.
fn year(text: &str) -> Option<u16> {
    let digits = text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|year| digits && *year >= 1000)
}

/// One or two digits from 1 to `max`.
fn number_up_to(text: &str, max: u8) -> bool {
    text.len() <= 2 && text.parse::<u8>().is_ok_and(|n| (1..=max).contains(&n))
}

/// Words in a path that make two numbers a month: without one, `/thread/4711/12` is a page of a thread.
const CALENDAR_WORDS: &[&str] = &[
    "agenda", "calend", "event", "kalender", "month", "schedule", "termin",
];

/// The year of a page of a calendar, when the URL is one beyond doubt: a path that *ends* in a date, or
/// parameters that are one. `/1865/04/15/a-headline` is an article and has none.
pub(crate) fn calendar_year(url: &CrawlUrl) -> Option<u16> {
    let mut run = 0;
    let four_digits = url.target().bytes().any(|b| {
        run = if b.is_ascii_digit() { run + 1 } else { 0 };
        run == 4
    });
    if !four_digits {
        return None;
    }
    let (path, query) = parts(url);
    path_year(path).or_else(|| query_year(query))
}

fn path_year(path: &str) -> Option<u16> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut back = path.rsplit('/');
    let last = back.next()?;
    if let Some(year) = year_of_date(last) {
        // `/4711-12` alone may be the number of a part.
        return (last.len() > 7 || says_calendar(path)).then_some(year);
    }
    let before = back.next()?;
    if let Some(year) = back.next().and_then(year)
        && number_up_to(before, 12)
        && number_up_to(last, 31)
        && (before.len() == 2 && last.len() == 2 || says_calendar(path))
    {
        return Some(year);
    }
    year(before).filter(|_| number_up_to(last, 12) && says_calendar(path))
}

fn says_calendar(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    CALENDAR_WORDS.iter().any(|word| lower.contains(word))
        || lower.split('/').any(|segment| segment == "cal")
}

/// A date in one parameter, or a year in one and a month in another.
fn query_year(query: &str) -> Option<u16> {
    let mut found = None;
    let mut month = false;
    for (name, value) in query.split('&').filter_map(|arg| arg.split_once('=')) {
        if let Some(year) = year_of_date(value) {
            return Some(year);
        }
        if name.eq_ignore_ascii_case("year") || name.eq_ignore_ascii_case("y") {
            found = year(value);
        }
        month |= name.eq_ignore_ascii_case("month") || name.eq_ignore_ascii_case("m");
    }
    found.filter(|_| month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(target: &str) -> CrawlUrl {
        CrawlUrl::from_canonical(&format!("http://h{target}")).unwrap()
    }

    #[test]
    fn what_varies_is_folded() {
        for (target, pattern) in [
            ("/", "h/"),
            ("/about", "h/about"),
            ("/article/12345", "h/article/{n}"),
            ("/river-17.html", "h/river-{n}.html"),
            ("/a1b2/", "h/a{n}b{n}/"),
            ("/day/2031-06-30", "h/day/{date}"),
            ("/day/20310630", "h/day/{n}"),
            ("/2031/june/3", "h/{n}/{month}/{n}"),
            ("/c/deadbeef01", "h/c/{id}"),
            ("/c/5f0e7b1c-09a2-4a3f-8d5e-0123456789ab", "h/c/{id}"),
            ("/c/added", "h/c/added"),
            ("/x12345678", "h/x{n}"),
            ("/s/Zk3vQ9sLm2pXw8rTy5uB", "h/s/{id}"),
            ("/a-headline-of-more-than-thirty-two-letters", "h/{text}"),
            ("/list?b=1&a=2&b=3", "h/list?a&b"),
            ("/list?f1=1", "h/list?f1"),
            ("/list?12", "h/list?{n}"),
            ("/p;jsessionid=AB12?x=1", "h/p;jsessionid?x"),
        ] {
            assert_eq!(Pattern::of(&url(target)).text, pattern, "{target}");
        }
        let url = url("/list/7?b=1&a=2");
        let pattern = Pattern::of(&url);
        assert_eq!(
            (pattern.path(), &*pattern.names),
            ("h/list/{n}", &["b", "a"][..])
        );
    }

    #[test]
    fn session_ids_are_known_by_name_or_by_look() {
        for (target, twin) in [
            ("/p;jsessionid=1", Some("/p")),
            ("/p?PHPSESSID=1&x=2", Some("/p?x=2")),
            ("/p?a=1&x=9f3e77aa01bc44d2&b", Some("/p?a=1&b")),
            ("/p?sid=1&x=9f3e77aa01bc44d2", Some("/p")),
            ("/p?x=9f3e77aa", None),
            ("/p?q=internationalisation", None),
            ("/p?id=1234567890123456", None),
        ] {
            let twin = twin.map(|target| format!("http://h{target}"));
            assert_eq!(Pattern::of(&url(target)).twin, twin, "{target}");
        }
    }

    #[test]
    fn years_of_calendars_and_of_nothing_else() {
        for (target, year) in [
            ("/calendar/2047/05", Some(2047)),
            ("/calendar/2047/5/", Some(2047)),
            ("/cal/1907/12/31", Some(1907)),
            ("/2047/05/31", Some(2047)),
            ("/2047-05-31", Some(2047)),
            ("/events/2047-05", Some(2047)),
            ("/x?date=2047-05-31", Some(2047)),
            ("/x?month=5&year=2047", Some(2047)),
            // Articles, threads, parts, films, numbers.
            ("/1865/04/15/a-headline.html", None),
            ("/thread/4711/12", None),
            ("/thread/4711/1/2", None),
            ("/parts/4711-12", None),
            ("/films?year=1950", None),
            ("/article/1950", None),
            ("/2047/13/31", None),
            ("/calendar/0047/05", None),
            ("/", None),
        ] {
            assert_eq!(calendar_year(&url(target)), year, "{target}");
        }
    }
}
