//! `cargo xtask fuzz`: every parser of outside bytes against mutations of its corpus, for a time.
//!
//! Built like the tests, so that overflows and broken assumptions show.

use anyhow::{Result, bail};

use crate::shell;

/// Runs for so many seconds a target (60 if left out), with all targets or one.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (seconds, target) = match arguments {
        [] => ("60", ""),
        [seconds] => (seconds.as_str(), ""),
        [seconds, target] => (seconds.as_str(), target.as_str()),
        _ => bail!("cargo xtask fuzz [SECONDS] [TARGET]"),
    };
    if seconds.parse::<u32>().is_err() {
        bail!("`{seconds}` is not a number of seconds");
    }
    let test = ["test", "-p", "orbweaver", "--test", "it", "--"];
    let one = [
        "fuzz::as_many_as_fit_into_the_time",
        "--ignored",
        "--nocapture",
    ];
    shell::run(
        shell::cargo(test.into_iter().chain(one))
            .env("ORBWEAVER_FUZZ_SECONDS", seconds)
            .env("ORBWEAVER_FUZZ_TARGET", target),
    )
}
