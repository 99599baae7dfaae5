//! One parser at a time: `inspect` on a file, on standard input, and on JSON lines, one answer a line in
//! order.

use serde_json::{Value, json};

use crate::support::{Place, run, start_with};

/// Asks every line and returns as many answers.
fn batch(what: &str, questions: &[&[u8]]) -> Vec<Value> {
    let input = questions.join(&b'\n');
    let ended = start_with(["inspect", what, "--batch"], input)
        .wait()
        .expect(0);
    assert_eq!(ended.stderr, "");
    let answers: Vec<Value> = (ended.out().lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), questions.len(), "one answer a line");
    answers
}

fn is_error(answer: &Value) -> bool {
    answer["error"].is_string() && answer.as_object().unwrap().len() == 1
}

/// What is no question is answered like any other line, and the next line is answered too.
const NONSENSE: [&[u8]; 5] = [b"", b"nonsense", b"[]", b"{\"surprise\": 1}", b"\xff\xfe{}"];

#[test]
fn urls() {
    let mut questions: Vec<&[u8]> = vec![
        br#"{"href": "../a?x=1#f", "base": "HTTP://Example.ORG:80/b/c/d"}"#,
        "{\"href\": \"http://www.bücher.example.co.uk/%7e%c3%a9\"}".as_bytes(),
        br#"{"href": "mailto:me@example.org"}"#,
        br#"{"href": "no scheme"}"#,
        br#"{"href": "x", "base": "nonsense"}"#,
        br#"{"href": "http://[::1]:8080/"}"#,
    ];
    questions.extend(NONSENSE);
    questions.push(br#"{"href": "http://last.example/"}"#);
    let answers = batch("url", &questions);
    assert_eq!(
        answers[0],
        json!({
            "url": "http://example.org/b/a?x=1#f",
            "canonical": "http://example.org/b/a?x=1",
            "surt": "org,example)/b/a?x=1",
            "host": "example.org",
            "domain": "example.org",
        })
    );
    assert_eq!(answers[1]["host"], "www.xn--bcher-kva.example.co.uk");
    assert_eq!(answers[1]["domain"], "example.co.uk");
    assert_eq!(
        answers[1]["canonical"],
        "http://www.xn--bcher-kva.example.co.uk/%7E%C3%A9"
    );
    assert!(answers[2..5].iter().all(is_error), "{answers:?}");
    assert_eq!(answers[5]["host"], "[::1]");
    let (last, nonsense) = answers[6..].split_last().unwrap();
    assert!(nonsense.iter().all(is_error), "{nonsense:?}");
    assert_eq!(last["canonical"], "http://last.example/");
}

#[test]
fn robots() {
    let rules = "User-agent: *\\nDisallow: /\\n\\nUser-agent: orbweaver\\nDisallow: /a\\nAllow: /a/b\\nCrawl-delay: 2.5\\n";
    let ask = |agent: &str, path: &str| {
        format!(r#"{{"robots": "{rules}", "agent": "{agent}", "url": "http://x.example{path}"}}"#)
    };
    let asked = [
        ask("orbweaver", "/a/c"),
        ask("orbweaver", "/a/b"),
        ask("orbweaver", "/elsewhere"),
        ask("other", "/elsewhere"),
        r#"{"robots": "", "agent": "x", "url": "not a url"}"#.to_owned(),
    ];
    let mut questions: Vec<&[u8]> = asked.iter().map(String::as_bytes).collect();
    questions.extend(NONSENSE);
    let answers = batch("robots", &questions);
    assert_eq!(
        answers[0],
        json!({"allowed": false, "rule": "Disallow: /a", "crawl_delay": 2.5})
    );
    assert_eq!(
        answers[1],
        json!({"allowed": true, "rule": "Allow: /a/b", "crawl_delay": 2.5})
    );
    assert_eq!(
        answers[2],
        json!({"allowed": true, "rule": null, "crawl_delay": 2.5})
    );
    assert_eq!(
        answers[3],
        json!({"allowed": false, "rule": "Disallow: /", "crawl_delay": null})
    );
    assert!(answers[4..].iter().all(is_error), "{answers:?}");
}

#[test]
fn links() {
    let page = r#"<base href='/dir/'><a href='a?x&amp;y'>1</a><a rel=nofollow href='//b.example/'>2</a><img src=i.png>"#;
    let text = json!({"html": page, "url": "http://x.example/"}).to_string();
    // 0xe9 in a page that says it is Latin 1.
    let bytes = b"<meta charset=latin1><a href='/?q=\xe9'>x</a>";
    let encoded = data_encoding::BASE64.encode(bytes);
    let base64 = json!({"html_base64": encoded, "url": "http://x.example/"}).to_string();
    let both = json!({"html": "", "html_base64": "", "url": "http://x.example/"}).to_string();
    let neither = json!({"url": "http://x.example/"}).to_string();
    let wrong = json!({"html_base64": "%%%", "url": "http://x.example/"}).to_string();
    let mut questions: Vec<&[u8]> = [&text, &base64, &both, &neither, &wrong]
        .map(|question| question.as_bytes())
        .into();
    questions.extend(NONSENSE);
    let answers = batch("links", &questions);
    assert_eq!(
        answers[0],
        json!({"links": [
            {"url": "http://x.example/dir/a?x&y", "kind": "a", "nofollow": false},
            {"url": "http://b.example/", "kind": "a", "nofollow": true},
            {"url": "http://x.example/dir/i.png", "kind": "img", "nofollow": false},
        ]})
    );
    assert_eq!(
        answers[1],
        json!({"links": [{"url": "http://x.example/?q=%E9", "kind": "a", "nofollow": false}]})
    );
    assert!(answers[2..].iter().all(is_error), "{answers:?}");
}

#[test]
fn sitemaps() {
    let urls = "<urlset><url><loc>/a?b&amp;c</loc><lastmod>2026-01-02</lastmod></url>\
                <url><loc>http://x.example/d</loc></url></urlset>";
    let index = "<sitemapindex><sitemap><loc>/one.xml</loc></sitemap></sitemapindex>";
    let text = "http://x.example/e\nhttp://x.example/f\n";
    let mut asked: Vec<String> = [urls, index, text]
        .map(|body| json!({"body": body, "url": "http://x.example/s.xml"}).to_string())
        .into();
    let encoded = data_encoding::BASE64.encode(index.as_bytes());
    asked.push(json!({"body_base64": encoded, "url": "http://x.example/"}).to_string());
    asked.push(json!({"body": urls, "url": "nonsense"}).to_string());
    let mut questions: Vec<&[u8]> = asked.iter().map(String::as_bytes).collect();
    questions.extend(NONSENSE);
    let answers = batch("sitemap", &questions);
    assert_eq!(
        answers[0],
        json!({"urls": [
            {"url": "http://x.example/a?b&c", "lastmod": "2026-01-02"},
            {"url": "http://x.example/d", "lastmod": null},
        ], "sitemaps": []})
    );
    let listed = json!({"urls": [], "sitemaps": ["http://x.example/one.xml"]});
    assert_eq!((&answers[1], &answers[3]), (&listed, &listed));
    assert_eq!(answers[2]["urls"][1]["url"], "http://x.example/f");
    assert!(answers[4..].iter().all(is_error), "{answers:?}");
}

#[test]
fn one_file_at_a_time() {
    let place = Place::new();
    let robots = place.file("robots.txt", "User-agent: *\nDisallow: /x\n");
    let page = place.file("page.html", "<a href=/a>x</a>");
    let map = place.file("map.txt", "http://x.example/a\n");
    let read = |args: &[&str]| -> Value {
        serde_json::from_str(&run([&["inspect"], args].concat()).expect(0).out()).unwrap()
    };
    let url = "http://x.example/x/y";
    let asked = read(&["robots", &robots, "--url", url, "--agent", "anybot"]);
    assert_eq!(
        (&asked["allowed"], &asked["rule"]),
        (&json!(false), &json!("Disallow: /x"))
    );
    let found = read(&["links", &page, "--url", url]);
    assert_eq!(found["links"][0]["url"], "http://x.example/a");
    let listed = read(&["sitemap", &map]);
    assert_eq!(listed["urls"][0]["url"], "http://x.example/a");
    // A URL a line, from standard input.
    let lines = b"http://A.example/\n\nnonsense\n".to_vec();
    let ended = start_with(["inspect", "url"], lines).wait().expect(0).out();
    let answers: Vec<Value> = ended
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers[0]["canonical"], "http://a.example/");
    assert!(is_error(&answers[1]) && answers.len() == 2, "{answers:?}");
    let ended = run(["inspect", "links", &page]).expect(2);
    assert!(ended.stderr.contains("--url"), "{}", ended.stderr);
    let ended = run(["inspect", "links", "/no/such/file", "--url", url]).expect(2);
    assert!(ended.stderr.contains("/no/such/file"), "{}", ended.stderr);
}
