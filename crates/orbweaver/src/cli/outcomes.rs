//! `orbweaver outcomes`: the outcome of each URL, as JSON lines.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;

use orbweaver_ring::View;

use super::damaged;
use crate::exit::Ending;

/// List every URL with its outcome, one JSON object per line
///
/// Fields: url, class, out_of_scope, status, time, ip, bytes, ms, attempts, redirect, reason, depth, kind, via, type,
/// digest, archive (docs/formats/json-lines.md explains them). A URL without an attempt
/// has the class `queued`; one that waits for a retry has `deferred`. If the index is damaged, what can be read is listed,
/// each damaged place is named on standard error, and the exit code is 6.
#[derive(clap::Args, Debug)]
pub(crate) struct OutcomesArgs {
    /// The crawl directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl OutcomesArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let view = View::open(&self.dir)?;
        let mut out = BufWriter::new(std::io::stdout().lock());
        let damage = view.outcomes(&mut out)?;
        out.flush()?;
        Ok(damaged::index(&damage, &self.dir))
    }
}
