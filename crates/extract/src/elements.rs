//! Which elements and attributes of HTML are references, and what else the head of a page says.

use std::borrow::Cow;

use encoding_rs::Encoding;
use memchr::{memchr3, memmem};
use orbweaver_model::LinkKind;

use crate::css::css_links;
use crate::directives::Directives;
use crate::html::{Attribute, Scanner, Tag, attribute};
use crate::links::Links;
use crate::rawtext::is_space;
use crate::refresh::refresh_target;
use crate::srcset::candidates;

/// Characters of a title that are kept.
const MAX_TITLE: usize = 512;

/// Bytes of a title that are looked at; with every character an entity, 512 of them fit.
const MAX_TITLE_BYTES: usize = 8 << 10;

/// Documents in `srcdoc` attributes of documents in `srcdoc` attributes that are read; a browser stops no later
/// than memory does, and nobody nests more than one.
const MAX_SRCDOC: u8 = 3;

/// Reads one HTML document.
pub(crate) struct HtmlReader<'r> {
    /// Whether it is XML, in which every element can be empty.
    pub(crate) xml: bool,
    /// How many `srcdoc` attributes deep it reads at the moment.
    pub(crate) inside: u8,
    pub(crate) encoding: &'static Encoding,
    pub(crate) agent: &'r str,
    pub(crate) links: &'r mut Links,
    pub(crate) directives: &'r mut Directives,
    pub(crate) base: Option<String>,
    pub(crate) title: Option<String>,
}

impl HtmlReader<'_> {
    /// Reads the document, whose bytes are in `self.encoding`.
    pub(crate) fn read(&mut self, html: &[u8]) {
        let mut scanner = match self.xml {
            true => Scanner::for_xml(html),
            false => Scanner::new(html),
        };
        let mut attributes = Vec::with_capacity(16);
        while let Some(tag) = scanner.next_tag(&mut attributes) {
            self.element(&tag, &attributes);
            if self.links.is_cut() {
                return;
            }
        }
    }

    fn element(&mut self, tag: &Tag<'_>, attributes: &[Attribute<'_>]) {
        match tag.name() {
            b"title" if self.inside == 0 => self.title(tag),
            b"style" => self.style_sheet(tag.text),
            _ if attributes.is_empty() => return,
            b"a" => self.anchor(attributes, LinkKind::A),
            b"area" => self.anchor(attributes, LinkKind::Area),
            b"link" => self.link(attributes),
            b"img" | b"image" | b"use" => {
                self.reference(attributes, b"src", LinkKind::Img);
                self.reference(attributes, b"href", LinkKind::Img);
                self.reference(attributes, b"xlink:href", LinkKind::Img);
                self.srcset(attributes);
            }
            b"source" => {
                self.reference(attributes, b"src", LinkKind::Media);
                self.srcset(attributes);
            }
            b"audio" | b"embed" | b"track" => self.reference(attributes, b"src", LinkKind::Media),
            b"video" => {
                self.reference(attributes, b"src", LinkKind::Media);
                self.reference(attributes, b"poster", LinkKind::Img);
            }
            b"object" => self.reference(attributes, b"data", LinkKind::Media),
            b"script" => self.reference(attributes, b"src", LinkKind::Script),
            b"iframe" | b"frame" => {
                self.reference(attributes, b"src", LinkKind::Iframe);
                self.srcdoc(attributes);
            }
            b"input" if is(attributes, b"type", b"image") => {
                self.reference(attributes, b"src", LinkKind::Img);
            }
            b"form" => self.form(attributes),
            b"meta" => self.meta(attributes),
            // An element of SVG that is called so is none, and a template has no say yet.
            b"base" if !tag.foreign && !tag.inert && self.inside == 0 => self.base(attributes),
            b"body" | b"table" | b"td" | b"th" => {
                self.reference(attributes, b"background", LinkKind::Img);
            }
            _ => {}
        }
        if let Some(style) = attribute(attributes, b"style") {
            self.style_sheet(style);
        }
    }

    fn reference(&mut self, attributes: &[Attribute<'_>], name: &[u8], kind: LinkKind) {
        if let Some(value) = attribute(attributes, name) {
            self.links
                .push(&attribute_value(value, self.encoding), kind, false);
        }
    }

    fn anchor(&mut self, attributes: &[Attribute<'_>], kind: LinkKind) {
        let target =
            attribute(attributes, b"href").or_else(|| attribute(attributes, b"xlink:href"));
        if let Some(value) = target {
            let href = attribute_value(value, self.encoding);
            self.links.push(&href, kind, is_nofollow(attributes));
        }
    }

    fn link(&mut self, attributes: &[Attribute<'_>]) {
        let rel = attribute(attributes, b"rel").unwrap_or_default();
        let purpose = attribute(attributes, b"as").unwrap_or_default();
        let Some(kind) = link_kind(rel, purpose) else {
            return;
        };
        if let Some(value) = attribute(attributes, b"href") {
            let href = attribute_value(value, self.encoding);
            self.links.push(&href, kind, is_nofollow(attributes));
        }
        // A preloaded picture may come in several sizes and without a href.
        if let Some(value) = attribute(attributes, b"imagesrcset") {
            self.candidates(value);
        }
    }

    /// The document of a frame that stands in an attribute. Its references are resolved like the page's, for it has no
    /// address of its own.
    fn srcdoc(&mut self, attributes: &[Attribute<'_>]) {
        let Some(value) = attribute(attributes, b"srcdoc").filter(|_| self.inside < MAX_SRCDOC)
        else {
            return;
        };
        let html = attribute_value(value, self.encoding).into_owned();
        let outside = (
            std::mem::replace(&mut self.encoding, encoding_rs::UTF_8),
            std::mem::replace(&mut self.xml, false),
        );
        self.inside += 1;
        self.read(html.as_bytes());
        self.inside -= 1;
        (self.encoding, self.xml) = outside;
    }

    fn srcset(&mut self, attributes: &[Attribute<'_>]) {
        if let Some(value) = attribute(attributes, b"srcset") {
            self.candidates(value);
        }
    }

    fn candidates(&mut self, srcset: &[u8]) {
        for href in candidates(&attribute_value(srcset, self.encoding)) {
            if self.links.is_cut() {
                return;
            }
            self.links.push(href, LinkKind::Srcset, false);
        }
    }

    /// A form that sends its fields in the URL is a link to its bare action; others are not ours.
    fn form(&mut self, attributes: &[Attribute<'_>]) {
        let method = attribute(attributes, b"method").unwrap_or_default();
        if method.eq_ignore_ascii_case(b"post") || method.eq_ignore_ascii_case(b"dialog") {
            return;
        }
        if let Some(value) = attribute(attributes, b"action") {
            let href = attribute_value(value, self.encoding);
            self.links
                .push(&href, LinkKind::Form, is_nofollow(attributes));
        }
    }

    fn meta(&mut self, attributes: &[Attribute<'_>]) {
        let Some(content) = attribute(attributes, b"content") else {
            return;
        };
        if is(attributes, b"http-equiv", b"refresh") {
            let content = attribute_value(content, self.encoding);
            if let Some(target) = refresh_target(&content) {
                self.links.push(target, LinkKind::Refresh, false);
            }
        }
        let name = attribute(attributes, b"name").unwrap_or_default();
        let name = name.trim_ascii();
        let ours = name.eq_ignore_ascii_case(b"robots")
            || name.eq_ignore_ascii_case(self.agent.as_bytes());
        if ours && self.inside == 0 {
            self.directives
                .read_list(&attribute_value(content, self.encoding));
        }
    }

    /// The first base that can be one wins; `javascript:` and `data:` cannot.
    fn base(&mut self, attributes: &[Attribute<'_>]) {
        if self.base.is_some() {
            return;
        }
        if let Some(value) = attribute(attributes, b"href") {
            let href = attribute_value(value, self.encoding);
            let href = href.trim_matches(|c: char| c.is_ascii() && is_space(c as u8));
            if href.len() <= MAX_BASE && may_be_base(href) {
                self.base = Some(href.to_owned());
            }
        }
    }

    fn title(&mut self, tag: &Tag<'_>) {
        if self.title.is_some() || tag.foreign {
            return;
        }
        let text = tag.text.get(..MAX_TITLE_BYTES).unwrap_or(tag.text);
        let (text, _) = self.encoding.decode_without_bom_handling(text);
        let text = htmlize::unescape(text);
        let mut title = String::new();
        for (index, c) in words(&text).enumerate() {
            if index == MAX_TITLE {
                break;
            }
            title.push(c);
        }
        if !title.is_empty() {
            self.title = Some(title);
        }
    }

    fn style_sheet(&mut self, css: &[u8]) {
        // Most style attributes and many style elements refer to nothing.
        if !mentions_url(css) {
            return;
        }
        let css = attribute_value(css, self.encoding);
        css_links(&css, self.links);
    }
}

/// The URL limit does not bound a base by itself, for it is no link.
const MAX_BASE: usize = 8 << 10;

/// True unless the text names a scheme that is neither http nor https.
fn may_be_base(href: &str) -> bool {
    let Some((scheme, _)) = href.split_once(':') else {
        return true;
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    !is_scheme || scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The characters of a text, with white space collapsed and trimmed.
fn words(text: &str) -> impl Iterator<Item = char> {
    let mut first = true;
    text.split_whitespace().flat_map(move |word| {
        let space = (!std::mem::take(&mut first)).then_some(' ');
        space.into_iter().chain(word.chars())
    })
}

fn mentions_url(css: &[u8]) -> bool {
    // A backslash may hide any letter of `url` or `@import`.
    memchr3(b'(', b'@', b'\\', css).is_some()
        && (memmem::find(css, b"\\").is_some()
            || css.windows(4).any(|w| w.eq_ignore_ascii_case(b"url("))
            || css
                .windows(10)
                .any(|w| w.eq_ignore_ascii_case(b"image-set("))
            || css.windows(7).any(|w| w.eq_ignore_ascii_case(b"@import")))
}

fn is(attributes: &[Attribute<'_>], name: &[u8], value: &[u8]) -> bool {
    attribute(attributes, name).is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(value))
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|b| is_space(*b) || *b == b',')
        .filter(|token| !token.is_empty())
}

/// rel=nofollow and the two that search engines treat alike.
fn is_nofollow(attributes: &[Attribute<'_>]) -> bool {
    attribute(attributes, b"rel").is_some_and(rel_is_nofollow)
}

pub(crate) fn rel_is_nofollow(rel: &[u8]) -> bool {
    tokens(rel).any(|token| {
        token.eq_ignore_ascii_case(b"nofollow")
            || token.eq_ignore_ascii_case(b"ugc")
            || token.eq_ignore_ascii_case(b"sponsored")
    })
}

/// What a `<link>` or a Link header with these relations is; none when it names a host to warm up
/// and no document.
pub(crate) fn link_kind(rel: &[u8], purpose: &[u8]) -> Option<LinkKind> {
    let mut kind = Some(LinkKind::Link);
    for token in tokens(rel) {
        let is = |name: &[u8]| token.eq_ignore_ascii_case(name);
        if is(b"stylesheet") {
            return Some(LinkKind::Stylesheet);
        }
        if is(b"dns-prefetch") || is(b"preconnect") {
            kind = None;
        } else if is(b"icon")
            || is(b"apple-touch-icon")
            || is(b"apple-touch-icon-precomposed")
            || is(b"mask-icon")
            || is(b"image_src")
        {
            kind = Some(LinkKind::Img);
        } else if is(b"modulepreload") {
            kind = Some(LinkKind::Script);
        } else if is(b"manifest") {
            kind = Some(LinkKind::Media);
        } else if is(b"preload") {
            kind = Some(preload_kind(purpose));
        }
    }
    kind
}

fn preload_kind(purpose: &[u8]) -> LinkKind {
    let is = |name: &[u8]| purpose.eq_ignore_ascii_case(name);
    if is(b"style") {
        LinkKind::Stylesheet
    } else if is(b"script") {
        LinkKind::Script
    } else if is(b"image") {
        LinkKind::Img
    } else if is(b"document") {
        LinkKind::Link
    } else {
        LinkKind::Media
    }
}

/// An attribute's value as a browser would hand it out: decoded, newlines and NULs normalised,
/// character references resolved. Most values need none of it and are borrowed.
pub fn attribute_value<'a>(raw: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    let (text, _) = encoding.decode_without_bom_handling(raw);
    if memchr3(b'&', b'\r', 0, text.as_bytes()).is_none() {
        return text;
    }
    let text = if text.contains(['\r', '\0']) {
        Cow::Owned(
            text.replace("\r\n", "\n")
                .replace('\r', "\n")
                .replace('\0', "\u{fffd}"),
        )
    } else {
        text
    };
    htmlize::unescape_attribute(text)
}
