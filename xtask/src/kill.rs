//! `cargo xtask kill`: a crawl that is killed over and over must lose nothing.

use anyhow::{Context, Result, bail};

use crate::shell;

/// By hand; the tests of every change do thirty.
const KILLS: &str = "1000";
/// By hand, on a tenth as many addresses; the tests of every change crawl two hundred. Where names share
/// addresses, and where the clock is set between kills, a hundred kills are enough.
const NAMES: &str = "2000";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (kills, names) = match arguments {
        [] => (KILLS, NAMES),
        [kills] => (kills.as_str(), NAMES),
        [kills, names] => (kills.as_str(), names.as_str()),
        _ => bail!("kill takes at most two numbers: KILLS NAMES"),
    };
    for number in [kills, names] {
        number
            .parse::<u32>()
            .with_context(|| format!("`{number}` is not a number"))?;
    }
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
    let mut command = shell::cargo(test);
    command.env("ORBWEAVER_KILLS", kills);
    shell::run(command.env("ORBWEAVER_KILL_NAMES", names))
}
