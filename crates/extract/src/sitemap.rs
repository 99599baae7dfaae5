//! Sitemaps: the XML of the protocol, its index, plain lists, feeds; gzipped or not.
//!
//! Read as a stream of XML events into two lists. Of entities only the five predefined and numeric
//! ones are resolved; a DTD is skipped, so it can define nothing that grows. What is broken in the
//! middle yields what stood before.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::bufread::MultiGzDecoder;
use orbweaver_model::Limits;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::Note;
use crate::charset;
use crate::links::NORMAL;
use crate::media::{Media, looks_like_html};

/// A page that a sitemap or a feed names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SitemapUrl {
    /// Its URL as written.
    pub loc: String,
    /// When it last changed, as written.
    pub lastmod: Option<String>,
    /// Its priority within the site, from 0.0 to 1.0, as written.
    pub priority: Option<String>,
}

impl SitemapUrl {
    /// Its priority in hundredths; the protocol's 0.5 when there is none, or none that can be read.
    pub(crate) fn weight(&self) -> u8 {
        let written = self.priority.as_deref().map(|text| text.trim().parse());
        match written {
            Some(Ok(share)) if f32::is_finite(share) => {
                (share.clamp(0.0, 1.0) * 100.0).round() as u8
            }
            _ => NORMAL,
        }
    }
}

/// What a sitemap says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// Pages.
    pub urls: Vec<SitemapUrl>,
    /// Further sitemaps, named by an index.
    pub sitemaps: Vec<String>,
    /// Sound, films and pictures that the entries of a feed enclose.
    pub enclosures: Vec<String>,
    /// Why it was not read to its end.
    pub notes: Vec<Note>,
}

/// Reads a sitemap in any of its forms.
pub fn read_sitemap(body: &[u8], limits: &Limits) -> Sitemap {
    let mut sitemap = Sitemap::default();
    let bytes = unzip(body, limits, &mut sitemap.notes);
    let encoding = charset::detect(&bytes, Media::Sitemap, None, None);
    let (text, _, _) = encoding.decode(&bytes);
    let text = text.trim_start();
    if looks_like_html(text.as_bytes()) {
        sitemap.notes.push(Note::NotASitemap);
    } else if text.starts_with('<') {
        XmlReader::new(limits, &mut sitemap).read(text);
    } else {
        read_list(text, limits, &mut sitemap);
    }
    sitemap
}

/// Undoes gzip when the first bytes say so, up to the limit on decoded bytes.
fn unzip<'a>(body: &'a [u8], limits: &Limits, notes: &mut Vec<Note>) -> Cow<'a, [u8]> {
    if !body.starts_with(b"\x1f\x8b") {
        return Cow::Borrowed(body);
    }
    let max = limits.max_decoded_bytes;
    let mut decoded = Vec::new();
    let bound = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let result = MultiGzDecoder::new(body)
        .take(bound)
        .read_to_end(&mut decoded);
    if let Err(error) = result {
        notes.push(Note::BrokenGzip(error.to_string()));
    }
    if decoded.len() > max {
        decoded.truncate(max);
        notes.push(Note::DecodedTooLong(max));
    }
    Cow::Owned(decoded)
}

/// One URL a line; lines that are none are skipped.
fn read_list(text: &str, limits: &Limits, sitemap: &mut Sitemap) {
    for line in text.lines().map(str::trim) {
        let url = ["http://", "https://"].iter().any(|scheme| {
            line.get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !url || line.len() > limits.max_url_bytes {
            continue;
        }
        if sitemap.urls.len() >= limits.max_sitemap_urls {
            sitemap
                .notes
                .push(Note::MoreSitemapUrls(limits.max_sitemap_urls));
            return;
        }
        sitemap.urls.push(SitemapUrl {
            loc: line.to_owned(),
            ..SitemapUrl::default()
        });
    }
}

/// Which field the text belongs to that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    None,
    Loc,
    LastMod,
    Priority,
}

struct XmlReader<'s> {
    limits: &'s Limits,
    sitemap: &'s mut Sitemap,
    /// The namespace prefix of the root. `<image:loc>` in a `<urlset>` is somebody else's.
    prefix: Option<Option<String>>,
    /// Set between `<url>` (or item, entry, sitemap) and its end.
    entry: Option<SitemapUrl>,
    field: Field,
    text: String,
}

impl<'s> XmlReader<'s> {
    fn new(limits: &'s Limits, sitemap: &'s mut Sitemap) -> Self {
        Self {
            limits,
            sitemap,
            prefix: None,
            entry: None,
            field: Field::None,
            text: String::new(),
        }
    }

    fn read(&mut self, xml: &str) {
        let mut reader = Reader::from_str(xml);
        let config = reader.config_mut();
        // Sitemaps are written by hand and by string templates: bare ampersands and tags that do not
        // match are common and change nothing that is read here.
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        loop {
            match reader.read_event() {
                Ok(Event::Start(tag)) => self.start(&tag),
                Ok(Event::Empty(tag)) => self.empty(&tag),
                Ok(Event::End(tag)) => {
                    let name = tag.name();
                    if !self.end(
                        name.local_name().as_ref(),
                        name.prefix().map(|p| p.into_inner()),
                    ) {
                        return;
                    }
                }
                Ok(Event::Text(text)) => self.push(&text.into_inner()),
                Ok(Event::CData(text)) => self.push(&text.into_inner()),
                Ok(Event::GeneralRef(reference)) => self.reference(&reference),
                Ok(Event::Eof) => break,
                Ok(_) => {}
                Err(error) => {
                    let at = reader.error_position();
                    self.sitemap
                        .notes
                        .push(Note::BrokenXml(at, error.to_string()));
                    break;
                }
            }
        }
        // A document cut in the middle: an entry whose URL was whole counts.
        self.finish("url");
    }

    fn is_ours(&self, prefix: Option<&str>) -> bool {
        self.prefix
            .as_ref()
            .is_none_or(|root| root.as_deref() == prefix)
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        let name = tag.name();
        let prefix = name.prefix().map(|prefix| prefix.into_inner());
        if self.prefix.is_none() {
            self.prefix = Some(root_prefix(name.local_name().as_ref(), prefix));
        }
        if !self.is_ours(prefix) {
            return;
        }
        self.text.clear();
        self.field = Field::None;
        match name.local_name().as_ref() {
            "url" | "sitemap" | "item" | "entry" => {
                self.entry = Some(SitemapUrl::default());
            }
            "loc" => self.field = Field::Loc,
            "link" => {
                self.field = Field::Loc;
                self.atom_link(tag);
            }
            "enclosure" => self.enclosure(tag, "url"),
            "lastmod" | "updated" | "pubDate" => self.field = Field::LastMod,
            "priority" => self.field = Field::Priority,
            _ => {}
        }
    }

    fn empty(&mut self, tag: &BytesStart<'_>) {
        let name = tag.name();
        let prefix = name.prefix().map(|prefix| prefix.into_inner());
        if !self.is_ours(prefix) {
            return;
        }
        match name.local_name().as_ref() {
            "link" => self.atom_link(tag),
            "enclosure" => self.enclosure(tag, "url"),
            _ => {}
        }
    }

    /// `<enclosure url="…"/>` of RSS, `<link rel="enclosure" href="…"/>` of Atom.
    fn enclosure(&mut self, tag: &BytesStart<'_>, name: &str) {
        let room = self.sitemap.enclosures.len() < self.limits.max_sitemap_urls;
        if let Some(url) = value_of(tag, name).filter(|_| room && self.entry.is_some()) {
            self.sitemap.enclosures.push(url);
        }
    }

    /// `<link rel="alternate" href="…"/>` of Atom.
    fn atom_link(&mut self, tag: &BytesStart<'_>) {
        let rel = value_of(tag, "rel");
        if rel.as_deref() == Some("enclosure") {
            return self.enclosure(tag, "href");
        }
        let Some(entry) = &mut self.entry else { return };
        let alternate = rel.is_none_or(|rel| rel == "alternate");
        if alternate
            && entry.loc.is_empty()
            && let Some(href) = value_of(tag, "href")
        {
            entry.loc = href;
        }
    }

    /// Ends an element; false when the sitemap has had its share.
    fn end(&mut self, name: &str, prefix: Option<&str>) -> bool {
        if !self.is_ours(prefix) {
            return true;
        }
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        let field = std::mem::replace(&mut self.field, Field::None);
        if let Some(entry) = &mut self.entry
            && !text.is_empty()
        {
            match field {
                Field::Loc if entry.loc.is_empty() => text.clone_into(&mut entry.loc),
                Field::LastMod if entry.lastmod.is_none() => entry.lastmod = Some(text.to_owned()),
                Field::Priority => entry.priority = Some(text.to_owned()),
                Field::None | Field::Loc | Field::LastMod => {}
            }
        }
        match name {
            "url" | "sitemap" | "item" | "entry" => self.finish(name),
            _ => true,
        }
    }

    fn finish(&mut self, name: &str) -> bool {
        let Some(entry) = self.entry.take() else {
            return true;
        };
        if entry.loc.is_empty() || entry.loc.len() > self.limits.max_url_bytes {
            return true;
        }
        let max = self.limits.max_sitemap_urls;
        if self.sitemap.urls.len() + self.sitemap.sitemaps.len() >= max {
            self.sitemap.notes.push(Note::MoreSitemapUrls(max));
            return false;
        }
        if name == "sitemap" {
            self.sitemap.sitemaps.push(entry.loc);
        } else {
            self.sitemap.urls.push(entry);
        }
        true
    }

    /// Adds text to the field being read. One byte more than a URL may have is enough to know that
    /// it has too many.
    fn push(&mut self, text: &str) {
        if self.field != Field::None && self.text.len() <= self.limits.max_url_bytes {
            let room = self.limits.max_url_bytes + 1;
            let end = text.floor_char_boundary(room.min(text.len()));
            self.text.push_str(text.get(..end).unwrap_or_default());
        }
    }

    fn reference(&mut self, reference: &BytesRef<'_>) {
        let name: &str = reference;
        match name {
            "amp" => self.push("&"),
            "lt" => self.push("<"),
            "gt" => self.push(">"),
            "quot" => self.push("\""),
            "apos" => self.push("'"),
            _ => {
                if let Ok(Some(c)) = reference.resolve_char_ref() {
                    self.push(c.encode_utf8(&mut [0; 4]));
                } else {
                    // In `?a=1&b;c` the author forgot to escape; any other entity is of a DTD.
                    self.push("&");
                    self.push(name);
                    self.push(";");
                }
            }
        }
    }
}

/// RSS 1.0 keeps its items outside the prefix of its root, `<rdf:RDF>`.
fn root_prefix(name: &str, prefix: Option<&str>) -> Option<String> {
    if name == "RDF" {
        return None;
    }
    prefix.map(str::to_owned)
}

/// The value of an attribute, entities resolved.
fn value_of(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok().flatten()?;
    let value = htmlize::unescape_attribute(found.value.into_owned());
    Some(value.trim().to_owned())
}
