//! Character sets that contradict each other, or themselves. Each page holds a link that is found only
//! by who reads it in the right one.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, link, message, page, raw};

/// `/ü` as a request spells it.
const FOUND: &str = "/%C3%BC";

fn typed(ask: &Ask, content_type: &str, body: impl AsRef<[u8]>) -> Vec<Act> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}");
    match ask.target.as_str() {
        "/" => raw(message(&head, body)),
        _ => page("hello"),
    }
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?'))
        .collect()
}

fn utf16(text: &str, little: bool) -> Vec<u8> {
    let bytes = |unit: u16| {
        if little {
            unit.to_le_bytes()
        } else {
            unit.to_be_bytes()
        }
    };
    text.encode_utf16().flat_map(bytes).collect()
}

fn meta(charset: &str) -> String {
    format!("<meta charset={charset}>{}", link("/ü"))
}

pub(super) fn cases() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[SUCCESS], script);
    vec![
        case(
            "field-wins",
            "UTF-8 by the field, Latin-1 by the page",
            |ask: &Ask| typed(ask, "text/html; charset=utf-8", meta("iso-8859-1")),
        )
        .leads_to(FOUND),
        case(
            "mark-wins",
            "UTF-8 by its mark, Latin-1 by the field",
            |ask: &Ask| {
                typed(
                    ask,
                    "text/html; charset=iso-8859-1",
                    format!("\u{feff}{}", link("/ü")),
                )
            },
        )
        .leads_to(FOUND),
        case("meta-latin1", "Latin-1 by the page alone", |ask: &Ask| {
            typed(ask, "text/html", latin1(&meta("latin1")))
        })
        .leads_to(FOUND),
        case("meta-equiv", "Latin-1 by http-equiv", |ask: &Ask| {
            let page = format!(
                "<meta http-equiv=Content-Type content='text/html;charset=windows-1252'>{}",
                link("/ü")
            );
            typed(ask, "text/html", latin1(&page))
        })
        .leads_to(FOUND),
        case("utf16-marked", "UTF-16 with its mark", |ask: &Ask| {
            typed(
                ask,
                "text/html",
                utf16(&format!("\u{feff}{}", link("/ü")), true),
            )
        })
        .leads_to(FOUND),
        case(
            "utf16-big-marked",
            "UTF-16, big end first, with its mark",
            |ask: &Ask| {
                typed(
                    ask,
                    "text/html",
                    utf16(&format!("\u{feff}{}", link("/ü")), false),
                )
            },
        )
        .leads_to(FOUND),
        case("utf16-by-field", "UTF-16 by the field", |ask: &Ask| {
            typed(ask, "text/html; charset=utf-16le", utf16(&link("/ü"), true))
        })
        .leads_to(FOUND),
        case(
            "utf16-unmarked",
            "UTF-16 that nothing announces",
            |ask: &Ask| typed(ask, "text/html", utf16(&link("/ü"), true)),
        ),
        case(
            "utf16-odd",
            "UTF-16 with half a letter at the end",
            |ask: &Ask| {
                let mut page = utf16(&format!("\u{feff}{}", link("/ü")), true);
                page.push(0xd8);
                typed(ask, "text/html", page)
            },
        )
        .leads_to(FOUND),
        case(
            "utf16-by-meta",
            "UTF-8 that calls itself UTF-16",
            |ask: &Ask| typed(ask, "text/html", meta("utf-16")),
        )
        .leads_to(FOUND),
        case("utf7", "a link that exists only in UTF-7", |ask: &Ask| {
            typed(
                ask,
                "text/html; charset=utf-7",
                "+ADw-a href=+ACI-/seven+ACI-+AD4-x+ADw-/a+AD4-",
            )
        })
        .never("/seven"),
        case("utf7-mark", "the mark of UTF-7", |ask: &Ask| {
            typed(ask, "text/html", "+/v8-+ADw-a href=+ACI-/seven+ACI-+AD4-x")
        })
        .never("/seven"),
        case("unknown", "a charset nobody knows", |ask: &Ask| {
            typed(ask, "text/html; charset=klingon", meta("utf-8"))
        })
        .leads_to(FOUND),
        case("quoted", "a charset in odd quotes", |ask: &Ask| {
            typed(
                ask,
                "text/html; foo=bar; CHARSET=\" UTF-8 \"; x",
                link("/ü"),
            )
        })
        .leads_to(FOUND),
        case("invalid-utf8", "broken UTF-8 around a link", |ask: &Ask| {
            let mut page = b"\xff\xc0\x80\xed\xa0\x80\xf8".to_vec();
            page.extend_from_slice(link("/ü").as_bytes());
            page.extend_from_slice(b"\xe2\x82");
            typed(ask, "text/html; charset=utf-8", page)
        })
        .leads_to(FOUND),
        case("late-meta", "a charset after 3,000 bytes", |ask: &Ask| {
            typed(
                ask,
                "text/html",
                format!("<!--{}-->{}", "x".repeat(3000), meta("utf-8")),
            )
        })
        .leads_to(FOUND),
        case(
            "replacement",
            "ISO-2022-KR, which browsers refuse",
            |ask: &Ask| typed(ask, "text/html; charset=iso-2022-kr", link("/refused")),
        )
        .never("/refused"),
        case(
            "escape-sequences",
            "ISO-2022-JP that switches without end",
            |ask: &Ask| {
                let page = format!("{}{}", "\u{1b}$B\u{1b}(B".repeat(20_000), link("/next"));
                typed(ask, "text/html; charset=iso-2022-jp", page)
            },
        )
        .leads_to("/next"),
        case("utf32-marked", "UTF-32 with its mark", |ask: &Ask| {
            let page: Vec<u8> = format!("\u{feff}{}", link("/x"))
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect();
            typed(ask, "text/html", page)
        }),
    ]
}
