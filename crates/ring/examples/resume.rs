//! Stores the text of each page in a file of its own, and resumes after a kill.
//!
//! `cargo run --example resume -- https://example.org/ texts` can be killed at any moment, also with `kill -9`; the same
//! command resumes the crawl and receives again the pages that were not finished. Each page comes at least once; overwriting its file
//! leaves each text once.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use orbweaver_ring::Crawl;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(dir)) = (arguments.next(), arguments.next()) else {
        return Err("give a URL and a directory".into());
    };
    let dir = Path::new(&dir);
    fs::create_dir_all(dir)?;
    let mut crawl = Crawl::builder(dir.join("crawl")).seed(url);
    // A private network that may be contacted, such as 127.0.0.0/8.
    if let Some(network) = arguments.next() {
        crawl = crawl.allow_net(network).rate(0.0);
    }
    let crawl = crawl.start()?;
    for page in crawl.pages("texts")? {
        let page = page?;
        if page.is_document() {
            let file = dir.join(file_name(page.url().as_str()));
            let new = file.with_extension("new");
            // A kill must not leave half a text.
            fs::write(&new, page.text())?;
            fs::rename(new, file)?;
        }
    }
    let summary = crawl.wait()?;
    writeln!(std::io::stdout(), "{} URLs done", summary.status.done)?;
    Ok(())
}

/// A name for a URL that is a file name, and no other URL's.
fn file_name(url: &str) -> String {
    let mut name = String::new();
    for byte in url.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            _ => name.push_str(&format!("_{byte:02x}")),
        }
    }
    name.truncate(200);
    name + ".txt"
}
