//! Collects the titles of a site's pages into a CSV file.
//!
//! `cargo run --example titles -- https://example.org/ titles.csv`

use std::error::Error;
use std::io::{BufWriter, Write};

use orbweaver_ring::Crawl;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("give a URL and the name of a CSV file".into());
    };
    let mut crawl = Crawl::builder(format!("{file}.crawl")).seed(url);
    // A private network that may be contacted, such as 127.0.0.0/8.
    if let Some(network) = arguments.next() {
        crawl = crawl.allow_net(network).rate(0.0);
    }
    let crawl = crawl.start()?;
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    writeln!(out, "url,title")?;
    for page in crawl.pages("titles")? {
        let page = page?;
        if page.is_document()
            && let Some(title) = page.title()
        {
            writeln!(out, "{},{}", field(page.url().as_str()), field(&title))?;
        }
    }
    out.flush()?;
    let summary = crawl.wait()?;
    writeln!(std::io::stdout(), "{} pages", summary.pages)?;
    Ok(())
}

/// A field as RFC 4180 has it.
fn field(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
