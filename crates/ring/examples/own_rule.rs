//! Feeds pages to code of your own, with a scope and a priority of your own.
//!
//! `cargo run --example own_rule -- https://example.org/` counts the words of pages whose URLs have no query, and fetches what
//! is near the root first.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;

use orbweaver_ring::{Crawl, Link, LinkRule};

/// No queries, and short paths first.
struct ShortPaths;

impl LinkRule for ShortPaths {
    fn name(&self) -> &str {
        "short paths 1"
    }

    fn refuse(&self, link: &Link) -> Option<String> {
        let has_query = link.url.as_str().contains('?');
        has_query.then(|| "it has a query".into())
    }

    fn priority(&self, link: &Link) -> u8 {
        let slashes = link.url.target().matches('/').count();
        link.priority.saturating_add(slashes.min(100) as u8)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give a URL")?;
    let dir = arguments.next().unwrap_or_else(|| "own-rule".into());
    let mut crawl = Crawl::builder(dir).seed(url).pages(1000).rule(ShortPaths);
    // A private network that may be contacted, such as 127.0.0.0/8.
    if let Some(network) = arguments.next() {
        crawl = crawl.allow_net(network).rate(0.0);
    }
    let crawl = crawl.start()?;
    let mut words: HashMap<String, u64> = HashMap::new();
    let mut pages = 0_u64;
    for page in crawl.pages("words")? {
        let page = page?;
        pages += u64::from(page.is_document());
        for word in page.text().split_whitespace() {
            *words.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{pages} pages, {} words", words.len())?;
    for (word, count) in words.iter().take(10) {
        writeln!(out, "{count:>8} {word}")?;
    }
    crawl.wait()?;
    Ok(())
}
