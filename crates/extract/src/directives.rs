//! What a page asks of robots: meta elements and X-Robots-Tag headers.
//!
//! Only the two that concern a crawler are kept. When several are given, the strictest wins, which
//! is what their authors mean and what search engines do.

use http::HeaderMap;

/// Directives whose value follows a colon; what stands before the colon is no robot's name then.
const WITH_VALUE: &[&str] = &[
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    pub(crate) noindex: bool,
    pub(crate) nofollow: bool,
}

impl Directives {
    /// Reads `noindex, nofollow`, the content of a meta element.
    pub(crate) fn read_list(&mut self, list: &str) {
        for word in list.split([',', ' ', '\t', '\n', '\r', ';']) {
            self.read_word(word);
        }
    }

    /// Reads all X-Robots-Tag headers. `agent: nofollow` is for that agent only, and so is what
    /// follows it in the same header.
    pub(crate) fn read_headers(&mut self, headers: &HeaderMap, agent: &str) {
        for value in headers.get_all("x-robots-tag") {
            let text = String::from_utf8_lossy(value.as_bytes());
            let mut for_us = true;
            for part in text.split(',') {
                let mut words = part.trim();
                if let Some((name, rest)) = part.split_once(':') {
                    let name = name.trim();
                    if WITH_VALUE
                        .iter()
                        .any(|known| name.eq_ignore_ascii_case(known))
                    {
                        continue;
                    }
                    for_us = name.eq_ignore_ascii_case(agent)
                        || name.eq_ignore_ascii_case("robots")
                        || name == "*";
                    words = rest;
                }
                if for_us {
                    self.read_list(words);
                }
            }
        }
    }

    fn read_word(&mut self, word: &str) {
        if word.eq_ignore_ascii_case("none") {
            self.noindex = true;
            self.nofollow = true;
        } else if word.eq_ignore_ascii_case("noindex") {
            self.noindex = true;
        } else if word.eq_ignore_ascii_case("nofollow") {
            self.nofollow = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[&str]) -> (bool, bool) {
        let mut map = HeaderMap::new();
        for value in headers {
            map.append("x-robots-tag", value.parse().unwrap());
        }
        let mut directives = Directives::default();
        directives.read_headers(&map, "orbweaver");
        (directives.noindex, directives.nofollow)
    }

    #[test]
    fn headers_with_and_without_agents() {
        assert_eq!(read(&["nofollow"]), (false, true));
        assert_eq!(read(&["NoIndex , NOFOLLOW"]), (true, true));
        assert_eq!(read(&["none"]), (true, true));
        assert_eq!(read(&["all", "noindex"]), (true, false));
        assert_eq!(read(&["googlebot: nofollow, noindex"]), (false, false));
        assert_eq!(
            read(&["googlebot: noindex, orbweaver: nofollow"]),
            (false, true)
        );
        assert_eq!(read(&["Orbweaver: none"]), (true, true));
        assert_eq!(
            read(&["unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow"]),
            (false, true)
        );
        assert_eq!(read(&["max-snippet: 10"]), (false, false));
        assert_eq!(read(&[]), (false, false));
    }
}
