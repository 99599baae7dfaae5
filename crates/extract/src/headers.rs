//! References in response headers: Link (RFC 8288) and Refresh.

use http::HeaderMap;
use http::header::LINK;
use orbweaver_model::LinkKind;

use crate::elements::{link_kind, rel_is_nofollow};
use crate::links::Links;
use crate::refresh::refresh_target;

/// Link values read from the headers of one response. Honest pages have a dozen at most.
const MAX_HEADER_LINKS: usize = 32;

/// Adds the references of the headers.
pub(crate) fn header_links(headers: &HeaderMap, links: &mut Links) {
    let mut room = MAX_HEADER_LINKS;
    for value in headers.get_all(LINK) {
        // Latin-1 or UTF-8, what is not ASCII is escaped by the URL parser in the end.
        let text = String::from_utf8_lossy(value.as_bytes());
        let mut rest: &str = &text;
        while let Some((link, after)) = next_link(rest) {
            if room == 0 {
                return;
            }
            room -= 1;
            link.add_to(links);
            rest = after;
        }
    }
    for value in headers.get_all("refresh") {
        let text = String::from_utf8_lossy(value.as_bytes());
        if let Some(target) = refresh_target(&text) {
            links.push(target, LinkKind::Refresh, false);
        }
    }
}

/// One link value: the target and the two parameters that matter.
#[derive(Debug, PartialEq, Eq)]
struct HeaderLink<'a> {
    target: &'a str,
    rel: &'a str,
    purpose: &'a str,
    /// True when `anchor` makes it a link of some other document.
    anchored: bool,
}

impl HeaderLink<'_> {
    fn add_to(&self, links: &mut Links) {
        if self.anchored {
            return;
        }
        let kind = match link_kind(self.rel.as_bytes(), self.purpose.as_bytes()) {
            Some(LinkKind::Link) => LinkKind::Header,
            Some(kind) => kind,
            None => return,
        };
        links.push(self.target, kind, rel_is_nofollow(self.rel.as_bytes()));
    }
}

/// Reads `<target>; name=value; …` and what follows its comma.
fn next_link(text: &str) -> Option<(HeaderLink<'_>, &str)> {
    let (_, rest) = text.split_once('<')?;
    let (target, mut rest) = rest.split_once('>')?;
    let mut link = HeaderLink {
        target,
        rel: "",
        purpose: "",
        anchored: false,
    };
    loop {
        rest = rest.trim_ascii_start();
        let Some(after) = rest.strip_prefix(';') else {
            break;
        };
        let (name, value, after) = parameter(after);
        // The first rel counts (RFC 8288, section 3.3).
        match name {
            _ if name.eq_ignore_ascii_case("rel") && link.rel.is_empty() => link.rel = value,
            _ if name.eq_ignore_ascii_case("as") => link.purpose = value,
            _ if name.eq_ignore_ascii_case("anchor") => link.anchored = true,
            _ => {}
        }
        rest = after;
    }
    let after = rest.split_once(',').map_or("", |(_, after)| after);
    Some((link, after))
}

/// Name, value and what follows. Quoted values may hold commas and semicolons; their backslashes
/// are left in place, for no relation has any.
fn parameter(text: &str) -> (&str, &str, &str) {
    let end = text.find(['=', ';', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let name = name.trim_ascii();
    let Some(value) = rest.strip_prefix('=') else {
        return (name, "", rest);
    };
    let value = value.trim_ascii_start();
    if let Some(quoted) = value.strip_prefix('"') {
        let mut escaped = false;
        let end = quoted.bytes().position(|b| {
            let closes = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            closes
        });
        let (value, rest) = quoted
            .split_at_checked(end.unwrap_or(quoted.len()))
            .unwrap_or((quoted, ""));
        return (name, value, rest.strip_prefix('"').unwrap_or(rest));
    }
    let end = value.find([';', ',']).unwrap_or(value.len());
    let (value, rest) = value.split_at_checked(end).unwrap_or((value, ""));
    (name, value.trim_ascii_end(), rest)
}

#[cfg(test)]
mod tests {
    use orbweaver_model::Limits;

    use super::*;

    fn read(values: &[&str]) -> Vec<(String, LinkKind)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(LINK, value.parse().unwrap());
        }
        let mut links = Links::new(&Limits::default());
        header_links(&headers, &mut links);
        links
            .iter()
            .map(|link| (link.href.to_owned(), link.kind))
            .collect()
    }

    #[test]
    fn link_headers() {
        let found = read(&[
            "<a,b>; rel=next; title=\"x, <no>; \\\" y\", </s.css>;rel=\"stylesheet\" , <//cdn.example>; rel=preconnect",
            "<c>; rel=prev; rel=stylesheet",
            "</f.js>; as=script; rel=preload",
            "<d>; anchor=\"#x\"; rel=up, <e>",
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|(href, kind)| (href.as_str(), *kind))
            .collect();
        assert_eq!(
            found,
            [
                ("a,b", LinkKind::Header),
                ("/s.css", LinkKind::Stylesheet),
                ("c", LinkKind::Header),
                ("/f.js", LinkKind::Script),
                ("e", LinkKind::Header),
            ]
        );
    }

    #[test]
    fn many_link_values_are_bounded() {
        let many: Vec<String> = (0..3000).map(|n| format!("</{n}>; rel=next")).collect();
        assert_eq!(read(&[&many.join(", ")]).len(), MAX_HEADER_LINKS);
    }

    #[test]
    fn refresh_headers() {
        let mut headers = HeaderMap::new();
        headers.insert("refresh", "0; url=/next".parse().unwrap());
        let mut links = Links::new(&Limits::default());
        header_links(&headers, &mut links);
        assert_eq!(links.iter().next().unwrap().href, "/next");
    }
}
