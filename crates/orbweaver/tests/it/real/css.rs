//! The references of a style sheet, found without any parser of CSS but these few lines.

/// The texts of `url(…)`, of the string behind `@import`, and of the strings in `image-set(…)`.
pub(crate) fn references(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    // What the next string is: a reference behind `@import` and in `image-set(`, else content.
    let mut import = false;
    let mut set_depth = 0;
    let mut namespace = false;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("/*") {
            rest = after.split_once("*/").map_or("", |(_, after)| after);
        } else if first == '"' || first == '\'' {
            let (string, after) = string(&rest[1..], first);
            if import || set_depth > 0 {
                found.push(string);
            }
            import = false;
            rest = after;
        } else if let Some(after) = starts(rest, "url(") {
            let (href, after) = url(after);
            if !namespace {
                found.push(href);
            }
            import = false;
            rest = after;
        } else if let Some(after) = starts(rest, "@import") {
            import = true;
            rest = after;
        } else if let Some(after) = starts(rest, "@namespace") {
            namespace = true;
            rest = after;
        } else if let Some(after) = starts(rest, "image-set(") {
            set_depth = 1;
            rest = after;
        } else {
            match first {
                '(' if set_depth > 0 => set_depth += 1,
                ')' if set_depth > 0 => set_depth -= 1,
                ';' | '{' => (import, namespace) = (false, false),
                _ => {}
            }
            let skip = match first {
                // An escaped character is never a delimiter.
                '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                // A name is passed whole, so that the end of one is not taken for a function.
                c if is_name(c) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            rest = &rest[skip..];
        }
    }
    found.retain(|href| !href.trim().is_empty());
    found
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

fn starts<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let start = text.get(..word.len())?;
    start
        .eq_ignore_ascii_case(word)
        .then(|| &text[word.len()..])
}

/// A string up to its quote, and what follows. A bare end of line ends it, too.
fn string(text: &str, quote: char) -> (String, &str) {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '\\' => rest = escape(after, &mut out),
            '\n' => return (String::new(), rest),
            _ if c == quote => return (out, after),
            _ => {
                out.push(c);
                rest = after;
            }
        }
    }
    (out, rest)
}

/// The content of `url(`, with quotes or without, and what follows.
fn url(text: &str) -> (String, &str) {
    let text = text.trim_start();
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (href, after) = string(&text[1..], quote);
        return (href, after.split_once(')').map_or("", |(_, after)| after));
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '\\' => rest = escape(after, &mut out),
            ')' => return (out.trim_end().to_owned(), after),
            // Such a thing is no URL token, and browsers skip to its end.
            '"' | '\'' | '(' => {
                return (
                    String::new(),
                    after.split_once(')').map_or("", |(_, after)| after),
                );
            }
            _ => {
                out.push(c);
                rest = after;
            }
        }
    }
    (out.trim_end().to_owned(), rest)
}

/// What an escape stands for, whose backslash is read already; returns what follows it.
fn escape<'a>(text: &'a str, out: &mut String) -> &'a str {
    let digits = text
        .bytes()
        .take(6)
        .take_while(u8::is_ascii_hexdigit)
        .count();
    if digits > 0 {
        let code = u32::from_str_radix(&text[..digits], 16).unwrap_or(0xfffd);
        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
        let rest = &text[digits..];
        return rest.strip_prefix([' ', '\n', '\t']).unwrap_or(rest);
    }
    match text.chars().next() {
        Some(c) => {
            if c != '\n' {
                out.push(c);
            }
            &text[c.len_utf8()..]
        }
        None => text,
    }
}
