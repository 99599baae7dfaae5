//! Rust source as far as the rules need it: the modules of a crate, and which of them names which.
//!
//! It is read as text. Comments, strings and test modules are cut out first; what is left names other modules in `use`
//! lines and in paths that begin with `crate` or `super`.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, read};

/// A module by the names on the way to it; none for the root of the crate.
pub(crate) type Module = Vec<String>;

/// The modules of a crate, each with its code.
pub(crate) struct Source {
    pub(crate) modules: BTreeMap<Module, String>,
    /// For each module the names that it passes on, with what each stands for.
    passed_on: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// Whether a file holds tests and nothing else.
pub(crate) fn is_of_tests(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs")
}

impl Source {
    /// Reads a crate, by the path of its folder.
    pub(crate) fn of(home: &str) -> Self {
        let src = format!("{home}/src");
        let mut all = Vec::new();
        files(&src, &mut all);
        let mut modules = BTreeMap::new();
        for path in all {
            let Some(name) = path.strip_suffix(".rs") else {
                continue;
            };
            if is_of_tests(&path) {
                continue;
            }
            let inside = name.strip_prefix(&format!("{src}/")).unwrap_or(name);
            let mut module: Module = inside.split('/').map(str::to_owned).collect();
            if matches!(
                module.last().map(String::as_str),
                Some("lib" | "main" | "mod")
            ) {
                module.pop();
            }
            modules.insert(module, without_tests(&code(&read(&path))));
        }
        let mut source = Self {
            modules,
            passed_on: BTreeMap::new(),
        };
        for (module, text) in &source.modules {
            let names = uses(text, true).into_iter().filter_map(|mut path| {
                let name = path.last()?.clone();
                path.retain(|part| part != "self");
                Some((name, path))
            });
            source.passed_on.insert(module.clone(), names.collect());
        }
        source
    }

    /// Every module with the other modules of the crate that it names.
    pub(crate) fn arrows(&self) -> BTreeSet<(Module, Module)> {
        let mut arrows = BTreeSet::new();
        for (module, text) in &self.modules {
            for path in uses(text, false).into_iter().chain(paths(text)) {
                if let Some(to) = self.resolve(module, &path, 0) {
                    arrows.insert((module.clone(), to));
                }
            }
        }
        arrows
    }

    /// The module that a path leads to, through what others pass on; none when it leads out of the crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut at = from.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                at.push(first.to_owned());
                let known = self.modules.contains_key(&at);
                at.pop();
                if !known {
                    return None;
                }
            }
        }
        while let Some((next, tail)) = rest.split_first() {
            at.push(next.clone());
            if !self.modules.contains_key(&at) {
                at.pop();
                break;
            }
            rest = tail;
        }
        let passed_on = rest
            .first()
            .and_then(|name| self.passed_on.get(&at)?.get(name));
        match passed_on.filter(|_| depth < 8) {
            Some(path) => self.resolve(&at, path, depth + 1).or(Some(at)),
            None => Some(at),
        }
    }

    /// The types that each module defines.
    pub(crate) fn types(&self) -> BTreeMap<String, Vec<Module>> {
        let mut types: BTreeMap<String, Vec<Module>> = BTreeMap::new();
        for (module, text) in &self.modules {
            for line in text.lines() {
                let mut words = line.split_whitespace().peekable();
                if line.starts_with(char::is_whitespace) {
                    continue;
                }
                words.next_if(|word| word.starts_with("pub"));
                let kind = words.next().unwrap_or_default();
                if let ("struct" | "enum" | "trait" | "union" | "type", Some(name)) =
                    (kind, words.next())
                {
                    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                    let name = &name[..end.unwrap_or(name.len())];
                    types.entry(name.into()).or_default().push(module.clone());
                }
            }
        }
        types
    }
}

/// The text without comments, and with nothing in its strings.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest, code.chars().next_back()) {
            code.push_str("\"\"");
            length
        } else if next == '"' {
            code.push_str("\"\"");
            string(rest)
        } else if let Some(length) = character(rest) {
            code.push_str("' '");
            length
        } else {
            code.push(next);
            next.len_utf8()
        };
        rest = &rest[skipped..];
    }
    code
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn raw_string(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let inner = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(
        body.find(&end)
            .map_or(text.len(), |at| start + at + end.len()),
    )
}

/// A character literal, which a lifetime is not.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let mut chars = body.chars();
    let first = chars.next()?;
    if first == '\\' {
        let after = body.get(2..)?;
        return Some(3 + after.find('\'')? + 1);
    }
    chars
        .as_str()
        .starts_with('\'')
        .then(|| 2 + first.len_utf8())
}

/// The code without modules that are for tests.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]\nmod ";
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let module = &rest[at..];
        let end = module.find(['{', ';']).unwrap_or(module.len());
        let length = match module[end..].starts_with('{') {
            true => end + block(&module[end..]),
            false => end + 1,
        };
        rest = &module[length.min(module.len())..];
    }
    kept.push_str(rest);
    kept
}

/// The length of what stands in braces.
fn block(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The paths of `use` lines; of those that pass names on only, if that is wanted.
fn uses(text: &str, passed_on: bool) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for statement in text.split([';', '}', '{']).scan(0, |end, piece| {
        let start = *end;
        *end += piece.len() + 1;
        Some((start, piece))
    }) {
        let (start, piece) = statement;
        let line = piece.trim_start();
        let line = line.rsplit("]\n").next().unwrap_or(line).trim_start();
        let is_public = line.starts_with("pub");
        let bare = match is_public {
            true => line.split_once("use ").map(|(before, _)| before.trim()),
            false => line.strip_prefix("use ").map(|_| ""),
        };
        let visibility_only = |before: &str| before.is_empty() || !before.contains(['=', '\n']);
        if !bare.is_some_and(visibility_only) || (passed_on && !is_public) {
            continue;
        }
        let at = start + piece.find("use ").unwrap_or_default() + "use ".len();
        let tree = text[at..].split(';').next().unwrap_or_default();
        branches(&[], tree, &mut found);
    }
    found
}

/// Every path of a tree like `a::{b, c::{d, e}}`.
fn branches(before: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let (head, inner) = match tree.split_once('{') {
        Some((head, inner)) => (head, inner.rsplit_once('}').map(|(inner, _)| inner)),
        None => (tree.split(" as ").next().unwrap_or(tree), None),
    };
    let mut path = before.to_vec();
    let parts = head
        .split("::")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    path.extend(parts.map(str::to_owned));
    let Some(inner) = inner else {
        found.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches(&path, &inner[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        branches(&path, &inner[start..], found);
    }
}

/// The paths in the code that begin with `crate` or `super`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            if text[..at].ends_with(|c| is_word(c) || c == ':') {
                continue;
            }
            let end = text[at..].find(|c| !is_word(c) && c != ':');
            let path = &text[at..end.map_or(text.len(), |end| at + end)];
            let parts = path.split("::").filter(|part| !part.is_empty());
            found.push(parts.map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn source_is_read_as_it_is_written() {
    let text = "use crate::{a::{B, c}, d as e};\n// use crate::x;\npub(crate) use self::f::G;\n\
                fn h() -> &'static str { crate::i::j(\"use crate::y;\", '\"', '\\'', r#\"\"#) }\n\
                #[cfg(test)]\nmod tests { use super::z; fn k() {} }\nfn l() { super::m::n() }\n";
    let code = without_tests(&code(text));
    let joined = |paths: Vec<Vec<String>>| -> Vec<String> {
        paths.iter().map(|path| path.join("::")).collect()
    };
    assert_eq!(
        joined(uses(&code, false)),
        ["crate::a::B", "crate::a::c", "crate::d", "self::f::G"]
    );
    assert_eq!(joined(uses(&code, true)), ["self::f::G"]);
    let all = joined(paths(&code));
    assert!(all.contains(&"crate::i::j".into()) && all.contains(&"super::m::n".into()));
    assert!(
        !all.iter()
            .any(|path| path.contains('x') || path.contains('y'))
    );
    assert!(!code.contains('z'));
}
