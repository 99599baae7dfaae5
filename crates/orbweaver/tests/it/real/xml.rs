//! XHTML, SVG and feeds through quick-xml.

use quick_xml::events::{BytesStart, Event};

use super::html::html;
use super::reader::{Found, PageReader, Way};

/// Reads XHTML, SVG and feeds as XML. What is no well-formed XML is read like HTML, as the crawler says it does.
pub(crate) fn xml(media: &str, text: &str, page: &mut PageReader) {
    let mut tried = PageReader::default();
    let mut kind = match media {
        "application/xml" => None,
        _ => Some(Xml::Page),
    };
    match events(text, &mut kind, &mut tried) {
        Ok(()) => *page = tried,
        Err(_) if kind == Some(Xml::Page) => html(text, page),
        // A broken feed gives what stood before.
        Err(_) => *page = tried,
    }
}

/// What an XML document is by its root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Xml {
    Page,
    Feed,
    Other,
}

fn events(text: &str, kind: &mut Option<Xml>, page: &mut PageReader) -> quick_xml::Result<()> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut feed = Feed::default();
    let mut style: Option<String> = None;
    loop {
        let event = reader.read_event()?;
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            let root = match tag.local_name().as_ref() {
                "html" | "svg" => Xml::Page,
                "rss" | "feed" | "RDF" | "urlset" | "sitemapindex" => Xml::Feed,
                _ => Xml::Other,
            };
            match *kind.get_or_insert(root) {
                Xml::Page => markup(tag, page)?,
                Xml::Feed => {
                    feed.start(tag)?;
                    // An empty element has no end of its own.
                    if matches!(event, Event::Empty(_)) {
                        feed.end(tag.local_name().as_ref(), page);
                    }
                }
                Xml::Other => return Ok(()),
            }
        }
        match &event {
            Event::Start(tag) if tag.local_name().as_ref() == "style" => {
                style = Some(String::new())
            }
            Event::Text(text) => {
                feed.text.push_str(text.as_ref());
                style
                    .iter_mut()
                    .for_each(|style| style.push_str(text.as_ref()));
            }
            Event::CData(text) => {
                feed.text.push_str(text.as_ref());
                style
                    .iter_mut()
                    .for_each(|style| style.push_str(text.as_ref()));
            }
            Event::GeneralRef(name) => feed.text.push_str(&entity(name.as_ref())),
            Event::End(tag) => {
                if let Some(text) = style.take() {
                    page.style(&text);
                }
                if *kind == Some(Xml::Feed) {
                    feed.end(tag.local_name().as_ref(), page);
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// An element of XHTML or SVG.
fn markup(tag: &BytesStart<'_>, page: &mut PageReader) -> quick_xml::Result<()> {
    let attributes = attributes(tag)?;
    let get = |name: &str| {
        let found = attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    page.element(tag.local_name().as_ref(), get);
    Ok(())
}

fn attributes(tag: &BytesStart<'_>) -> quick_xml::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute?;
        let key: &str = attribute.key.as_ref();
        all.push((key.to_owned(), unescape(&attribute.value)));
    }
    Ok(all)
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        match after.split_once(';') {
            Some((name, after)) if name.len() < 12 => {
                out.push_str(&entity(name));
                rest = after;
            }
            _ => {
                out.push('&');
                rest = after;
            }
        }
    }
    out + rest
}

fn entity(name: &str) -> String {
    let number = name.strip_prefix('#').and_then(|digits| {
        let code = match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        char::from_u32(code.ok()?)
    });
    match (number, name) {
        (Some(c), _) => c.to_string(),
        (_, "amp") => "&".to_owned(),
        (_, "lt") => "<".to_owned(),
        (_, "gt") => ">".to_owned(),
        (_, "quot") => "\"".to_owned(),
        (_, "apos") => "'".to_owned(),
        // Of a DTD.
        _ => format!("&{name};"),
    }
}

/// The entries of a feed or a sitemap; the first link of each is its page.
#[derive(Default)]
struct Feed {
    /// Set within an entry, true when its link was found.
    entry: Option<bool>,
    text: String,
}

impl Feed {
    fn start(&mut self, tag: &BytesStart<'_>) -> quick_xml::Result<()> {
        self.text.clear();
        match tag.local_name().as_ref() {
            "item" | "entry" | "url" | "sitemap" => self.entry = Some(false),
            "link" if self.entry == Some(false) => {
                let all = attributes(tag)?;
                let get = |name: &str| all.iter().find(|(known, _)| known == name);
                if get("rel").is_none_or(|(_, rel)| rel == "alternate")
                    && let Some((_, href)) = get("href")
                {
                    self.text.clone_from(href);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str, page: &mut PageReader) {
        let text = std::mem::take(&mut self.text);
        match name {
            "item" | "entry" | "url" | "sitemap" => self.entry = None,
            "loc" | "link" if self.entry == Some(false) && !text.trim().is_empty() => {
                self.entry = Some(true);
                page.found.push(Found {
                    href: text.trim().to_owned(),
                    way: Way::Page,
                    place: "feed".to_owned(),
                    nofollow: false,
                });
            }
            _ => {}
        }
    }
}
