//! Patterns and targets: one spelling for both, and a match in linear time.

use std::borrow::Cow;

use memchr::memmem;

/// The spelling in which patterns are compared. `*` and a final `$` keep their meaning.
///
/// RFC 9309 wants a leading slash; a pattern without one is read as if it had it, because its author
/// wanted something kept out and the other reading would keep out nothing.
pub(super) fn normalise_pattern(value: &[u8]) -> String {
    let (value, anchored) = match value.strip_suffix(b"$") {
        Some(value) => (value, true),
        None => (value, false),
    };
    let mut text = String::with_capacity(value.len() + 2);
    if !matches!(value.first(), Some(b'/' | b'*')) {
        text.push('/');
    }
    for (at, piece) in value.split(|byte| *byte == b'*').enumerate() {
        if at > 0 {
            text.push('*');
        }
        normalise(piece, &mut text);
    }
    if anchored {
        text.push('$');
    }
    text
}

/// The spelling in which targets are compared. `*` and `$` are plain characters here and are encoded,
/// so that only `%2A` and `%24` in a pattern name them (RFC 9309 section 2.2.3).
pub(super) fn normalise_target(target: &str) -> Cow<'_, str> {
    if target.bytes().all(is_kept) {
        return Cow::Borrowed(target);
    }
    let mut text = String::with_capacity(target.len() + 16);
    normalise(target.as_bytes(), &mut text);
    Cow::Owned(text)
}

/// Decodes what need not be encoded, encodes what must be, and writes the rest in upper case.
fn normalise(bytes: &[u8], text: &mut String) {
    let mut rest = bytes;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        let (byte, encoded) = match (byte, escape(tail)) {
            (b'%', Some(value)) => {
                rest = tail.get(2..).unwrap_or_default();
                (value, true)
            }
            _ => (*byte, false),
        };
        let keep = if encoded {
            is_unreserved(byte)
        } else {
            is_kept(byte)
        };
        if keep {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.extend([byte >> 4, byte & 15].map(hex_digit));
        }
    }
}

fn escape(tail: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*tail.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16)
        .unwrap_or('0')
        .to_ascii_uppercase()
}

/// RFC 3986 section 2.3: the same resource with or without encoding.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Unreserved and reserved characters stand for themselves, but for the two that patterns use.
fn is_kept(byte: u8) -> bool {
    is_unreserved(byte) || b"/?#[]@!&'()+,;=:".contains(&byte)
}

/// Whether a normalised pattern matches the beginning of a normalised target.
///
/// The pieces between stars are looked for from left to right, each at its first place: an earlier
/// place never leaves less for the pieces that follow. So there is no backtracking, and sixty stars
/// cost as much as none.
pub(super) fn matches(pattern: &[u8], target: &[u8]) -> bool {
    let (pattern, anchored) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split(|byte| *byte == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = target.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return !anchored || rest.is_empty();
    };
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        let Some(at) = memmem::find(rest, piece) else {
            return false;
        };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    if anchored {
        rest.ends_with(last)
    } else {
        memmem::find(rest, last).is_some()
    }
}
