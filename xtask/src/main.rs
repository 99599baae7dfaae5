//! The recipes of those who build Orbweaver: the only commands to know.
//!
//! Each recipe is a file. Nothing here is part of the crawler, and nothing has to be installed first.

mod bench;
mod fuzz;
mod heart;
mod honest;
mod hostile;
mod kill;
mod packages;
mod real;
mod scale;
mod shell;
mod test;

use std::process::ExitCode;

use anyhow::{Result, bail};

const RECIPES: &str = "\
cargo xtask test              install what the tests need, check format and lints, run all tests
cargo xtask kill [N] [NAMES]  kill crawls with -9 N times (1000 if left out), resume them each time, check the rest;
                              also of NAMES (2000) on a tenth as many addresses, with a clock that is set to and fro
cargo xtask real [DIR|PACKAGE]…
                              crawl documentation as Debian's packages bring it, or any folder, and compare the pages
                              with those that an independent reader reaches, and with wget's
cargo xtask bench crawl …     what a crawl costs, beside a bare client and a naive loop
cargo xtask sim-heart [HOSTS] [URLS] [SEED]
                              a week of crawling in virtual time: a million hosts and 50 million URLs if left out
cargo xtask scale [URLS]      the doc index with ten million URLs if left out, by itself and under a crawl; a hundred
                              million need 25 GB of disk and some hours
cargo xtask hostile DIR       crawl the hostile server in DIR and let it grade what came of it
cargo xtask honest [web|crowds|memory]
                              what the hostile web, and crowds of hostile hosts, cost honest hosts in speed, and the
                              crawler in memory
cargo xtask fuzz [SECONDS] [TARGET]
                              mutated input for every parser of outside bytes, 60 s each if left out";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::complain(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((recipe, rest)) = arguments.split_first() else {
        shell::say(RECIPES);
        return Ok(());
    };
    match (recipe.as_str(), rest) {
        ("test", []) => test::run(),
        ("kill", rest) => kill::run(rest),
        ("real", rest) => real::run(rest),
        ("bench", rest) => bench::run(rest),
        ("sim-heart", rest) => heart::run(rest),
        ("scale", rest) => scale::run(rest),
        ("hostile", [folder]) => hostile::run(folder.as_ref()),
        ("honest", []) => honest::run(None),
        ("honest", [only]) if honest::PARTS.contains(&only.as_str()) => honest::run(Some(only)),
        ("fuzz", rest) => fuzz::run(rest),
        ("help" | "-h" | "--help", _) => {
            shell::say(RECIPES);
            Ok(())
        }
        _ => bail!(
            "there is no command `{}`; the commands are:\n{RECIPES}",
            arguments.join(" ")
        ),
    }
}
