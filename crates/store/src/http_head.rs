//! The few things the store must know about an HTTP head: where it ends, its status, one field.
//!
//! Writer, recovery and check must agree on them, and with warcio and pywb, which read the same records:
//! so they are read from the stored bytes and not taken from the spider's parsed form.

/// Where the body begins: after the first line that is empty but for white space. A head that never ends
/// is the whole message.
pub(crate) fn head_len(message: &[u8]) -> usize {
    find_end(message).unwrap_or(message.len())
}

/// Where the head ends, when that can be said before more is read.
pub(crate) fn find_end(message: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(line) = next_line(message, at) {
        at += line.len();
        if line.ends_with(b"\n") && line.trim_ascii().is_empty() {
            return Some(at);
        }
    }
    None
}

/// The status code as written in the status line; none when there is no such thing.
pub(crate) fn status(head: &[u8]) -> Option<u16> {
    let line = next_line(head, 0)?;
    let rest = line.splitn(2, |byte| *byte == b' ').nth(1)?.trim_ascii();
    let code = rest.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(code).ok()?.parse().ok()
}

/// The value of the first field of this name, without the white space around it; UTF-8 when it is, else
/// Latin-1. A folded value is not joined: its first line holds what the store asks for.
pub(crate) fn field(head: &[u8], name: &str) -> Option<String> {
    let mut at = next_line(head, 0)?.len();
    while let Some(line) = next_line(head, at) {
        at += line.len();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (found, value) = line.split_at(colon);
        if found.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()) {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            return Some(to_text(value));
        }
    }
    None
}

/// The media type as pywb's indexer reads it: what stands before the first `;` or space; `unk` without a
/// Content-Type, empty when nothing stands there.
pub(crate) fn media_type(head: &[u8]) -> String {
    let declared = field(head, "content-type").unwrap_or_default();
    if declared.is_empty() {
        return "unk".to_owned();
    }
    let end = declared.find([';', ' ']).unwrap_or(declared.len());
    declared.get(..end).unwrap_or_default().to_owned()
}

fn next_line(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
    let end = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(rest.len(), |newline| newline + 1);
    rest.get(..end)
}

fn to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_apart() {
        let message =
            b"HTTP/1.1 200 OK\r\ncontent-TYPE : text/html; charset=utf-8\r\nX: y\r\n\r\nbody\n\n";
        let len = head_len(message);
        assert_eq!(&message[len..], b"body\n\n");
        let head = &message[..len];
        assert_eq!(status(head), Some(200));
        assert_eq!(media_type(head), "text/html");
        assert_eq!(field(head, "x").as_deref(), Some("y"));
        assert_eq!(field(head, "HTTP/1.1 200 OK"), None);
    }

    #[test]
    fn odd_heads() {
        assert_eq!(head_len(b"HTTP/1.0 200\nA: b\n\nx"), 19);
        assert_eq!(head_len(b"HTTP/1.0 200\nA: b"), 17);
        assert_eq!(head_len(b""), 0);
        assert_eq!(status(b"HTTP/1.0  404 Not Found\r\n"), Some(404));
        assert_eq!(status(b"garbage"), None);
        assert_eq!(media_type(b"HTTP/1.0 200\r\n\r\n"), "unk");
        assert_eq!(media_type(b"HTTP/1.0 200\r\nContent-Type: ;x\r\n\r\n"), "");
        assert_eq!(
            media_type(b"HTTP/1.0 200\r\nContent-Type: t\xe9xt/x\r\n\r\n"),
            "t\u{e9}xt/x"
        );
    }
}
