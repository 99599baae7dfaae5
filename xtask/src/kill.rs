//! `cargo xtask kill`: a crawl that is killed over and over must lose nothing.

use anyhow::{Context, Result, bail};

use crate::shell;

/// By hand; the tests of every change do thirty.
const KILLS: &str = "1000";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let kills = match arguments {
        [] => KILLS,
        [kills] => kills.as_str(),
        _ => bail!("kill takes one number"),
    };
    kills
        .parse::<u32>()
        .with_context(|| format!("`{kills}` is not a number of kills"))?;
    // In release: the faster the crawl, the more is under way when it is hit.
    let test = [
        "test",
        "--release",
        "-p",
        "orbweaver",
        "--test",
        "it",
        "kill",
        "--",
        "--nocapture",
    ];
    shell::run(shell::cargo(test).env("ORBWEAVER_KILLS", kills))
}
