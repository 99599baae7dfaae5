//! `cargo xtask bench`: figures for `docs/performance.md`. What is measured, and how, is in the crate `bench`.

use anyhow::Result;

use crate::shell;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    // The benchmark starts the crawler itself, so both must be as they will be used.
    let build = ["build", "--release", "--workspace"];
    let programs = ["--bin", "orbweaver", "--bin", "orbweaver-bench"];
    shell::run(&mut shell::cargo([build.as_slice(), &programs].concat()))?;
    let mut bench = std::process::Command::new(shell::target().join("release/orbweaver-bench"));
    shell::run(bench.current_dir(shell::root()).args(arguments))
}
