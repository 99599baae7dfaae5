//! Seed lists: one URL per line, as users write them.
//!
//! Blank lines, lines that begin with `#`, a byte order mark and CRLF are all welcome. A line
//! without a scheme means `https://`, which is what a browser would do today. All mistakes are
//! reported at once.

use std::fmt::Write as _;

use orbweaver_model::CrawlUrl;

use crate::IntakeError;
use crate::canonical::{CanonicalError, Canonicalizer};

/// A line of a seed list that is no URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSeed {
    /// The number of the line, from 1.
    pub line: usize,
    /// The line as written.
    pub text: String,
    /// What is wrong with it.
    pub error: CanonicalError,
}

/// Reads a seed list. Repeated URLs are kept once, in the order of their first mention.
pub fn parse_seeds(
    text: &str,
    canonicalizer: &Canonicalizer,
) -> Result<Vec<CrawlUrl>, IntakeError> {
    let mut seeds = Vec::new();
    let mut known = std::collections::HashSet::new();
    let mut bad = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_seed(line, canonicalizer) {
            Ok(url) => {
                if known.insert(url.clone()) {
                    seeds.push(url);
                }
            }
            Err(error) => bad.push(BadSeed {
                line: index + 1,
                text: line.to_owned(),
                error,
            }),
        }
    }
    if bad.is_empty() {
        Ok(seeds)
    } else {
        Err(IntakeError::Seeds(bad))
    }
}

/// Reads one seed, with `https://` put in front when there is no scheme.
pub fn parse_seed(line: &str, canonicalizer: &Canonicalizer) -> Result<CrawlUrl, CanonicalError> {
    if has_scheme(line) {
        canonicalizer.parse(line)
    } else {
        let rest = line.trim_start_matches('/');
        canonicalizer.parse(&format!("https://{rest}"))
    }
}

/// `example.org:8080/x` has no scheme although it has a colon: what follows is a port. In
/// `mailto:a@b` and `http:/x` it is not.
fn has_scheme(line: &str) -> bool {
    let Some((scheme, rest)) = line.split_once(':') else {
        return false;
    };
    let is_name = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    is_name && !rest.starts_with(|c: char| c.is_ascii_digit())
}

pub(crate) fn describe(bad: &[BadSeed]) -> String {
    let mut text = String::new();
    for seed in bad {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "line {}: {:?}: {}", seed.line, seed.text, seed.error);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_users_write_them() {
        let text = "\u{feff}# my sites\r\nexample.org/x\r\n\r\n  http://a.example \r\nexample.org:8080/y\nhttps://example.org/x\n//b.example/c\n";
        let seeds = parse_seeds(text, &Canonicalizer::default()).unwrap();
        let seeds: Vec<_> = seeds.iter().map(CrawlUrl::as_str).collect();
        assert_eq!(
            seeds,
            [
                "https://example.org/x",
                "http://a.example/",
                "https://example.org:8080/y",
                "https://b.example/c",
            ]
        );
    }

    #[test]
    fn all_mistakes_at_once_with_their_lines() {
        let text = "example.org\nmailto:me@example.org\n\nhttp://a.example:99999/\nhttp://\n";
        let Err(IntakeError::Seeds(bad)) = parse_seeds(text, &Canonicalizer::default()) else {
            panic!("bad seeds were accepted");
        };
        let found: Vec<_> = bad.iter().map(|seed| (seed.line, seed.error)).collect();
        assert_eq!(
            found,
            [
                (2, CanonicalError::Scheme),
                (4, CanonicalError::Port),
                (5, CanonicalError::Host),
            ]
        );
        let message = IntakeError::Seeds(bad).to_string();
        assert!(message.starts_with("line 2: \"mailto:me@example.org\": only http"));
        assert_eq!(message.lines().count(), 3);
    }
}
