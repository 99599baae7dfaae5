//! The scanner against html5ever's tokenizer: the same start tags with the same attributes, on pages
//! written to be awkward and on generated tag soup.

use std::cell::{Cell, RefCell};
use std::path::Path;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use orbweaver_extract::attribute_value;
use orbweaver_extract::html::{Attribute, Scanner};
use proptest::prelude::*;

/// A start tag: its name, its attributes.
type Start = (String, Vec<(String, String)>);

/// Takes tokens and switches the tokenizer as the tree builder would with scripting off.
#[derive(Default)]
struct Oracle {
    tags: RefCell<Vec<Start>>,
    foreign: Cell<bool>,
}

impl TokenSink for Oracle {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else {
            return TokenSinkResult::Continue;
        };
        let name = tag.name.to_string();
        if tag.kind == TagKind::EndTag {
            if matches!(&*name, "svg" | "math") {
                self.foreign.set(false);
            }
            return TokenSinkResult::Continue;
        }
        if matches!(&*name, "svg" | "math") {
            self.foreign.set(self.foreign.get() || !tag.self_closing);
        } else if BREAK_OUT.contains(&&*name) {
            self.foreign.set(false);
        }
        let attributes = tag
            .attrs
            .iter()
            .map(|attribute| {
                (
                    attribute.name.local.to_string(),
                    attribute.value.to_string(),
                )
            })
            .collect();
        self.tags.borrow_mut().push((name.clone(), attributes));
        if self.foreign.get() && tag.self_closing {
            return TokenSinkResult::Continue;
        }
        match &*name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

/// Start tags that end SVG and MathML, as the standard lists them.
const BREAK_OUT: &[&str] = &[
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];

fn oracle(html: &str) -> Vec<Start> {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(Oracle::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.tags.take()
}

fn scanned(html: &[u8]) -> Vec<Start> {
    let mut scanner = Scanner::new(html);
    let mut attributes = Vec::new();
    let mut tags = Vec::new();
    while let Some(tag) = scanner.next_tag(&mut attributes) {
        tags.push((lower(tag.raw_name), first_of_each(&attributes)));
    }
    tags
}

/// Of attributes with the same name the first counts.
fn first_of_each(attributes: &[Attribute<'_>]) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::new();
    for attribute in attributes {
        let name = lower(attribute.name);
        if kept.iter().all(|(known, _)| *known != name) {
            let value = attribute_value(attribute.value, encoding_rs::UTF_8);
            kept.push((name, value.into_owned()));
        }
    }
    kept
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .to_ascii_lowercase()
        .replace('\0', "\u{fffd}")
}

fn compare(html: &[u8]) {
    let text = String::from_utf8_lossy(html);
    assert_eq!(scanned(html), oracle(&text), "in {text:?}");
}

#[test]
fn the_corpus() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut tags = 0;
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let html = std::fs::read(entry.unwrap().path()).unwrap();
        compare(&html);
        tags += scanned(&html).len();
        files += 1;
    }
    assert!(files >= 8 && tags > 200, "{files} files with {tags} tags");
}

/// Every page of the corpus, cut at every byte: whatever is not finished must not be there.
#[test]
fn the_corpus_cut_anywhere() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    for entry in std::fs::read_dir(directory).unwrap() {
        let html = std::fs::read(entry.unwrap().path()).unwrap();
        for end in 0..html.len().min(3000) {
            compare(&html[..end]);
        }
    }
}

#[test]
fn short_and_nasty() {
    for html in NASTY {
        compare(html.as_bytes());
    }
}

const NASTY: &[&str] = &[
    "",
    "<",
    "<a",
    "<a href",
    "<a href=",
    "<a href=x",
    "<a href='x",
    "<a href='x'",
    "<a href='x'>",
    "<a/href=x>",
    "<a / href=x / >",
    "<a =b=c>",
    "<a b==c>",
    "<a b = c d= 'e' f =\"g\">",
    "<a b=c/>",
    "<a b='c'd=e>",
    "<a b=\"c\"\"d\">",
    "<a b=>",
    "<a b= >",
    "<a b=c'd\"e<f=g`h>",
    "<a <b>",
    "<a<b>",
    "<A HREF=x Href=y>",
    "<a\0b c\0d=e\0f>",
    "<a href='\0'>",
    "<a b='\r\n\r'>",
    "<a\rb\r=\rc\r>",
    "<a\x0cb>",
    "<a\x0bb>",
    "<1><a>",
    "< a><a>",
    "<<a>>",
    "</a b=c><a>",
    "</><a>",
    "</ a><a>",
    "</1><a>",
    "<?a><b>",
    "<? '>' ?><b>",
    "<!><a>",
    "<!a><b>",
    "<!-><a>",
    "<!--><a>",
    "<!---><a>",
    "<!----><a>",
    "<!----!><a>",
    "<!--!><a>--><b>",
    "<!---!><a>--><b>",
    "<!-- --!><a>",
    "<!-- --!-><a>--><b>",
    "<!-- -- ><a>--><b>",
    "<!-- <!-- --><a>",
    "<!-- <!--><a>",
    "<!-- <!---><a>",
    "<!-- <!--!><a> --><b>",
    "<!-- ---><a>",
    "<!-- - -> --!---><a>",
    "<!-- a",
    "<!doctype html><a>",
    "<!DOCTYPE html PUBLIC \"a>b\"><a>",
    "<![CDATA[<a>]]><b>",
    "<![CDATA[ > <a> ]]>",
    "<script><a></script><b>",
    "<script></scrip></scriptx></script x=y><b>",
    "<SCRIPT><a></sCrIpT/><b>",
    "<script><!-- <a></script><b>",
    "<script><!-- <script> </script> <a> --></script><b>",
    "<script><!-- <script> </script> <a></script><b>",
    "<script><!--<script></script></script><b>",
    "<script><!-- <scriptx> </script><b>",
    "<script><!-- <script --> </script><b>",
    "<script><!-- <script/ --> </script><b>",
    "<script><!--><script></script><b>",
    "<script><!---><script></script><b>",
    "<script><!-<script></script><b>",
    "<script><!--x--><script></script><b></script>",
    "<script><!-- <script> -- > </script> <a> </script><b>",
    "<script><!-- <script> --x> </script> <a> --></script><b>",
    "<script><!-- </script",
    "<script",
    "<script>",
    "<style><a></style ><b>",
    "<style><!-- </style> --><b>",
    "<title></titl><a></title><b>",
    "<title>&lt;/title><a></title><b>",
    "<textarea><a></textarea><b>",
    "<xmp><a></xmp><b>",
    "<iframe src=x><a></iframe><b>",
    "<noembed><a></noembed><noframes><b></noframes><c>",
    "<noscript><a></noscript><b>",
    "<plaintext><a></plaintext><b>",
    "<title/><a></title><b>",
    "<svg><title/><a xlink:href=x></svg><title><b></title>",
    "<svg/><title/><a></title><b>",
    "<svg><p><title/><a></title><b>",
    "<a b='&amp;&lt&notit;&not;&#x41;&#65&#0;&#x110000;&#xD800;&#99999999999999;'>",
    "<a b=&copy=1 c='&copy=1&copy;&copyx' d='&amp' e='&'>",
    "<a b='&#' c='&#x' d='&#x;' e='&#;' f='&bogus;' g='&#128;&#x9f;'>",
    "\u{feff}<a b=\u{fc}\u{20ac}>",
];

/// Pieces of markup out of which soup is made.
fn soup() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[a-cA-C]{1,3}",
        1 => Just("script".to_owned()),
        1 => Just("SCRIPT".to_owned()),
        1 => Just("style".to_owned()),
        1 => Just("title".to_owned()),
        1 => Just("textarea".to_owned()),
        1 => Just("svg".to_owned()),
        1 => Just("noscript".to_owned()),
    ];
    let value = prop_oneof![
        "[a-z0-9/?=&;#. ]{0,8}",
        Just("&amp;".to_owned()),
        Just("&copy=".to_owned()),
        Just("&#x20AC;".to_owned()),
        Just("&#1".to_owned()),
        Just("\0".to_owned()),
        Just("\r\n".to_owned()),
        Just("\u{e9}".to_owned()),
    ];
    let attribute = (
        prop_oneof!["[a-c\"'<=\0]{1,2}", Just("href".to_owned())],
        prop_oneof![
            Just(String::new()),
            Just("=".to_owned()),
            value.clone().prop_map(|v| format!("={v}")),
            value.clone().prop_map(|v| format!("='{v}'")),
            value.clone().prop_map(|v| format!(" = \"{v}\"")),
            value.prop_map(|v| format!("='{v}")),
        ],
    )
        .prop_map(|(name, value)| name + &value);
    let tag = (
        prop_oneof![Just("<"), Just("</")],
        name,
        prop::collection::vec(
            (
                prop_oneof![Just(" "), Just("/"), Just("\n"), Just("")],
                attribute,
            ),
            0..4,
        ),
        prop_oneof![4 => Just(">"), 1 => Just("/>"), 1 => Just(""), 1 => Just(" >")],
    )
        .prop_map(|(open, name, attributes, close)| {
            let attributes: String = attributes
                .into_iter()
                .map(|(gap, a)| gap.to_owned() + &a)
                .collect();
            format!("{open}{name}{attributes}{close}")
        });
    let piece = prop_oneof![
        6 => tag,
        2 => "[<>!/?\"'= a&-]{1,6}",
        1 => Just("<!--".to_owned()),
        1 => Just("-->".to_owned()),
        1 => Just("--!>".to_owned()),
        1 => Just("<!".to_owned()),
        1 => Just("</script>".to_owned()),
        1 => Just("<script>".to_owned()),
        1 => Just("</style>".to_owned()),
        1 => Just("</title>".to_owned()),
        1 => Just("<![CDATA[".to_owned()),
        1 => Just("text ".to_owned()),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn tag_soup(html in soup()) {
        prop_assert_eq!(scanned(html.as_bytes()), oracle(&html));
    }

    #[test]
    fn markup_letters_in_any_order(html in "[<>!/a=\"' \\-s?\0\r&;#]{0,40}") {
        prop_assert_eq!(scanned(html.as_bytes()), oracle(&html));
    }

    #[test]
    fn script_letters_in_any_order(html in "(<!--|-->|<script|</script|>| |-|<|/|x){0,24}") {
        let html = format!("<script>{html}<a>");
        prop_assert_eq!(scanned(html.as_bytes()), oracle(&html));
    }
}
