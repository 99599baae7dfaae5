//! Text that came from outside, made fit to be kept and shown.
//!
//! What a server sends may steer a terminal, turn a line around or fill the screen. One mechanism is against all of
//! that: characters that are not seen are written as `\u{…}`, and what is longer than its bound is cut. It is applied
//! where such a text is taken over (`Outcome::because`, the target of a redirect) and again where text is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes of a reason that are kept: a sentence and a URL of ordinary length.
pub const MAX_REASON: usize = 1024;
/// Bytes that are kept of a redirect's target that is no URL.
pub const MAX_TARGET: usize = 512;

/// True for characters that are not seen themselves but change what is: controls (C0, DEL and C1), marks and overrides
/// of writing direction, line and paragraph separators, joiners and other characters without width, tags.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text in one line, with every hidden character written out.
pub fn shown(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push(&mut out, c);
    }
    Cow::Owned(out)
}

/// The same for a message of ours that may have several lines.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hidden(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let lines: Vec<_> = text.split('\n').map(shown).collect();
    Cow::Owned(lines.join("\n"))
}

/// The text in one line and within a bound on its bytes, to be kept. What is cut says how long it was.
pub fn bounded(text: String, max: usize) -> String {
    if text.len() <= max && is_plain(&text) {
        return text;
    }
    let mut out = String::new();
    for c in text.chars() {
        let before = out.len();
        push(&mut out, c);
        if out.len() > max {
            out.truncate(before);
            let _ = write!(out, "… ({} bytes)", text.len());
            break;
        }
    }
    out
}

/// Nearly all texts are printable ASCII, and a look at their bytes shows it.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn push(out: &mut String, c: char) {
    match is_hidden(c) {
        true => out.extend(c.escape_unicode()),
        false => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_left() {
        assert_eq!(shown("plain, größer, 漢字"), "plain, größer, 漢字");
        assert_eq!(
            shown("\u{1b}]0;owned\u{7}\r\n"),
            "\\u{1b}]0;owned\\u{7}\\u{d}\\u{a}"
        );
        assert_eq!(
            shown("a\u{9b}31mb\u{202e}c\u{2066}d\u{7f}"),
            "a\\u{9b}31mb\\u{202e}c\\u{2066}d\\u{7f}"
        );
        assert_eq!(shown_lines("one\n\u{1b}two"), "one\n\\u{1b}two");
        for c in (0..=0x10_ffffu32).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            assert!(!shown(&text).chars().any(is_hidden), "{c:?}");
            assert!(!c.is_control() || is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        assert_eq!(bounded("short".into(), 9), "short");
        assert_eq!(bounded("x".repeat(5000), 10), "xxxxxxxxxx… (5000 bytes)");
        let cut = bounded("\u{202e}".repeat(1 << 20), 100);
        assert!(cut.len() < 130, "{cut}");
        assert_eq!(bounded("é".repeat(6), 11), "ééééé… (12 bytes)");
        // Once bounded, a text stays as it is.
        assert_eq!(bounded(cut.clone(), 200), cut);
    }
}
