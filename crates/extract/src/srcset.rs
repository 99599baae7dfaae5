//! The candidates of a `srcset` attribute.

use crate::rawtext::is_space;

/// The references in an image candidate string (HTML standard, "parse a srcset attribute"), one
/// pass over it. Descriptors are skipped unread: a picture with an odd one is still a picture.
pub(crate) fn candidates(srcset: &str) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| is_blank(c) || c == ',');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(is_blank).unwrap_or(rest.len());
        let (url, after) = rest.split_at_checked(end)?;
        let bare = url.trim_end_matches(',');
        // A comma at the end of the URL ends the candidate; otherwise descriptors follow.
        rest = if bare.len() < url.len() {
            after
        } else {
            after.get(descriptors(after)..).unwrap_or_default()
        };
        Some(bare)
    })
}

fn is_blank(c: char) -> bool {
    c.is_ascii() && is_space(c as u8)
}

/// The length of the descriptors up to the comma that ends them; commas in parentheses do not.
fn descriptors(text: &str) -> usize {
    let mut in_parentheses = false;
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            b',' if !in_parentheses => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_as_browsers_see_them() {
        for (srcset, expected) in [
            ("a.png", &["a.png"][..]),
            ("a.png 1x, b.png 2x", &["a.png", "b.png"]),
            ("a.png, b.png", &["a.png", "b.png"]),
            ("a.png,b.png", &["a.png,b.png"]),
            (",,a.png,,, b.png", &["a.png", "b.png"]),
            ("a.png 1x,b.png", &["a.png", "b.png"]),
            ("a.png (1,2) 3w, b.png", &["a.png", "b.png"]),
            ("data:,a 1x, b.png", &["data:,a", "b.png"]),
            ("a.png (1x, b.png 2x", &["a.png"]),
            ("\n a.png\t1x\n,\r\nb.png\n", &["a.png", "b.png"]),
            ("", &[]),
            (" , ,", &[]),
        ] {
            assert_eq!(
                candidates(srcset).collect::<Vec<_>>(),
                expected,
                "{srcset:?}"
            );
        }
    }

    #[test]
    fn a_hundred_thousand_candidates() {
        let bomb = "/i.png 1x, ".repeat(100_000);
        assert_eq!(candidates(&bomb).count(), 100_000);
    }
}
