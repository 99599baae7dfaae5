//! `orbweaver get`: a page from the archive.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_intake::{CanonicalOptions, Canonicalizer, seeds::parse_seed};
use orbweaver_model::Limits;
use orbweaver_ring::View;
use orbweaver_store::StoredExchange;

use super::damaged;
use crate::exit::{Ending, Fatal};

/// Print the last capture of a page
///
/// Prints the body with transfer and content encoding decoded. Works while the crawl runs. If the capture is damaged, that
/// is reported on standard error, an older capture is printed instead, and the exit code is 6.
#[derive(clap::Args, Debug)]
pub(crate) struct GetArgs {
    /// The crawl directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The page
    #[arg(value_name = "URL")]
    url: String,

    /// Print the status line and headers of the response too
    #[arg(short = 'i', long)]
    head: bool,

    /// Print the response exactly as it was received
    #[arg(long, conflicts_with = "head")]
    raw: bool,
}

impl GetArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let view = View::open(&self.dir)?;
        let url = parse_seed(&self.url, &Canonicalizer::new(CanonicalOptions::default()))
            .map_err(|error| Fatal::input(format!("`{}` is not a URL: {error}", self.url)))?;
        let found = view.page(&url)?;
        let read = found.document.is_some();
        if let Some(stored) = found.document {
            self.print(stored)?;
        }
        let damaged = damaged::tell(found.damage.iter(), || match read {
            true => format!(
                "newer captures of {url} cannot be read; what is printed is the newest that can"
            ),
            false => format!(
                "{url} cannot be read; `orbweaver check {}` lists all that is damaged, and the page can be crawled again",
                self.dir.display()
            ),
        });
        match damaged {
            Ending::Done if !read => Err(Fatal::with(
                Ending::NotFound,
                format!("{url} is not in the archive"),
            )),
            ending => Ok(ending),
        }
    }

    fn print(&self, stored: StoredExchange) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.raw {
            return Ok(out.write_all(&stored.response)?);
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
        Ok(out.write_all(exchange.as_ref().map_or(&body, |exchange| &exchange.body))?)
    }
}
