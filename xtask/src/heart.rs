//! `cargo xtask sim-heart`: a week of crawling in virtual time, with every promise of the URL server checked.

use anyhow::{Context, Result, bail};

use crate::shell;

/// What the arguments are called, in their order, and the variables that hand them on.
const ARGUMENTS: [(&str, &str); 3] = [
    ("HOSTS", "ORBWEAVER_SIM_HOSTS"),
    ("URLS", "ORBWEAVER_SIM_URLS"),
    ("SEED", "ORBWEAVER_SIM_SEED"),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if arguments.len() > ARGUMENTS.len() {
        bail!("sim-heart takes at most three numbers: HOSTS URLS SEED");
    }
    let test = [
        "test",
        "--release",
        "-p",
        "orbweaver-urlserver",
        "--test",
        "it",
        "week",
        "--",
        "--ignored",
        "--nocapture",
    ];
    let mut command = shell::cargo(test);
    for (given, (name, variable)) in arguments.iter().zip(ARGUMENTS) {
        given
            .parse::<u32>()
            .with_context(|| format!("{name} must be a number, not `{given}`"))?;
        command.env(variable, given);
    }
    shell::run(&mut command)
}
