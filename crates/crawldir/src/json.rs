//! JSON lines without hidden characters: text from outside must not be able to change what a terminal shows.
//!
//! `orbweaver_model::text` says which characters those are. In JSON they are written as `\\uXXXX`, so that a program
//! reads the text as it is and a terminal is not steered by it.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

use orbweaver_model::text::is_hidden;

/// One object as a line of JSON, without its line end.
pub fn line(value: &impl Serialize) -> String {
    let mut line = Vec::new();
    match write(&mut line, value) {
        Ok(()) => String::from_utf8(line).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// Writes one object as JSON, without a line end.
pub fn write(out: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Visible(CompactFormatter));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Writes hidden characters as escapes.
struct Visible(CompactFormatter);

impl Formatter for Visible {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if fragment.is_ascii() && !fragment.contains('\u{7f}') {
            return out.write_all(fragment.as_bytes());
        }
        for c in fragment.chars() {
            if !is_hidden(c) {
                out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(out, escape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_what_is_there_and_terminals_are_not_steered() {
        let text = "a\u{9b}1m \u{202e}b\u{e0001} \u{7f} \n \u{1b} \"gr\u{f6}\u{df}er\"";
        let line = super::line(&serde_json::json!({ "reason": text }));
        assert!(!line.chars().any(is_hidden), "{line}");
        let back: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back.get("reason").unwrap(), text);
        assert_eq!(super::line(&[1, 2]), "[1,2]");
    }
}
