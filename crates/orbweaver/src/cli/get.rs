//! `orbweaver get`: a page out of the archive.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_intake::{CanonicalOptions, Canonicalizer, seeds::parse_seed, surt};
use orbweaver_model::Limits;

use crate::crawl_dir::CrawlDir;
use crate::exit::{Ending, Fatal};

/// Print a page as it was fetched last
///
/// Prints the body with transfer and content encoding undone. Works while the crawl runs.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory of the crawl
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The page
    #[arg(value_name = "URL")]
    url: String,

    /// Print the head of the response too
    #[arg(short = 'i', long)]
    head: bool,

    /// Print the response message byte for byte as it was received
    #[arg(long, conflicts_with = "head")]
    raw: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Ending> {
        let dir = CrawlDir::open(&self.dir)?;
        let url = parse_seed(&self.url, &Canonicalizer::new(CanonicalOptions::default()))
            .map_err(|error| Fatal::input(format!("`{}` is not a URL: {error}", self.url)))?;
        let Some(stored) = orbweaver_store::get(dir.path(), &surt(&url), url.as_str())? else {
            return Err(Fatal::with(
                Ending::NotFound,
                format!("{url} is not in the archive"),
            ));
        };
        let mut out = std::io::stdout().lock();
        if self.raw {
            out.write_all(&stored.response)?;
            return Ok(Ending::Done);
        }
        if self.head {
            out.write_all(stored.head())?;
        }
        // What was accepted when it was fetched is printed whole, whatever today's limits are.
        let limits = Limits {
            max_decoded_bytes: 1 << 30,
            ..Limits::default()
        };
        let body = stored.body().to_vec();
        let exchange = orbweaver_spider::reread(
            stored.request.into(),
            stored.response.into(),
            stored.protocol,
            None,
            &limits,
        );
        out.write_all(exchange.as_ref().map_or(&body, |exchange| &exchange.body))?;
        Ok(Ending::Done)
    }
}
