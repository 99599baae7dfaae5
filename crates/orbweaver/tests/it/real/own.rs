//! A small tree of our own, with what the real ones have: it keeps the comparison honest where no documentation is
//! installed, and shows that a difference would be seen.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use orbweaver_testkit::Random;
use tempfile::TempDir;

use super::USUAL;
use super::crawl;
use super::judge::judge;
use super::reader::{self, Way};
use super::site::{Site, Tree};
use super::walk::{Rules, Walker};

/// Pages that every index page links to.
const PAGES: usize = 60;

fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) {
    let file = dir.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn tree() -> TempDir {
    let mut random = Random::new(7);
    let around = tempfile::tempdir().unwrap();
    let (root, outside) = (around.path().join("html"), around.path().join("common"));
    write(
        &root,
        "index.html",
        r#"<!doctype html><base href="/"><link rel=stylesheet href=style.css><link rel="next" href="api">
        <a href="genindex-0.html">index</a> <a href="caf%c3%a9/na%c3%afve file.html">names</a> <a href=frames.html>frames</a>
        <a href="secret.html" rel="nofollow">no</a> <a href="listed">a folder</a> <a href="gone.html">missing</a>
        <a href="mailto:a@example.org">mail</a> <a href="http://127.0.0.1/else">elsewhere</a> <a href="book.xhtml">book</a>
        <img src="both.svg"><img src="logo.svg" srcset="small.png 1x, large.png 2x"><a href="feed.xml">news</a> <a href="index.html.fr.utf8">fr</a>
        <form action="search"><input></form><form method=post action="login"></form><a href="quiet.html">quiet</a><script>"<a href='not.html'>"</script>"#,
    );
    // The pages that were fetched twice: an index with many links into each page, and neighbours all over.
    for index in 0..4 {
        let mut html = format!("<a href=genindex-{}.html>next</a>", (index + 1) % 4);
        for link in 0..PAGES * 20 {
            html.push_str(&format!(
                "<a href='page/{}.html#term-{link}'>term</a>",
                link % PAGES
            ));
        }
        write(&root, &format!("genindex-{index}.html"), html);
    }
    for page in 0..PAGES {
        // Of a text of its own, lest it be taken for a copy of its neighbours.
        let text: String = (0..40)
            .map(|word| format!("w{} ", random.below(900) + word))
            .collect();
        let query = if page < 5 { "?q=a|b" } else { "" };
        let html = format!(
            "<a href='{}.html'>next</a><a href='../index.html#top'>up</a><a href='./{page}.html{query}'>again</a>{text}",
            (page + 1) % PAGES
        );
        write(&root, &format!("page/{page}.html"), html);
    }
    write(
        &root,
        "café/naïve file.html",
        "<a href='../page/0.html'>back</a>",
    );
    write(
        &root,
        "frames.html",
        "<frameset><frame src='frame.html'></frameset><iframe srcdoc='<a href=from-inside.html>'></iframe>",
    );
    write(
        &root,
        "quiet.html",
        "<meta name=robots content=nofollow><a href='not.html'>no</a><img src='quiet.png'>",
    );
    write(
        &root,
        "frame.html",
        "<meta http-equiv=refresh content='1; URL=refreshed.html'>",
    );
    write(
        &root,
        "object.html",
        "<a href='from-object.html'>only when it is a page</a>",
    );
    write(&root, "from-object.html", "");
    // A picture of the first page, and a page for another one: what is found first must not matter.
    write(
        &root,
        "both.svg",
        "<svg xmlns:xlink='x'><a xlink:href='from-both.html'/></svg>",
    );
    write(
        &root,
        "refreshed.html",
        "<object data='object.html'></object><a href='both.svg'>picture</a>",
    );
    write(
        &root,
        "book.xhtml",
        "<html xmlns='http://www.w3.org/1999/xhtml'><script src='book.js'/><a href='chapter.xhtml'/></html>",
    );
    write(
        &root,
        "chapter.xhtml",
        "<html><p>unclosed <a href='last.html'>",
    );
    write(&root, "index.html.fr.utf8", "<a href='en.html'>en</a>");
    write(
        &root,
        "feed.xml",
        "<rss><channel><item><link>/from-feed.html</link></item></channel></rss>",
    );
    write(
        &root,
        "logo.svg",
        "<svg xmlns:xlink='x'><a xlink:href='from-picture.html'/><style>a { b: url(dots.png) }</style></svg>",
    );
    write(
        &root,
        "style.css",
        "@import 'more.css'; /* url(no.png) */ a { background: url( \"bg.png\" ) } b::after { content: 'url(no.png)' }",
    );
    write(&root, "more.css", "@font-face { src: url(font\\.woff) }");
    write(&root, "listed/a b&c.txt", "text");
    write(&root, "listed/deep/index.htm", "<a href='../'>up</a>");
    write(&outside, "api/index.html", "<a href='class.html'>class</a>");
    write(
        &outside,
        "api/class.html",
        "<a href='../index.html'>out</a>",
    );
    std::os::unix::fs::symlink("../common/api", root.join("api")).unwrap();
    // Listed, this one would have no end.
    std::os::unix::fs::symlink("..", root.join("listed/loop")).unwrap();
    around
}

#[test]
fn a_tree_of_our_own_is_crawled_whole_and_once() {
    let around = tree();
    let tree = Arc::new(Tree::new(&around.path().join("html")));
    let mut random = Random::new(8);
    let site = Site::start(&tree, &mut random);
    let origin = site.url("/");
    let mut walker = Walker::new(&tree, &origin);
    let seeds = ["/".to_owned()];
    let pages = walker.walk(&seeds, Rules::Pages);
    let requisites = walker.walk(&seeds, Rules::Requisites);
    for reached in [
        "/caf%C3%A9/na%C3%AFve%20file.html",
        "/api",
        "/api/",
        "/api/class.html",
        "/listed/a%20b%26c.txt",
        "/listed/deep/",
        "/frame.html",
        "/refreshed.html",
        "/both.svg",
        "/from-inside.html",
        "/from-both.html",
        "/chapter.xhtml",
        "/last.html",
        "/en.html",
        "/from-feed.html",
        "/page/3.html?q=a%7Cb",
        "/search",
        "/gone.html",
    ] {
        assert!(pages.contains_key(reached), "{reached} in {pages:#?}");
    }
    for never in [
        "/secret.html",
        "/not.html",
        "/login",
        "/no.png",
        "/from-object.html",
        "/from-picture.html",
    ] {
        assert!(!requisites.contains_key(never), "{never}");
    }
    for part in [
        "/large.png",
        "/logo.svg",
        "/more.css",
        "/font.woff",
        "/bg.png",
        "/book.js",
        "/object.html",
        "/dots.png",
        "/quiet.png",
    ] {
        assert!(
            requisites.contains_key(part) && !pages.contains_key(part),
            "{part}"
        );
    }
    // The tree's pages that nothing links to would be seeds of their own.
    let all = walker.seeds();
    assert_eq!(all[0], "/");
    assert!(all.contains(&"/from-object.html".to_owned()), "{all:?}");
    assert!(!all.contains(&"/page/0.html".to_owned()), "{all:?}");
    for manner in USUAL {
        let expected = match manner.requisites {
            true => &requisites,
            false => &pages,
        };
        site.begin(manner.latency_ms);
        let crawl = crawl::crawl(&site, &seeds, expected.len(), manner, &mut random);
        let wrong = judge(&site, manner, &crawl, expected);
        assert!(wrong.is_empty(), "{manner}: {}", wrong.join("\n"));
    }
}

/// A comparison that cannot fail proves nothing.
#[test]
fn a_difference_is_seen() {
    let around = tree();
    let tree = Arc::new(Tree::new(&around.path().join("html")));
    let mut random = Random::new(9);
    let site = Site::start(&tree, &mut random);
    let seeds = ["/".to_owned()];
    let mut expected = Walker::new(&tree, &site.url("/")).walk(&seeds, Rules::Pages);
    let manner = USUAL[2];
    site.begin(0);
    let crawl = crawl::crawl(&site, &seeds, expected.len(), manner, &mut random);
    let (lost, page) = expected.remove_entry("/page/7.html").unwrap();
    expected.insert("/page/another.html".to_owned(), page);
    expected.get_mut("/page/8.html").unwrap().digest = "2".repeat(32);
    site.ask_again("/page/9.html");
    let wrong = judge(&site, manner, &crawl, &expected).join("\n");
    for line in [
        "only in crawler (1)",
        &format!("    {lost} · success"),
        "only in reader (1)",
        "    /page/another.html (<a> of /page/",
        "duplicates (1)",
        "    /page/9.html 2 times",
        "archived otherwise (2)",
        "    /page/8.html: 200 with digest 2222",
        "    /page/another.html: 0 captures",
    ] {
        assert!(wrong.contains(line), "{line}\nis not in\n{wrong}");
    }
}

#[test]
fn references_as_browsers_see_them() {
    let found = |media: &str, text: &str| {
        let document = reader::read(media, text.as_bytes());
        let mut all: Vec<(String, Way)> = document
            .found
            .into_iter()
            .map(|found| (found.href, found.way))
            .collect();
        all.sort();
        all
    };
    let one = |href: &str, way: Way| vec![(href.to_owned(), way)];
    for (html, expected) in [
        ("<A HREF=x.html#part>", one("x.html", Way::Page)),
        ("<a href='a&amp;b'>", one("a&b", Way::Page)),
        (
            "<textarea><a href=no></textarea><a href=yes>",
            one("yes", Way::Page),
        ),
        ("<noscript><a href=x></noscript>", one("x", Way::Page)),
        ("<!-- <a href=no> --><img src=x>", one("x", Way::Part)),
        ("<svg><style/><a xlink:href=x></svg>", one("x", Way::Page)),
        ("<link rel='shortcut icon' href=x>", one("x", Way::Part)),
        (
            "<link rel='alternate stylesheet' href=x>",
            one("x", Way::Part),
        ),
        ("<p style='background:URL(x)'>", one("x", Way::Part)),
        (
            "<meta http-equiv=Refresh content='0;url=x'>",
            one("x", Way::Page),
        ),
        ("<a href='#top'><a href=''>", Vec::new()),
    ] {
        assert_eq!(found("text/html", html), expected, "{html}");
    }
    let xhtml = "<html><title/><a href='a&#38;b'/></html>";
    assert_eq!(found("application/xhtml+xml", xhtml), one("a&b", Way::Page));
    assert_eq!(found("text/plain", "<a href=x>"), Vec::new());
}
