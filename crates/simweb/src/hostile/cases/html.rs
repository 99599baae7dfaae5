//! Documents that cost much to read: depth, attributes, quotes, entities, and what sitemaps can hold.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, first, link, message, page, raw};

use super::pack;

/// The page under test for `/`, and a short one for what it links to.
fn before_link(ask: &Ask, bulk: String) -> Vec<Act> {
    match ask.target.as_str() {
        "/" => page(bulk + &link("/next")),
        _ => page("hello"),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut all = depth();
    all.extend(tokens());
    all.extend(references());
    all.extend(sitemaps());
    all
}

fn depth() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[SUCCESS], script).leads_to("/next");
    vec![
        case("divs", "100,000 open elements", |ask: &Ask| {
            before_link(ask, "<div>".repeat(100_000))
        }),
        case("lists", "lists in lists, 128 KiB of them", |ask: &Ask| {
            before_link(ask, "<ul><li>".repeat(16_384))
        }),
        case("formatting", "50,000 open font elements", |ask: &Ask| {
            before_link(ask, "<font size=1><b>".repeat(25_000))
        }),
        case("tables", "20,000 tables in tables", |ask: &Ask| {
            before_link(ask, "<table><tr><td>".repeat(20_000))
        }),
        case(
            "misnested",
            "50,000 elements closed in the wrong order",
            |ask: &Ask| before_link(ask, "<a><b><p></a></b>".repeat(50_000)),
        ),
        case("templates", "10,000 templates in templates", |ask: &Ask| {
            before_link(
                ask,
                format!(
                    "{}{}",
                    "<template>".repeat(10_000),
                    "</template>".repeat(10_000)
                ),
            )
        }),
        case("svg", "a picture in a formula in a picture", |ask: &Ask| {
            before_link(
                ask,
                format!(
                    "{}{}",
                    "<svg><math>".repeat(5000),
                    "</math></svg>".repeat(5000)
                ),
            )
        }),
        case(
            "attributes",
            "an element of 50,000 attributes",
            |ask: &Ask| {
                let attributes: String = (0..50_000).map(|n| format!(" a{n}=1")).collect();
                before_link(ask, format!("<p{attributes}>"))
            },
        ),
        case(
            "same-attribute",
            "an element of 100,000 times one attribute",
            |ask: &Ask| before_link(ask, format!("<p{}>", " href=/x".repeat(100_000))),
        ),
        case("end-tags", "200,000 end tags of nothing", |ask: &Ask| {
            before_link(ask, "</p>".repeat(200_000))
        }),
    ]
}

fn tokens() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[SUCCESS], script);
    vec![
        case("less-than", "half a million times <", |ask: &Ask| {
            before_link(ask, "<".repeat(500_000))
        }),
        case(
            "half-tags",
            "a hundred thousand tags without end",
            |ask: &Ask| before_link(ask, "<a ".repeat(100_000)),
        ),
        case("open-quote", "a quote that is never closed", |_| {
            page(format!("<a href=\"{}", "x".repeat(500_000)))
        }),
        case("open-comment", "a comment that is never closed", |_| {
            page(format!("<!--{}", " -- <a href=/c> ".repeat(30_000)))
        }),
        case("comments", "comments one after another", |ask: &Ask| {
            before_link(ask, "<!--->".repeat(80_000))
        })
        .leads_to("/next"),
        case("open-script", "a script that is never closed", |_| {
            page(format!("<script>{}", "</scrip ".repeat(60_000)))
        }),
        case(
            "script-comments",
            "comments in scripts in comments",
            |ask: &Ask| before_link(ask, "<script><!--<script>--></script>".repeat(10_000)),
        ),
        case("title", "a title that is never closed", |_| {
            page(format!("<title>{}", "&lt;<a href=/t>".repeat(30_000)))
        }),
        case("entities", "two hundred thousand entities", |ask: &Ask| {
            before_link(ask, "&ampamp;&#x1F;&nope".repeat(30_000))
        })
        .leads_to("/next"),
        case(
            "long-entity",
            "an entity of half a megabyte",
            |ask: &Ask| before_link(ask, format!("&{};", "a".repeat(500_000))),
        )
        .leads_to("/next"),
        case("nul", "NUL between all letters", |ask: &Ask| {
            before_link(ask, "a\0".repeat(200_000))
        })
        .leads_to("/next"),
        case("one-line", "a megabyte less a little of one word", |_| {
            page("x".repeat(900_000))
        }),
        case("cdata", "CDATA that is never closed", |_| {
            page(format!("<svg><![CDATA[{}", "]]".repeat(200_000)))
        }),
        case("doctype", "a document type that is never closed", |_| {
            page(format!("<!DOCTYPE {}", "x".repeat(500_000)))
        }),
    ]
}

fn references() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[SUCCESS], script);
    vec![
        case("long-link", "a link of 100,000 letters", |ask: &Ask| {
            before_link(ask, link(&format!("/{}", "long/".repeat(20_000))))
        })
        .leads_to("/next")
        .requests(2),
        case(
            "same-link",
            "twenty thousand times one link",
            |ask: &Ask| before_link(ask, link("/next").repeat(10_000)),
        )
        .leads_to("/next")
        .requests(2),
        case("srcset", "a srcset of 100,000 commas", |ask: &Ask| {
            before_link(ask, format!("<img srcset='{}'>", " ,".repeat(100_000)))
        })
        .leads_to("/next"),
        case("css", "a style of 200,000 open parentheses", |ask: &Ask| {
            before_link(
                ask,
                format!("<style>a{{b:{}</style>", "url(".repeat(100_000)),
            )
        })
        .leads_to("/next"),
        case("css-braces", "a style of 200,000 braces", |ask: &Ask| {
            before_link(ask, format!("<style>{}</style>", "{[(".repeat(100_000)))
        })
        .leads_to("/next"),
        case("base-javascript", "a base that is a script", |ask: &Ask| {
            before_link(ask, "<base href='javascript:x'>".into())
        })
        .leads_to("/next"),
        case("base-many", "a hundred bases", |ask: &Ask| {
            before_link(ask, "<base href='/'><base href='//x/'>".repeat(50))
        })
        .leads_to("/next"),
        case(
            "base-foreign",
            "bases in an SVG and in a template",
            |ask: &Ask| {
                let bases = "<svg><base href=/s/></svg><template><base href=/t/></template>";
                first(ask, page(format!("{bases}{}", link("next"))), page("hello"))
            },
        )
        .leads_to("/next"),
        case("base-inside", "a base on 127.0.0.1", |ask: &Ask| {
            page(format!(
                "<base href='http://127.0.0.1:{}/'>{}",
                ask.port,
                link("inside")
            ))
        }),
        case(
            "line-break-link",
            "links with line breaks and tabs",
            |ask: &Ask| {
                first(
                    ask,
                    page("<a href=' /ne\n\txt '>x</a><a href='/a%0d%0aHost:%20x'>y</a>"),
                    page("hello"),
                )
            },
        )
        .leads_to("/next"),
        case("schemes", "links to what is no page", |_| {
            let odd = [
                "javascript:x",
                "data:,x",
                "file:///",
                "mailto:x",
                "tel:1",
                "http:",
                "http://",
                "//",
                "http://[",
                "http://:80/",
            ];
            page(odd.map(link).concat())
        })
        .requests(2),
        case("binary", "noise that is called a page", |_| {
            let noise = |n: u32| (n.wrapping_mul(2_654_435_761) >> 11) as u8;
            page((0..300_000).map(noise).collect::<Vec<u8>>())
        }),
        case("xml-laughs", "entities of entities of entities", |_| {
            raw(message(
                "HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml",
                laughs(),
            ))
        }),
    ]
}

/// The billion laughs: ten entities, each ten times the one before.
fn laughs() -> String {
    let level = |n: u32| format!("<!ENTITY l{} \"{}\">", n + 1, format!("&l{n};").repeat(10));
    let levels: String = (0..10).map(level).collect();
    format!(
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY l0 \"ha\">{levels}]><urlset><url><loc>/&l10;</loc></url></urlset>"
    )
}

fn sitemap(ask: &Ask, content_type: &str, body: impl AsRef<[u8]>) -> Vec<Act> {
    match ask.target.as_str() {
        "/" => page("hello"),
        _ => raw(message(
            &format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}"),
            body,
        )),
    }
}

fn announce(ask: &Ask) -> Vec<Act> {
    raw(message(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain",
        format!("Sitemap: http://{}/map.xml\n", ask.authority),
    ))
}

fn sitemaps() -> Vec<Case> {
    let case = |name, does, script| {
        Case::new(name, does, &[SUCCESS], script)
            .robots(announce)
            .leads_to("/map.xml")
    };
    vec![
        case("sitemap-laughs", "a sitemap of a billion laughs", |ask: &Ask| sitemap(ask, "application/xml", laughs())),
        case("sitemap-depth", "a sitemap of 100,000 open elements", |ask: &Ask| {
            sitemap(ask, "application/xml", format!("<urlset>{}", "<url>".repeat(100_000)))
        }),
        case("sitemap-bomb", "a sitemap of 24 MiB in a gzip file", |ask: &Ask| {
            let body = [b"<urlset>".to_vec(), vec![b' '; 24 << 20]].concat();
            sitemap(ask, "application/gzip", pack::gzip(&body))
        }),
        case("sitemap-itself", "a sitemap index that lists itself", |ask: &Ask| {
            let own = format!("<sitemapindex><sitemap><loc>http://{}/map.xml</loc></sitemap></sitemapindex>", ask.authority);
            sitemap(ask, "application/xml", own)
        })
        .requests(2),
        case("sitemap-elsewhere", "a sitemap of 127.0.0.1", |ask: &Ask| {
            let other = format!("<urlset><url><loc>http://127.0.0.1:{}/inside</loc></url></urlset>", ask.port);
            sitemap(ask, "application/xml", other)
        }),
        case("sitemap-external", "an entity that is a file", |ask: &Ask| {
            let body = "<!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><urlset><url><loc>/&f;</loc></url></urlset>";
            sitemap(ask, "application/xml", body)
        })
        .requests(3),
    ]
}
