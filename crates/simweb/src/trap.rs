//! Hosts without end, each with some honest pages: what a crawler must bound and what it must not miss.
//!
//! A trap answers from the path it is asked for and remembers nothing. Its honest pages hang on its root.

use crate::place::What;
use crate::rng::{Rng, mix};
use crate::words;

/// Honest pages of each trap.
pub(crate) const GOOD: u32 = 20;

/// Months by their names.
#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
];

/// Filters that can be added to any list, also when they are there already.
const FILTERS: [&str; 5] = ["colour", "size", "brand", "price", "sort"];

/// One kind of endless site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// Every month has a next and a previous one.
    Calendar,
    /// Every link carries a session id of its own.
    Session,
    /// Every page links to pages in a directory below it.
    Growing,
    /// Every list can be filtered further, in any order.
    Facets,
    /// Every path is answered with the same page, which links to paths nobody has asked for.
    Soft404,
    /// Every list has a next page.
    Pagination,
}

impl Trap {
    pub(crate) const ALL: [Self; 6] = [
        Self::Calendar,
        Self::Session,
        Self::Growing,
        Self::Facets,
        Self::Soft404,
        Self::Pagination,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calendar => "calendar",
            Self::Session => "session",
            Self::Growing => "growing",
            Self::Facets => "facets",
            Self::Soft404 => "soft404",
            Self::Pagination => "pagination",
        }
    }

    /// What a path and query stand for; none when nobody links to them.
    pub(crate) fn find(self, target: &str) -> Option<What> {
        if let Some(number) = target.strip_prefix("/good/") {
            let number = number.parse().ok().filter(|number| *number < GOOD);
            return number.map(What::Good);
        }
        let linked = target == "/"
            || match self {
                Self::Calendar => target.starts_with("/calendar/"),
                Self::Session => target.starts_with("/item/"),
                Self::Growing => target.starts_with("/in/"),
                Self::Facets => target.starts_with("/list?"),
                Self::Soft404 => target.ends_with('/'),
                Self::Pagination => target.starts_with("/list?page="),
            };
        linked.then_some(What::Lure)
    }

    /// The page at a path and query that `find` knows.
    pub(crate) fn page(self, seed: u64, target: &str, what: What) -> Vec<u8> {
        let own = Rng::new(mix([seed, self as u64, 0, 77]));
        let frame = text(own, 90);
        if let What::Good(number) = what {
            let own = Rng::new(mix([seed, self as u64, number.into(), 78]));
            return html("Good", &frame, &text(own, 60), &[]);
        }
        let mut links = self.links(seed, target);
        if target == "/" {
            links.extend((0..GOOD).map(|number| format!("/good/{number}")));
        }
        let (title, text) = self.content(seed, target);
        html(&title, &frame, &text, &links)
    }

    fn links(self, seed: u64, target: &str) -> Vec<String> {
        let mut rng = Rng::new(mix([seed, self as u64, hash(target), 79]));
        let base = target.trim_end_matches('/');
        match self {
            Self::Calendar => {
                let (year, month) = date(target);
                let at = |months: u32| format!("/calendar/{}/{}", months / 12, months % 12 + 1);
                let now = year * 12 + month;
                [now + 1, now.saturating_sub(1), now + 12].map(at).into()
            }
            Self::Session => (0..6)
                .map(|_| format!("/item/{}?sid={:016x}", rng.below(12), rng.next() | 1 << 63))
                .collect(),
            Self::Growing => {
                let base = if base.is_empty() { "/in" } else { base };
                vec![format!("{base}/left"), format!("{base}/right")]
            }
            Self::Facets => FILTERS
                .map(|filter| {
                    let value = rng.below(5);
                    match target.split_once('?') {
                        Some((_, query)) => format!("/list?{query}&{filter}={value}"),
                        None => format!("/list?{filter}={value}"),
                    }
                })
                .into(),
            Self::Soft404 => (0..3)
                .map(|_| {
                    let [one, two, three] =
                        [rng.next(), rng.next(), rng.next()].map(words::for_path);
                    format!("/{one}/{two}-{three}/")
                })
                .collect(),
            Self::Pagination => {
                let page = number(target);
                vec![format!("/list?page={}", page + 1)]
            }
        }
    }

    /// Title and text, which tell something new only where a site of this kind would.
    fn content(self, seed: u64, target: &str) -> (String, String) {
        match self {
            Self::Calendar => {
                let (year, month) = date(target);
                let name = MONTHS.get(month as usize).copied().unwrap_or("June");
                let days: Vec<String> = (1..=30).map(|day| day.to_string()).collect();
                let text = format!("Mo Tu We Th Fr Sa Su {} No events.", days.join(" "));
                (format!("{name} {year}"), text)
            }
            Self::Session => {
                let item = number(target.split('?').next().unwrap_or_default());
                let own = Rng::new(mix([seed, self as u64, item.into(), 80]));
                (format!("Item {item}"), text(own, 60))
            }
            // What is on the list depends on the filters, whatever their order.
            Self::Facets => {
                let query = target.split_once('?').map_or("", |(_, query)| query);
                let filters = query.split('&').map(hash).fold(0, u64::wrapping_add);
                let own = Rng::new(mix([seed, self as u64, filters, 81]));
                ("Goods".to_owned(), text(own, 60))
            }
            Self::Growing => (
                "A room".to_owned(),
                "Two doors lead out of here.".to_owned(),
            ),
            Self::Soft404 => (
                "Sorry".to_owned(),
                format!("We could not find {target} for you."),
            ),
            Self::Pagination => (
                format!("Page {}", number(target)),
                "Nothing found.".to_owned(),
            ),
        }
    }
}

/// Year, and month from zero, of a page of the calendar.
fn date(target: &str) -> (u32, u32) {
    let mut parts = target.rsplit('/').map(|part| part.parse().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(month @ 1..=12), Some(year)) => (u32::min(year, 1_000_000), month - 1),
        _ => (2024, 0),
    }
}

/// The number at the end.
fn number(text: &str) -> u32 {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let number = text.get(digits..).and_then(|digits| digits.parse().ok());
    u32::min(number.unwrap_or(0), 1_000_000_000)
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0, |hash, b| mix([hash, b.into(), 0, 0]))
}

pub(crate) fn text(mut rng: Rng, count: usize) -> String {
    let mut word = || match rng.below(2) {
        0 => words::frequent(&mut rng),
        _ => words::for_path(rng.next()),
    };
    let words: Vec<&str> = (0..count).map(|_| word()).collect();
    words.join(" ")
}

fn html(title: &str, frame: &str, text: &str, links: &[String]) -> Vec<u8> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html><head><title>{title}</title></head>\n<body><header>{frame}</header>\n\
         <main><h1>{title}</h1><p>{text}</p>\n"
    );
    for link in links {
        page.push_str("<a href=\"");
        page.push_str(&link.replace('&', "&amp;"));
        page.push_str("\">more</a>\n");
    }
    page.push_str("</main></body></html>\n");
    page.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(page: &[u8]) -> Vec<String> {
        let page = String::from_utf8(page.to_vec()).unwrap();
        let hrefs = page.split("href=\"").skip(1);
        hrefs
            .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
            .collect()
    }

    #[test]
    fn every_trap_goes_on_for_ever_and_knows_what_it_links() {
        for trap in Trap::ALL {
            let mut known = std::collections::HashSet::from(["/".to_owned()]);
            let mut queue = std::collections::VecDeque::from(["/".to_owned()]);
            let mut good = 0;
            for _ in 0..1500 {
                let target = queue.pop_front().expect("no end");
                let what = trap.find(&target).unwrap_or_else(|| panic!("{target}"));
                good += u32::from(matches!(what, What::Good(_)));
                for link in links(&trap.page(1, &target, what)) {
                    if known.insert(link.clone()) {
                        queue.push_back(link);
                    }
                }
            }
            assert_eq!(good, GOOD, "{trap:?}");
            assert_eq!(trap.find("/good/20"), None);
        }
    }
}
