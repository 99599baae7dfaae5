//! What a document refers to, read with other people's parsers: html5ever for HTML, quick-xml for XML.
//!
//! Nothing of the crawler is used here; both follow the same standards or differ in a test. Which element is what
//! kind of reference is said once more, in `element`.

use std::collections::HashSet;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::css;
use super::html::html;
use super::xml::xml;

/// The place of what styles refer to.
pub(crate) const STYLE: &str = "url()";

/// What a reference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Way {
    /// Text that only looks like a reference.
    Unreal,
    /// A part of the page: a picture, a script, a style sheet. Nothing is followed in it but what its styles need.
    Part,
    /// Another page.
    Page,
}

/// A reference as it stands in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) href: String,
    pub(crate) way: Way,
    /// Where it stood, for the report: `<a>`, `<img>`, `url()`.
    pub(crate) place: String,
    /// Whether the page asks not to follow it.
    pub(crate) nofollow: bool,
}

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) encoding: &'static Encoding,
    pub(crate) base: Option<String>,
    pub(crate) found: Vec<Found>,
    /// What looks like a reference in the text of scripts and comments, where nothing is one.
    pub(crate) unreal: Vec<String>,
}

/// Reads a document of this type; nothing is found in what is neither markup nor a style sheet.
pub(crate) fn read(media: &str, body: &[u8]) -> Document {
    let encoding = charset(media, body);
    let mut page = PageReader::default();
    let text = encoding.decode(body).0;
    match media {
        "text/html" => html(&text, &mut page),
        "application/xhtml+xml" | "image/svg+xml" | "application/xml" => {
            xml(media, &text, &mut page);
        }
        "text/css" => page.style(&text),
        _ => {}
    }
    if page.nofollow {
        for found in &mut page.found {
            found.nofollow |= found.way == Way::Page && found.place != "feed";
        }
    }
    // A page of an index has a thousand links to places in ten others.
    let mut seen = HashSet::new();
    for found in &mut page.found {
        let end = found.href.find('#').unwrap_or(found.href.len());
        found.href.truncate(end);
    }
    page.found.retain(|found| {
        !found.href.trim_ascii().is_empty()
            && seen.insert((found.href.clone(), found.way, found.nofollow))
    });
    Document {
        encoding,
        base: page.base,
        found: page.found,
        unreal: page.unreal,
    }
}

/// The charset of a document by its mark, then by what it says of itself, then by whether it can be UTF-8.
fn charset(media: &str, body: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    // The standard looks at as much; behind it, browsers guess.
    let start = String::from_utf8_lossy(body.get(..1024).unwrap_or(body)).to_ascii_lowercase();
    let says = |mark: &str| {
        let after = start.split_once(mark)?.1.trim_start();
        let after = after.strip_prefix('=')?.trim_start();
        let label = after.trim_start_matches(['"', '\'']);
        let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c)));
        Encoding::for_label(label.get(..end.unwrap_or(label.len()))?.as_bytes())
    };
    let said = match media {
        "text/css" => None,
        "text/html" => says("charset"),
        _ => says("encoding"),
    };
    // A page that can be read so far as to say that it is UTF-16 is not.
    match said {
        Some(encoding) if encoding.is_ascii_compatible() => encoding,
        Some(_) => UTF_8,
        None if std::str::from_utf8(body).is_ok() => UTF_8,
        None => WINDOWS_1252,
    }
}

/// What is gathered from the elements of a document.
#[derive(Debug, Default)]
pub(crate) struct PageReader {
    base: Option<String>,
    nofollow: bool,
    pub(crate) found: Vec<Found>,
    unreal: Vec<String>,
}

impl PageReader {
    fn push(&mut self, tag: &str, href: Option<&str>, way: Way) {
        if let Some(href) = href {
            self.found.push(Found {
                href: href.to_owned(),
                way,
                place: format!("<{tag}>"),
                nofollow: false,
            });
        }
    }

    /// A link, which its `rel` may ask not to follow.
    fn link(&mut self, tag: &str, href: Option<&str>, nofollow: bool) {
        self.push(tag, href, Way::Page);
        if let (Some(_), Some(last)) = (href, self.found.last_mut()) {
            last.nofollow = nofollow;
        }
    }

    /// Looks for what others take for tags in the text of a script or a comment.
    pub(crate) fn unreal(&mut self, text: &str) {
        for mark in ["href=", "src="] {
            for (at, _) in text.match_indices(mark) {
                let value = text[at + mark.len()..].trim_start_matches(['\\', '"', '\'', ' ']);
                let end = value.find(|c: char| c.is_whitespace() || "\\\"'<>#".contains(c));
                self.unreal
                    .push(value[..end.unwrap_or(value.len())].to_owned());
            }
        }
    }

    pub(crate) fn style(&mut self, text: &str) {
        for href in css::references(text) {
            self.found.push(Found {
                href,
                way: Way::Part,
                place: STYLE.to_owned(),
                nofollow: false,
            });
        }
    }

    /// Takes in an element. `get` knows its attributes.
    pub(crate) fn element<'a>(&mut self, tag: &str, get: impl Fn(&str) -> Option<&'a str>) {
        let rel = get("rel").unwrap_or_default().to_ascii_lowercase();
        let rel: Vec<&str> = rel
            .split(|c: char| c.is_ascii_whitespace() || c == ',')
            .collect();
        let nofollow = ["nofollow", "ugc", "sponsored"]
            .iter()
            .any(|word| rel.contains(word));
        match tag {
            "a" | "area" => {
                let href = get("href").or_else(|| get("xlink:href"));
                self.link(tag, href, nofollow);
            }
            "iframe" | "frame" => {
                self.push(tag, get("src"), Way::Page);
                if let Some(inner) = get("srcdoc") {
                    // A page in an attribute, with the base of the page around it.
                    let mut page = PageReader::default();
                    html(inner, &mut page);
                    self.found.extend(page.found.into_iter().map(|found| Found {
                        place: "<iframe srcdoc>".to_owned(),
                        ..found
                    }));
                }
            }
            "form" => {
                let method = get("method").unwrap_or("get");
                if !method.eq_ignore_ascii_case("post") && !method.eq_ignore_ascii_case("dialog") {
                    self.link(tag, get("action"), nofollow);
                }
            }
            "link" => {
                match link_way(&rel, get("as").unwrap_or_default()) {
                    Some(Way::Page) => self.link(tag, get("href"), nofollow),
                    Some(way) => self.push(tag, get("href"), way),
                    None => {}
                }
                self.candidates(tag, get("imagesrcset"));
            }
            "meta" => self.meta(&get),
            "base" if self.base.is_none() => self.base = get("href").map(str::to_owned),
            "script" | "audio" | "embed" | "track" => self.push(tag, get("src"), Way::Part),
            "object" => self.push(tag, get("data"), Way::Part),
            "source" => {
                self.push(tag, get("src"), Way::Part);
                self.candidates("source srcset", get("srcset"));
            }
            "video" => {
                self.push(tag, get("src"), Way::Part);
                self.push(tag, get("poster"), Way::Part);
            }
            "img" | "image" | "use" => {
                self.push(tag, get("src"), Way::Part);
                self.push(tag, get("href"), Way::Part);
                self.push(tag, get("xlink:href"), Way::Part);
                self.candidates(tag, get("srcset"));
            }
            "input" if get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) => {
                self.push(tag, get("src"), Way::Part);
            }
            "body" | "table" | "td" | "th" => self.push(tag, get("background"), Way::Part),
            _ => {}
        }
        if let Some(style) = get("style") {
            self.style(style);
        }
    }

    fn meta<'a>(&mut self, get: &impl Fn(&str) -> Option<&'a str>) {
        let content = get("content").unwrap_or_default();
        if get("http-equiv").is_some_and(|name| name.eq_ignore_ascii_case("refresh")) {
            // `5; url='x'`; without a target it only loads the page again.
            let target = content.trim_start_matches(|c: char| {
                c.is_ascii_digit() || c.is_ascii_whitespace() || ".;,".contains(c)
            });
            let target = match target.get(..3).map(str::to_ascii_lowercase).as_deref() {
                Some("url") => target[3..].trim_start().trim_start_matches('=').trim(),
                _ => target,
            };
            let target = target.trim_matches(['"', '\'']);
            self.push("meta", (!target.is_empty()).then_some(target), Way::Page);
        }
        if get("name").is_some_and(|name| name.eq_ignore_ascii_case("robots")) {
            self.nofollow |= content
                .split(',')
                .any(|word| matches!(&*word.trim().to_ascii_lowercase(), "nofollow" | "none"));
        }
    }

    /// The pictures of a `srcset`, whose descriptors follow a blank and end with a comma.
    fn candidates(&mut self, tag: &str, set: Option<&str>) {
        let mut rest = set.unwrap_or_default();
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            if rest.is_empty() {
                return;
            }
            let end = rest.find(|c: char| c.is_ascii_whitespace());
            let (href, after) = rest.split_at(end.unwrap_or(rest.len()));
            let bare = href.trim_end_matches(',');
            self.push(tag, Some(bare), Way::Part);
            rest = match bare.len() < href.len() {
                true => after,
                false => after.split_once(',').map_or("", |(_, next)| next),
            };
        }
    }
}

/// What a `<link>` with these relations is; none when it names no document.
fn link_way(rel: &[&str], purpose: &str) -> Option<Way> {
    let has = |word: &str| rel.contains(&word);
    if has("stylesheet") {
        return Some(Way::Part);
    }
    if has("preload") {
        let page = purpose.eq_ignore_ascii_case("document");
        return Some(if page { Way::Page } else { Way::Part });
    }
    let part = [
        "icon",
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "mask-icon",
        "image_src",
        "modulepreload",
        "manifest",
    ];
    if rel.iter().any(|word| part.contains(word)) {
        return Some(Way::Part);
    }
    (!has("dns-prefetch") && !has("preconnect")).then_some(Way::Page)
}
