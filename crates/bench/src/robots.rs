//! robots.txt for the naive loop: the rules for everybody, the longest match wins. As RFC 9309 has it for
//! a crawler that no file names; anything beyond is left out.

/// The rules for `User-agent: *`.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<(String, bool)>);

impl Rules {
    /// Reads a robots.txt.
    pub(crate) fn read(text: &str) -> Self {
        let mut rules = Vec::new();
        let (mut ours, mut in_names) = (false, false);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match field.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    ours = (in_names && ours) || value == "*";
                    in_names = true;
                }
                word @ ("allow" | "disallow") => {
                    in_names = false;
                    if ours && !value.is_empty() {
                        rules.push((value.to_owned(), word == "allow"));
                    }
                }
                _ => {}
            }
        }
        Self(rules)
    }

    /// Whether a path and query may be asked for.
    pub(crate) fn allow(&self, target: &str) -> bool {
        let matching = self.0.iter().filter(|(pattern, _)| fits(pattern, target));
        matching
            .max_by_key(|(pattern, allow)| (pattern.len(), *allow))
            .is_none_or(|(_, allow)| *allow)
    }
}

/// Whether a pattern with `*` and a closing `$` matches the beginning of a path.
fn fits(pattern: &str, target: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = target.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if whole && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    !whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_for_everybody_wins() {
        let rules = Rules::read(
            "User-agent: badbot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/ # no\n\
             Allow: /private/open/\nDisallow: /*.pdf$\nDisallow: /search\n",
        );
        for (target, allowed) in [
            ("/", true),
            ("/private/1.html", false),
            ("/private/open/1.html", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf.html", true),
            ("/search?q=a", false),
        ] {
            assert_eq!(rules.allow(target), allowed, "{target}");
        }
        assert!(Rules::read("nonsense").allow("/"));
    }

    #[test]
    fn names_that_stand_together_share_their_rules() {
        let rules =
            Rules::read("User-agent: a\nUser-agent: *\nDisallow: /x\nUser-agent: b\nDisallow: /y");
        assert!(!rules.allow("/x") && rules.allow("/y"));
    }
}
