//! References in style sheets: `url(…)`, `@import` and the strings of `image-set(…)`.
//!
//! Only tokens are looked at (through `cssparser`), no rules and no blocks, so nesting has no depth
//! here and costs nothing.

use cssparser::{Parser, Token};
use orbweaver_model::LinkKind;

use crate::links::Links;

/// What the next string means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// Nothing: it is content, a font name, a selector.
    Nothing,
    /// A reference: it stands after `url(` or `@import`.
    Reference,
    /// A name that looks like a reference: it stands in `@namespace`.
    Namespace,
}

/// What is known of the place of a token.
#[derive(Clone, Copy)]
struct Place {
    expect: Expect,
    /// Parentheses that are open since an `image-set(` began; directly in it, strings are references.
    in_set: usize,
}

/// Adds the references of a style sheet, or of the value of a style attribute.
pub(crate) fn css_links(css: &str, links: &mut Links) {
    let mut place = Place {
        expect: Expect::Nothing,
        in_set: 0,
    };
    let mut rest = css;
    // The parser offers a block as one opening token and skips to its end on the next call. A new
    // parser on what follows the token walks into it instead, without recursion.
    while let Some(inside) = until_block(rest, &mut place, links) {
        rest = inside;
    }
}

/// Reads tokens up to the next one that opens a block; what follows it is returned.
fn until_block<'a>(css: &'a str, place: &mut Place, links: &mut Links) -> Option<&'a str> {
    let mut parser = Parser::new(css);
    loop {
        if links.is_cut() {
            return None;
        }
        let opens = {
            let token = parser.next_including_whitespace_and_comments().ok()?;
            place.expect = read(token, *place, links);
            place.in_set = depth_after(token, place.in_set);
            matches!(
                token,
                Token::Function(_)
                    | Token::ParenthesisBlock
                    | Token::SquareBracketBlock
                    | Token::CurlyBracketBlock
            )
        };
        if opens {
            return css.get(parser.position().byte_index()..);
        }
    }
}

/// The parentheses that are open since an `image-set(` began, after this token. What ends a declaration ends all of
/// them, for in a broken style sheet they never close.
fn depth_after(token: &Token<'_>, open: usize) -> usize {
    match token {
        Token::Function(name)
            if open == 0
                && (name.eq_ignore_ascii_case("image-set")
                    || name.eq_ignore_ascii_case("-webkit-image-set")) =>
        {
            1
        }
        Token::Function(_) | Token::ParenthesisBlock if open > 0 => open + 1,
        Token::CloseParenthesis => open.saturating_sub(1),
        Token::Semicolon | Token::CurlyBracketBlock | Token::CloseCurlyBracket => 0,
        _ => open,
    }
}

/// Takes in one token and says what a string would mean after it.
fn read(token: &Token<'_>, place: Place, links: &mut Links) -> Expect {
    let expect = place.expect;
    match token {
        Token::WhiteSpace(_) | Token::Comment(_) => expect,
        Token::UnquotedUrl(href) => {
            if expect != Expect::Namespace {
                links.push(href, LinkKind::Css, false);
            }
            Expect::Nothing
        }
        Token::QuotedString(href) => {
            if expect == Expect::Reference || place.in_set == 1 {
                links.push(href, LinkKind::Css, false);
            }
            Expect::Nothing
        }
        Token::Function(name) if name.eq_ignore_ascii_case("url") => match expect {
            Expect::Namespace => Expect::Namespace,
            Expect::Nothing | Expect::Reference => Expect::Reference,
        },
        Token::AtKeyword(name) if name.eq_ignore_ascii_case("import") => Expect::Reference,
        Token::AtKeyword(name) if name.eq_ignore_ascii_case("namespace") => Expect::Namespace,
        // `@namespace svg url(…)`: the prefix changes nothing.
        Token::Ident(_) if expect == Expect::Namespace => Expect::Namespace,
        _ => Expect::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use orbweaver_model::Limits;

    use super::*;

    fn hrefs(css: &str) -> Vec<String> {
        let mut links = Links::new(&Limits::default());
        css_links(css, &mut links);
        links.iter().map(|link| link.href.to_owned()).collect()
    }

    #[test]
    fn references_and_nothing_else() {
        for (css, expected) in [
            ("a{background:url(x.png)}", &["x.png"][..]),
            ("a{background:URL( 'x y.png' )}", &["x y.png"]),
            (
                "@import \"a.css\" screen; @import url(b.css);",
                &["a.css", "b.css"],
            ),
            ("@IMPORT url(\"c.css\") layer(x);", &["c.css"]),
            ("@media print{@supports (x:y){a{b:url(d)}}}", &["d"]),
            ("/* url(no) */ a{content:'url(no)'}", &[]),
            ("a{b:url(#id)}", &[]),
            ("a{b:url(data:image/png;base64,AAAA)}", &[]),
            ("a{b:u\\72l(e.png)}", &["e.png"]),
            ("a{b:url(f\\.png)}", &["f.png"]),
            ("a{b:url(bad url)} c{d:url(g)}", &["g"]),
            (
                "@namespace url(http://www.w3.org/1999/xhtml);a{b:url(h)}",
                &["h"],
            ),
            ("@namespace svg \"http://x\"; @import 'i';", &["i"]),
            ("}}}) a{b:url(j)}", &["j"]),
            ("background:url(k),url(\"l\")", &["k", "l"]),
            ("a{b:url(m", &["m"]),
            (
                "a{b:image-set('o.png' 1x, url(p.png) 2x, url('q.png') type('image/png') 3x, \"r.png\")}",
                &["o.png", "p.png", "q.png", "r.png"],
            ),
            (
                "a{b:-webkit-image-set(linear-gradient(red, blue) 1x, 's.avif' type(\"image/avif\"))}c{d:'no'}",
                &["s.avif"],
            ),
            ("a{b:image-set('t' 1x;c:'no'}d{e:'no'}", &["t"]),
            ("@font-face{src:url(n.woff2) format('woff2')}", &["n.woff2"]),
        ] {
            assert_eq!(hrefs(css), expected, "{css}");
        }
    }

    #[test]
    fn nesting_costs_no_stack_and_no_square() {
        let mut css = "({[a(".repeat(200_000);
        css.push_str("url(deep)");
        assert_eq!(hrefs(&css), ["deep"]);
    }
}
