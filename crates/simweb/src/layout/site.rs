//! Honest sites of the shapes that real ones have and a random graph has not: little text in much frame, thousands
//! of links to a page, pictures without words, filters, chains, folders, two names for one site, seeds that know
//! each other.
//!
//! Each is finite, and all its pages can be reached from its first one: whoever misses a page has taken an honest
//! site for a trap. Its pages are counted like all others.

use std::collections::HashMap;

use crate::layout::Layout;
use crate::place::{Place, What};
use crate::rng::{Rng, mix};
use crate::shape::Shape;
use crate::trap::text;
use crate::words;

const INDEXES: u32 = 10;
const DOCUMENTS: u32 = 300;
const FRAGMENTS: u32 = 250;
const GOODS: u32 = 600;
const ON_A_LIST: u32 = 20;
const PICTURES: u32 = 1500;
const LINKS_OF_CHAIN: u32 = 3000;
/// Levels of folders below the root.
const LEVELS: u32 = 9;
const PAGES_OF_APEX: u32 = 60;
const PAGES_OF_SEED: u32 = 40;

/// The filters and their values.
const FILTERS: [(&str, [&str; 4]); 4] = [
    ("brand", ["acme", "birch", "comet", "delta"]),
    ("colour", ["red", "green", "blue", "white"]),
    ("size", ["small", "medium", "large", "huge"]),
    ("sort", ["name", "price", "age", "rating"]),
];

/// Paths and queries of all pages, the first one `/`.
fn targets(shape: Shape) -> Vec<String> {
    let numbered = |before: &str, count: u32, after: &str| -> Vec<String> {
        (0..count).map(|n| format!("{before}{n}{after}")).collect()
    };
    let mut targets = vec!["/".to_owned()];
    targets.extend(match shape {
        Shape::Fragments => {
            let mut all = numbered("/index/", INDEXES, ".html");
            all.extend(numbered("/doc/", DOCUMENTS, ".html"));
            all
        }
        Shape::Catalogue => {
            let mut all = numbered("/list/", GOODS / ON_A_LIST, "");
            all.extend(numbered("/goods/", GOODS, ".html"));
            all
        }
        Shape::Gallery => numbered("/photo/", PICTURES, ".html"),
        Shape::Facets => (1..5_u32.pow(4)).map(filtered).collect(),
        Shape::Chain => numbered("/story/part-", LINKS_OF_CHAIN, ""),
        Shape::Folders => (2..1 << (LEVELS + 1)).map(folder).collect(),
        Shape::Apex => numbered("/page/", PAGES_OF_APEX, ".html"),
        Shape::Seeds => numbered("/", PAGES_OF_SEED, ".html"),
    });
    targets
}

/// The list with a number, whose digits in base five say which value each filter has.
fn filtered(number: u32) -> String {
    let mut rest = number;
    let mut query = String::new();
    for (name, values) in FILTERS {
        if let Some(value) = (rest % 5).checked_sub(1) {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            query.push_str(values.get(value as usize).copied().unwrap_or_default());
        }
        rest /= 5;
    }
    format!("/goods{query}")
}

/// The folder with a number: its binary digits behind the first one are its path.
fn folder(number: u32) -> String {
    let digits = format!("{number:b}");
    let names = digits.chars().skip(1).map(|digit| match digit {
        '0' => "left/",
        _ => "right/",
    });
    format!("/{}", names.collect::<String>())
}

/// A host of a shape.
pub(crate) struct Site {
    pub(crate) shape: Shape,
    /// The number of its host, and of the first host of its shape.
    host: u32,
    first: u32,
    targets: Vec<String>,
    by_target: HashMap<String, u32>,
}

impl Site {
    /// The sites of the shapes, for hosts from this number on.
    pub(crate) fn all(shapes: &[Shape], from: u32) -> Vec<Self> {
        let mut sites = Vec::new();
        for shape in shapes {
            let first = from + sites.len() as u32;
            for nth in 0..shape.hosts() {
                let targets = targets(*shape);
                sites.push(Self {
                    shape: *shape,
                    host: first + nth,
                    first,
                    by_target: targets.iter().cloned().zip(0..).collect(),
                    targets,
                });
            }
        }
        sites
    }

    /// Whether it only redirects to the host before it, its other name.
    pub(crate) fn is_alias(&self) -> bool {
        self.shape == Shape::Apex && self.host > self.first
    }

    /// The name of its host under a domain of its own, when it needs one.
    pub(crate) fn name(&self) -> Option<String> {
        let www = if self.is_alias() { "" } else { "www." };
        (self.shape == Shape::Apex).then(|| format!("{www}apex{}.test", self.first))
    }

    /// Its first page, or what leads there.
    pub(crate) fn root(&self) -> Place {
        let what = if self.is_alias() {
            What::Away(0)
        } else {
            What::Page(0)
        };
        Place {
            host: self.host,
            what,
        }
    }

    pub(crate) fn pages(&self) -> u32 {
        if self.is_alias() {
            0
        } else {
            self.targets.len() as u32
        }
    }

    pub(crate) fn target(&self, page: u32) -> &str {
        self.targets.get(page as usize).map_or("/", String::as_str)
    }

    pub(crate) fn find(&self, target: &str) -> Option<What> {
        if self.shape == Shape::Gallery && target.starts_with("/img/") {
            return Some(What::Logo);
        }
        let page = *self.by_target.get(target)?;
        Some(if self.is_alias() {
            What::Away(page)
        } else {
            What::Page(page)
        })
    }

    /// A page.
    pub(crate) fn body(&self, layout: &Layout, page: u32) -> Vec<u8> {
        let mut html = Html::new(layout.config.seed, self.shape);
        let last = self.pages().saturating_sub(1);
        let target = |page: u32| self.target(page).to_owned();
        match self.shape {
            Shape::Fragments => html.fragments(page),
            Shape::Catalogue => html.catalogue(page),
            Shape::Gallery => html.gallery(page),
            Shape::Facets => html.facets(page),
            Shape::Chain => {
                html.frame(400);
                html.words(page, 12);
                if page < last {
                    html.link(&target(page + 1), "next");
                }
            }
            Shape::Folders => {
                html.text("<h1>Index of ");
                html.text(self.target(page));
                html.text("</h1>\n");
                for child in folders_below(page) {
                    let name = if child % 2 == 0 { "right/" } else { "left/" };
                    html.link(name, name);
                }
            }
            Shape::Apex => {
                html.words(page, 20);
                let names = [self.host, self.host + 1].map(|host| layout.name(host));
                for (nth, to) in [(page * 2 + 1), (page * 2 + 2), page / 2]
                    .into_iter()
                    .enumerate()
                {
                    // By turns of the page under one name or the other.
                    let name = names.get((page as usize + nth) % 2).copied().flatten();
                    if let Some(name) = name.filter(|_| to <= last) {
                        html.link(
                            &format!("http://{}{}", name.authority, self.target(to)),
                            "page",
                        );
                    }
                }
            }
            Shape::Seeds => {
                html.words(page, 20);
                for nth in 0..4 {
                    if let Some(name) = layout.name(self.first + nth) {
                        let to = (page * 3 + 1 + nth).min(last);
                        for to in [0, to, (page + 1).min(last)] {
                            let url = format!("http://{}{}", name.authority, self.target(to));
                            html.link(&url, "elsewhere");
                        }
                    }
                }
            }
        }
        html.finish()
    }
}

/// Numbers of the pages of the folders in a folder; page n is folder n + 1 of the tree.
fn folders_below(page: u32) -> impl Iterator<Item = u32> {
    let folder = page + 1;
    [2 * folder - 1, 2 * folder]
        .into_iter()
        .filter(|page| *page < (1 << (LEVELS + 1)) - 1)
}

/// A page that is being written.
struct Html {
    seed: u64,
    shape: Shape,
    out: String,
}

impl Html {
    fn new(seed: u64, shape: Shape) -> Self {
        Self {
            seed,
            shape,
            out: "<!DOCTYPE html>\n<html><head><title>A site</title></head>\n<body>\n".to_owned(),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn link(&mut self, href: &str, name: &str) {
        self.text("<a href=\"");
        self.text(&href.replace('&', "&amp;"));
        self.text("\">");
        self.text(name);
        self.text("</a>\n");
    }

    fn rng(&self, page: u32, part: u64) -> Rng {
        Rng::new(mix([self.seed, self.shape as u64, page.into(), 90 + part]))
    }

    /// What all pages of the site share.
    fn frame(&mut self, count: usize) {
        let frame = text(self.rng(u32::MAX, 1), count);
        self.text("<nav>");
        self.text(&frame);
        self.text("</nav>\n");
    }

    /// Words of a page of its own. They are drawn from few, so two of them say which page it is.
    fn words(&mut self, page: u32, count: usize) {
        let own = text(self.rng(page, 2), count.saturating_sub(2));
        let noun = |n: u32| words::for_path(n.into());
        let text = format!("<p>{} {} {own}</p>\n", noun(page % 53), noun(page / 53));
        self.text(&text);
    }

    fn fragments(&mut self, page: u32) {
        match page {
            0 => {
                for index in 0..INDEXES {
                    self.link(&format!("/index/{index}.html"), "index");
                }
            }
            1..=INDEXES => {
                self.words(page, 10);
                for document in 0..DOCUMENTS {
                    for fragment in 0..FRAGMENTS {
                        let href = format!("../doc/{document}.html#term-{fragment}");
                        self.link(&href, "term");
                    }
                }
            }
            _ => {
                self.words(page, 30);
                self.link("/", "contents");
                self.link("#term-1", "top");
            }
        }
    }

    fn catalogue(&mut self, page: u32) {
        let lists = GOODS / ON_A_LIST;
        self.frame(150);
        match page {
            0 => self.link("/list/0", "goods"),
            list if list <= lists => {
                let list = list - 1;
                for nth in 0..ON_A_LIST {
                    let goods = list * ON_A_LIST + nth;
                    self.link(&format!("/goods/{goods}.html"), "more");
                }
                if list + 1 < lists {
                    self.link(&format!("/list/{}", list + 1), "next");
                }
            }
            _ => self.words(page, 5),
        }
    }

    fn gallery(&mut self, page: u32) {
        let picture = page.saturating_sub(1);
        self.text(&format!("<img src=\"/img/{picture}.jpg\">\n"));
        for to in [picture.checked_sub(1), Some(picture + 1)]
            .into_iter()
            .flatten()
        {
            if to < PICTURES {
                self.link(&format!("/photo/{to}.html"), "<img src=\"/img/arrow.gif\">");
            }
        }
        if page == 0 {
            self.link("/photo/0.html", "");
        }
    }

    fn facets(&mut self, page: u32) {
        self.frame(60);
        self.words(page, 4);
        let mut step = 1;
        for (name, values) in FILTERS {
            let digit = page / step % 5;
            let without = page - digit * step;
            // Each value of each filter, and the filter taken away.
            for (value, label) in (1..).zip(values) {
                let list = without + value * step;
                self.link(&filtered(list), &format!("{name} {label}"));
            }
            if without > 0 {
                self.link(&filtered(without), &format!("any {name}"));
            } else {
                self.link("/", &format!("any {name}"));
            }
            step *= 5;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.text("</body></html>\n");
        self.out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use url::Url;

    use super::*;
    use crate::SimConfig;
    use crate::web::Web;

    fn hrefs(page: &[u8]) -> Vec<String> {
        let page = String::from_utf8(page.to_vec()).unwrap();
        let hrefs = page.split("href=\"").skip(1);
        hrefs
            .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
            .collect()
    }

    /// Reads as a stranger would, with the parser of the URL standard alone.
    #[test]
    fn every_page_can_be_reached_and_no_two_are_the_same() {
        let config = SimConfig {
            hosts: 1,
            pages: 1,
            port: 80,
            links_per_page: 0,
            shapes: Shape::ALL.to_vec(),
            ..SimConfig::default()
        };
        let web = Web::new(config).unwrap();
        let roots = Shape::ALL.map(|shape| web.shape_root(shape).unwrap());
        let mut known = HashSet::from(roots.clone());
        let mut queue = VecDeque::from(roots);
        let mut fetched = HashSet::new();
        let mut bodies = HashSet::new();
        while let Some(url) = queue.pop_front() {
            let base = Url::parse(&url).unwrap();
            let body = match web.location_of(&url) {
                Some(to) => format!("<a href=\"{to}\">").into_bytes(),
                None => {
                    fetched.insert(url.clone());
                    web.body_of(&url).unwrap_or_else(|| panic!("{url}"))
                }
            };
            for href in hrefs(&body) {
                let Ok(mut to) = base.join(&href) else {
                    continue;
                };
                to.set_fragment(None);
                if to.scheme() == "http" && known.insert(to.to_string()) {
                    queue.push_back(to.to_string());
                }
            }
            bodies.insert(body);
        }
        let mut expected: HashSet<String> = web.expected_pages().collect();
        expected.remove(&web.url(0, 0));
        assert_eq!(fetched, expected);
        let all = 311 + 631 + 1501 + 625 + 3001 + 1023 + 61 + 4 * 41;
        assert_eq!(expected.len(), all);
        // The four seeds are mirrors of each other, and say so nowhere.
        assert!(bodies.len() > all - 4 * 41, "{}", bodies.len());
    }
}
