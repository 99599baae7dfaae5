//! Every mistake of a configuration file at once, in plain words.
//!
//! The reader of TOML ends at the first mistake. So the lines with that mistake are taken out and the rest is read
//! again, until nothing is left to complain of.

use std::ops::Range;

use super::Config;

/// Mistakes that are named; a file with more of them is not a configuration.
const MOST: usize = 50;

/// Reads a configuration as far as it can be read, and says what is wrong with the rest, each with its line.
pub(super) fn read(text: &str) -> (Config, Vec<String>) {
    let mut left = text.to_owned();
    let mut mistakes = Vec::new();
    let config = loop {
        let error = match toml::from_str(&left) {
            Ok(config) => break config,
            Err(error) => error,
        };
        let said = in_plain_words(error.message());
        let Some(span) = error.span().filter(|_| mistakes.len() < MOST) else {
            mistakes.push((usize::MAX, said));
            break Config::default();
        };
        let line = left
            .get(..span.start)
            .unwrap_or_default()
            .matches('\n')
            .count()
            + 1;
        let written = text.lines().nth(line - 1).unwrap_or_default().trim();
        mistakes.push((line, format!("line {line}, `{written}`: {said}")));
        let before = left.clone();
        blank(&mut left, lines_of(&before, span));
        if left == before {
            break Config::default();
        }
    };
    mistakes.sort_by_key(|(line, _)| *line);
    (config, mistakes.into_iter().map(|(_, said)| said).collect())
}

/// The whole lines of a mistake. With the head of a table go the lines below it, for they have no other place.
fn lines_of(text: &str, span: Range<usize>) -> Range<usize> {
    let head = text.get(..span.start).unwrap_or_default();
    let start = head.rfind('\n').map_or(0, |end| end + 1);
    let end_of_line = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.find('\n').map_or(text.len(), |end| from + end)
    };
    let mut end = end_of_line(span.end.max(start));
    let is_head = text
        .get(start..)
        .is_some_and(|line| line.trim_start().starts_with('['));
    while is_head && end < text.len() {
        let next = text.get(end + 1..).unwrap_or_default();
        if next.trim_start_matches([' ', '\t']).starts_with('[') {
            break;
        }
        end = end_of_line(end + 1);
    }
    start..end
}

/// Takes lines out without moving the others.
fn blank(text: &mut String, lines: Range<usize>) {
    if let Some(old) = text.get(lines.clone()) {
        let empty: String = old.chars().filter(|c| *c == '\n').collect();
        text.replace_range(lines, &empty);
    }
}

/// What the reader says, without the names that types have in the program.
pub(crate) fn in_plain_words(message: &str) -> String {
    let mut words = message.trim_end().replace('\n', "; ");
    for (theirs, ours) in [
        ("expected f64", "expected a number"),
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected u16", "expected a whole number from 0 to 65535"),
        (
            "expected u32",
            "expected a whole number from 0 to 4294967295",
        ),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected a boolean", "expected true or false"),
        ("expected a sequence", "expected a list in brackets"),
        ("expected a string", "expected a text in quotes"),
        ("unknown field", "unknown key"),
        ("invalid type: string ", "the text "),
        ("invalid type: integer ", "the number "),
        ("invalid type: floating point ", "the number "),
        ("invalid type: boolean ", "the word "),
        ("invalid type: sequence", "a list"),
        ("invalid type: map", "a table"),
        ("invalid value: integer ", "the number "),
        ("invalid value: ", ""),
        ("invalid type: ", ""),
    ] {
        words = words.replace(theirs, ours);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_named_with_their_lines() {
        let text = "contact = 5\nmemory = \"1G\"\n[politeness]\nratte = 5\nrate = \"fast\"\nper_host = -1\n\
                    [nonsense]\nx = 1\ny = 2\n[scope]\ndepth = 70000\ninclude = \"x\"\nrequisites = 1\n";
        let (config, mistakes) = read(text);
        let all = mistakes.join("\n");
        for (line, part) in [
            (1, "text in quotes"),
            (4, "unknown key `ratte`"),
            (5, "expected a number"),
            (6, "from 0 to 65535"),
            (7, "unknown key `nonsense`"),
            (11, "from 0 to 65535"),
            (12, "a list in brackets"),
            (13, "true or false"),
        ] {
            let named = format!("line {line}, ");
            let found = mistakes.iter().find(|said| said.starts_with(&named));
            assert!(
                found.is_some_and(|said| said.contains(part)),
                "{line}: {all}"
            );
        }
        assert_eq!(mistakes.len(), 8, "{all}");
        for name in ["f64", "u16", "usize", "invalid type", "boolean"] {
            assert!(!all.contains(name), "{name}: {all}");
        }
        assert_eq!(config.memory.as_deref(), Some("1G"));
    }

    #[test]
    fn what_is_no_toml_is_said_and_ends() {
        for text in [
            "{",
            "a = \"b",
            "[x",
            "= 3",
            "seeds = [\n\"http://a/\",\n",
            "\u{0}",
        ] {
            let (_, mistakes) = read(text);
            assert!(
                !mistakes.is_empty() && mistakes.len() < 5,
                "{text}: {mistakes:?}"
            );
        }
    }
}
