//! The target of a refresh: `<meta http-equiv=refresh content="5; url=…">` and the Refresh header.

/// The reference in a refresh, or none when it only reloads (HTML standard, "shared declarative
/// refresh steps").
pub(crate) fn refresh_target(content: &str) -> Option<&str> {
    let rest = content.trim_ascii_start();
    let after_digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // A time must be there; it may be nothing but a fraction.
    if after_digits.len() == rest.len() && !rest.starts_with('.') {
        return None;
    }
    let rest = after_digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !rest.starts_with(|c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace()) {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest);
    let target = unquote(strip_url(rest.trim_ascii_start()));
    (!target.is_empty()).then_some(target)
}

/// Drops `url =` when it is there in full; otherwise the text itself is the reference.
fn strip_url(text: &str) -> &str {
    text.get(..3)
        .filter(|word| word.eq_ignore_ascii_case("url"))
        .and_then(|_| text.get(3..))
        .and_then(|rest| rest.trim_ascii_start().strip_prefix('='))
        .map_or(text, str::trim_ascii_start)
}

fn unquote(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            return rest.split(quote).next().unwrap_or(rest);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_the_spellings() {
        for (content, target) in [
            ("5; url=x", Some("x")),
            ("5; url='x y'", Some("x y")),
            ("5;URL=\"x\"z", Some("x")),
            ("0;URL=x", Some("x")),
            ("0,url = x", Some("x")),
            ("0 url=x", Some("x")),
            (" 0; x", Some("x")),
            (".5;url=x", Some("x")),
            ("1.5; url=x", Some("x")),
            ("0;url=url=x", Some("url=x")),
            ("0; urlx", Some("urlx")),
            ("0;'x", Some("x")),
            ("5", None),
            ("5;", None),
            ("5; url=", None),
            ("url=x", None),
            ("5x; url=x", None),
            ("", None),
            ("0;u", Some("u")),
            ("0;ürl=x", Some("ürl=x")),
        ] {
            assert_eq!(refresh_target(content), target, "{content:?}");
        }
    }
}
