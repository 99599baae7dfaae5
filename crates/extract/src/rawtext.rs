//! Where text ends in elements that hold text instead of markup.

use memchr::{memchr, memchr_iter, memchr2};

/// The length of the text in front of the end tag `</name`; all of it when there is none.
pub(crate) fn end_of_text(text: &[u8], name: &[u8]) -> usize {
    memchr_iter(b'<', text)
        .find(|at| is_end_tag(text.get(at + 1..).unwrap_or_default(), name))
        .unwrap_or(text.len())
}

/// How the tokenizer reads a script at the moment (sections 13.2.5.15 to 13.2.5.31).
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Plain: `</script>` ends it, `<!--` begins an escape.
    Data,
    /// After `<!--`: `</script>` still ends it, `-->` ends the escape, `<script` doubles it.
    Escaped,
    /// After `<!-- <script`: `</script>` only undoes the doubling.
    DoubleEscaped,
}

/// The length of a script's text; all of it when its end tag is missing.
pub(crate) fn end_of_script(text: &[u8]) -> usize {
    let mut state = State::Data;
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let found = match state {
            State::Data => memchr(b'<', rest),
            State::Escaped | State::DoubleEscaped => memchr2(b'<', b'>', rest),
        };
        let Some(offset) = found else {
            return text.len();
        };
        let here = at + offset;
        at = here + 1;
        let after = text.get(at..).unwrap_or_default();
        if text.get(here) == Some(&b'>') {
            // In both escaped states the dashes can only stand behind the `<!` that opened them.
            if text
                .get(..here)
                .is_some_and(|before| before.ends_with(b"--"))
            {
                state = State::Data;
            }
        } else if state != State::DoubleEscaped && is_end_tag(after, b"script") {
            return here;
        } else {
            match state {
                State::Data if after.starts_with(b"!--") => {
                    state = State::Escaped;
                    at += 1;
                }
                State::Escaped if is_name(after, b"script") => state = State::DoubleEscaped,
                State::DoubleEscaped if is_end_tag(after, b"script") => state = State::Escaped,
                _ => {}
            }
        }
    }
}

/// True for what follows the `<` of an end tag with this name.
fn is_end_tag(after: &[u8], name: &[u8]) -> bool {
    after
        .strip_prefix(b"/")
        .is_some_and(|after| is_name(after, name))
}

/// True when the name stands here, in whatever case, and ends here.
fn is_name(after: &[u8], name: &[u8]) -> bool {
    after
        .get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
        && after.get(name.len()).is_some_and(|b| ends_tag_name(*b))
}

/// White space of HTML; a carriage return counts, for the standard reads it as a newline.
pub(crate) const fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// True for a byte that ends the name of a tag.
pub(crate) const fn ends_tag_name(b: u8) -> bool {
    is_space(b) || b == b'/' || b == b'>'
}
