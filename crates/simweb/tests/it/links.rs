//! The links of a page, read as a browser would read these pages.

use url::Url;

/// Every `<a href>` of a page as written, entities undone.
pub(crate) fn hrefs(html: &str) -> Vec<String> {
    values(html, "a", "href")
}

/// The canonical URLs that a page links to; other schemes are left out.
pub(crate) fn canonical(html: &str, page: &str) -> Vec<String> {
    let page = Url::parse(page).unwrap();
    let base = match values(html, "base", "href").first() {
        Some(base) => page.join(base).unwrap(),
        None => page,
    };
    let links = hrefs(html)
        .into_iter()
        .map(|href| base.join(&href).unwrap());
    links
        .filter(|url| url.scheme() == "http")
        .map(canonical_form)
        .collect()
}

/// Without fragment and with percent escapes in upper case.
pub(crate) fn canonical_form(mut url: Url) -> String {
    url.set_fragment(None);
    let mut digits = 0;
    let upper = url.as_str().chars().map(|c| {
        let upper = if digits > 0 {
            c.to_ascii_uppercase()
        } else {
            c
        };
        digits = if c == '%' { 2 } else { i32::max(digits - 1, 0) };
        upper
    });
    upper.collect()
}

fn values(html: &str, tag: &str, attribute: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->").unwrap()..];
            continue;
        }
        let name_len = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        let name = &rest[..name_len];
        let wanted = name.eq_ignore_ascii_case(tag);
        rest = &rest[name_len..];
        while wanted && !rest.trim_start().starts_with('>') {
            let (key, value, after) = one_attribute(rest.trim_start());
            if key.eq_ignore_ascii_case(attribute) {
                found.push(unescape(value));
            }
            rest = after;
        }
    }
    found
}

fn one_attribute(text: &str) -> (&str, &str, &str) {
    let (key, value) = text.split_once('=').unwrap();
    let value = value.trim_start();
    let (value, after) = match value.chars().next().unwrap() {
        quote @ ('"' | '\'') => value[1..].split_once(quote).unwrap(),
        _ => value.split_at(value.find([' ', '>']).unwrap()),
    };
    (key.trim(), value, after)
}

fn unescape(value: &str) -> String {
    value
        .replace("&amp;", "&")
        .replace("&#38;", "&")
        .replace("&#x26;", "&")
}
