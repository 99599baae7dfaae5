//! The tags of an HTML document and their attributes, exactly as a browser's tokenizer finds them.
//!
//! A scanner over bytes: it jumps from `<` to `<` and follows the tokenizer of the WHATWG standard
//! (section 13.2.5) wherever that decides what is a tag and what is not: comments in all their
//! spellings, text of script, style, title and the like, quotes, slashes and stray characters in
//! tags. Text itself is never looked at. There is no tree here, hence no depth to bound.
//!
//! Every byte is looked at a bounded number of times: what has no end swallows the rest of the
//! document, in the standard as here, so nothing is ever searched twice for an end that is not there.
//! Delimiters are ASCII bytes that no multi-byte encoding of the web uses in a character, so the
//! scanner works on undecoded text of every encoding except UTF-16 and ISO-2022-JP.

use memchr::{memchr, memchr_iter, memmem};

use crate::rawtext::{end_of_script, end_of_text, ends_tag_name, is_space};

/// Attributes of one tag that are looked at; the rest are skipped. Real tags have a dozen at most.
pub const MAX_ATTRIBUTES: usize = 256;

/// An attribute as it stands in the document: not decoded, entities in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The name, in whatever case.
    pub name: &'a [u8],
    /// The value without its quotes; empty when there is none.
    pub value: &'a [u8],
}

/// The value of the first attribute with this name; a browser ignores the others.
pub fn attribute<'a>(attributes: &[Attribute<'a>], name: &[u8]) -> Option<&'a [u8]> {
    attributes
        .iter()
        .find(|attribute| attribute.name.eq_ignore_ascii_case(name))
        .map(|attribute| attribute.value)
}

/// A start tag.
#[derive(Clone, Copy, Debug)]
pub struct Tag<'a> {
    /// The name as it stands in the document.
    pub raw_name: &'a [u8],
    /// What stands up to the end tag, for elements whose content is text and not markup; empty for
    /// others.
    pub text: &'a [u8],
    /// True inside `<svg>` or `<math>`.
    pub foreign: bool,
    /// True inside `<template>`, whose content is not yet a part of the document.
    pub inert: bool,
    lower: Lower,
}

impl Tag<'_> {
    /// The name in lower case; empty when it is longer than any name of HTML.
    pub fn name(&self) -> &[u8] {
        self.lower.as_bytes()
    }
}

/// A short name in lower case.
#[derive(Clone, Copy, Debug)]
struct Lower {
    bytes: [u8; 16],
    len: usize,
}

impl Lower {
    fn new(name: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let mut len = 0;
        if let Some(slot) = bytes.get_mut(..name.len()) {
            slot.copy_from_slice(name);
            slot.make_ascii_lowercase();
            len = name.len();
        }
        Self { bytes, len }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Finds the start tags of a document one after the other.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    raw_text: bool,
    /// Whether the document is XML: any element may be empty, and CDATA sections are text.
    xml: bool,
    foreign: bool,
    /// Templates that are open.
    templates: usize,
}

impl<'a> Scanner<'a> {
    /// Scans a document.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            raw_text: true,
            xml: false,
            foreign: false,
            templates: 0,
        }
    }

    /// Scans a document that is XML, as XHTML is when it is served as such. `<script/>` and `<title/>` end at once
    /// there; otherwise it is read like HTML, because most XHTML is written for both.
    pub fn for_xml(bytes: &'a [u8]) -> Self {
        Self {
            xml: true,
            ..Self::new(bytes)
        }
    }

    /// Scans for the charset declaration, where the standard treats the content of script and style
    /// like any other.
    pub(crate) fn for_prescan(bytes: &'a [u8]) -> Self {
        Self {
            raw_text: false,
            ..Self::new(bytes)
        }
    }

    /// The next start tag; its attributes are put into `attributes`, whose old content is dropped.
    pub fn next_tag(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Option<Tag<'a>> {
        loop {
            let open = self.at + memchr(b'<', self.rest(self.at))?;
            match self.byte(open + 1)? {
                b if b.is_ascii_alphabetic() => {
                    return self.start_tag(open + 1, attributes);
                }
                b'/' => self.end_tag(open + 2, attributes)?,
                b'!' => self.at = self.after_declaration(open + 2)?,
                b'?' => self.at = self.after_bogus_comment(open + 1)?,
                _ => self.at = open + 1,
            }
        }
    }

    /// The next piece of text that a reader sees: between tags, or in a title, but never of a script, a
    /// style sheet or a comment; data for scripts is text too, because a script shows it. Entities stand as
    /// they are.
    pub(crate) fn next_text(&mut self, scratch: &mut Vec<Attribute<'a>>) -> Option<&'a [u8]> {
        loop {
            let from = self.at;
            let rest = self.rest(from);
            match memchr(b'<', rest) {
                Some(0) => {}
                None if rest.is_empty() => return None,
                found => {
                    let len = found.unwrap_or(rest.len());
                    self.at = from + len;
                    return Some(self.slice(from, from + len));
                }
            }
            match self.byte(from + 1)? {
                b if b.is_ascii_alphabetic() => {
                    let tag = self.start_tag(from + 1, scratch)?;
                    let is_text = match tag.name() {
                        b"title" | b"textarea" | b"xmp" => true,
                        b"script" => is_data(scratch),
                        _ => false,
                    };
                    if is_text && !tag.text.is_empty() {
                        return Some(tag.text);
                    }
                }
                b'/' => self.end_tag(from + 2, scratch)?,
                b'!' => self.at = self.after_declaration(from + 2)?,
                b'?' => self.at = self.after_bogus_comment(from + 1)?,
                _ => self.at = from + 1,
            }
        }
    }

    /// Where the next tag or text is looked for.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn start_tag(&mut self, at: usize, attributes: &mut Vec<Attribute<'a>>) -> Option<Tag<'a>> {
        attributes.clear();
        let name_end = at + self.rest(at).iter().position(|b| ends_tag_name(*b))?;
        let (end, self_closing) = self.attributes(name_end, attributes)?;
        let raw_name = self.slice(at, name_end);
        let lower = Lower::new(raw_name);
        let name = lower.as_bytes();
        self.at = end;
        self.note_foreign(name, self_closing);
        if name == b"template" && !self.foreign {
            self.templates += 1;
        }
        let mut text: &[u8] = &[];
        // `<script/>` holds text all the same, but not inside SVG.
        if self.raw_text && !((self.foreign || self.xml) && self_closing) {
            text = self.raw_text_of(name);
            self.at = end + text.len();
        }
        Some(Tag {
            raw_name,
            text,
            foreign: self.foreign,
            inert: self.templates > 0,
            lower,
        })
    }

    /// The text up to the end tag, for elements that hold text. Scripting is off, for a crawler
    /// runs none: the content of `<noscript>` is markup.
    fn raw_text_of(&self, name: &[u8]) -> &'a [u8] {
        let rest = self.rest(self.at);
        let len = match name {
            // XML knows nothing of comments that hide the end of a script.
            b"script" if self.xml => end_of_text(rest, name),
            b"script" => end_of_script(rest),
            b"style" | b"title" | b"textarea" => end_of_text(rest, name),
            b"xmp" | b"iframe" | b"noembed" | b"noframes" if !self.xml => end_of_text(rest, name),
            b"plaintext" if !self.xml => rest.len(),
            _ => 0,
        };
        rest.get(..len).unwrap_or(rest)
    }

    /// Keeps track of SVG and MathML just well enough to know self-closing tags for what they are.
    fn note_foreign(&mut self, name: &[u8], self_closing: bool) {
        if matches!(name, b"svg" | b"math") {
            self.foreign |= !self_closing;
        } else if self.foreign && breaks_out(name) {
            self.foreign = false;
        }
    }

    fn end_tag(&mut self, at: usize, attributes: &mut Vec<Attribute<'a>>) -> Option<()> {
        match self.byte(at)? {
            b if b.is_ascii_alphabetic() => {
                let name_end = at + self.rest(at).iter().position(|b| ends_tag_name(*b))?;
                let (end, _) = self.attributes(name_end, attributes)?;
                let name = self.slice(at, name_end);
                if name.eq_ignore_ascii_case(b"svg") || name.eq_ignore_ascii_case(b"math") {
                    self.foreign = false;
                } else if name.eq_ignore_ascii_case(b"template") {
                    self.templates = self.templates.saturating_sub(1);
                }
                self.at = end;
            }
            b'>' => self.at = at + 1,
            _ => self.at = self.after_bogus_comment(at)?,
        }
        Some(())
    }

    /// Reads attributes up to the end of the tag: the position after `>` and whether `/` stood
    /// before it. None when the document ends first; such a tag does not exist.
    fn attributes(&self, from: usize, found: &mut Vec<Attribute<'a>>) -> Option<(usize, bool)> {
        found.clear();
        let mut at = from;
        loop {
            at = self.skip_space(at)?;
            match self.byte(at)? {
                b'>' => return Some((at + 1, false)),
                b'/' => {
                    at += 1;
                    if self.byte(at)? == b'>' {
                        return Some((at + 1, true));
                    }
                }
                _ => {
                    let (attribute, end) = self.attribute(at)?;
                    if found.len() < MAX_ATTRIBUTES {
                        found.push(attribute);
                    }
                    at = end;
                }
            }
        }
    }

    fn attribute(&self, at: usize) -> Option<(Attribute<'a>, usize)> {
        // An equals sign in the first place belongs to the name.
        let name_end = at
            + 1
            + self
                .rest(at + 1)
                .iter()
                .position(|b| ends_tag_name(*b) || *b == b'=')?;
        let name = self.slice(at, name_end);
        let after = self.skip_space(name_end)?;
        if self.byte(after)? != b'=' {
            return Some((Attribute { name, value: &[] }, after));
        }
        let start = self.skip_space(after + 1)?;
        let (value, end) = match self.byte(start)? {
            quote @ (b'"' | b'\'') => {
                let end = start + 1 + memchr(quote, self.rest(start + 1))?;
                (self.slice(start + 1, end), end + 1)
            }
            _ => {
                let end = start
                    + self
                        .rest(start)
                        .iter()
                        .position(|b| is_space(*b) || *b == b'>')?;
                (self.slice(start, end), end)
            }
        };
        Some((Attribute { name, value }, end))
    }

    /// Where a comment, a doctype or what passes for one ends.
    fn after_declaration(&self, at: usize) -> Option<usize> {
        if self.rest(at).starts_with(b"--") {
            return self.after_comment(at);
        }
        if self.xml && self.rest(at).starts_with(b"[CDATA[") {
            return Some(at + memmem::find(self.rest(at), b"]]>")? + 3);
        }
        // Doctypes end at the first `>` whatever quotes they have; `<![CDATA[` is a bogus comment.
        self.after_bogus_comment(at)
    }

    /// `at` is where the two dashes of `<!--` stand. `<!-->` and `<!--->` are whole comments, so
    /// those dashes may be the closing ones too; for `--!>` they may not.
    fn after_comment(&self, at: usize) -> Option<usize> {
        for gt in memchr_iter(b'>', self.rest(at)) {
            let body = self.slice(at, at + gt);
            let own = body.get(2..).unwrap_or_default();
            if body.ends_with(b"--") || own.ends_with(b"--!") {
                return Some(at + gt + 1);
            }
        }
        None
    }

    fn after_bogus_comment(&self, at: usize) -> Option<usize> {
        Some(at + memchr(b'>', self.rest(at))? + 1)
    }

    fn skip_space(&self, at: usize) -> Option<usize> {
        Some(at + self.rest(at).iter().position(|b| !is_space(*b))?)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn rest(&self, at: usize) -> &'a [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }
}

/// Whether a script is no program but JSON, by its type.
fn is_data(attributes: &[Attribute<'_>]) -> bool {
    attribute(attributes, b"type").is_some_and(|value| {
        let end = value.get(value.len().saturating_sub(4)..);
        end.is_some_and(|end| end.eq_ignore_ascii_case(b"json"))
    })
}

/// Start tags that end SVG and MathML even without an end tag (section 13.2.6.5).
fn breaks_out(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big"
            | b"blockquote"
            | b"body"
            | b"br"
            | b"center"
            | b"code"
            | b"dd"
            | b"div"
            | b"dl"
            | b"dt"
            | b"em"
            | b"embed"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"hr"
            | b"i"
            | b"img"
            | b"li"
            | b"listing"
            | b"menu"
            | b"meta"
            | b"nobr"
            | b"ol"
            | b"p"
            | b"pre"
            | b"ruby"
            | b"s"
            | b"small"
            | b"span"
            | b"strong"
            | b"strike"
            | b"sub"
            | b"sup"
            | b"table"
            | b"tt"
            | b"u"
            | b"ul"
            | b"var"
    )
}
