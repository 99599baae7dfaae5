//! Whole crawls: the binary itself against a simulated web, and against servers that follow a script.
//!
//! One file per behaviour. What the crawler did is judged by what the servers counted, by what the
//! archive holds, and by what the command line says; nothing here looks inside.
//!
//! Three modules are of other kinds: `tidy` holds the tree to its rules and its pages, `fuzz` gives parsers what nobody
//! meant, and `real` crawls sites that nobody here made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "everything here is a test, helpers included"
)]

mod answers;
mod archive;
mod cli;
mod ctl;
mod daemons;
mod directory;
mod disk;
mod faults;
mod fetchers;
mod fuzz;
mod hostile;
mod hosts;
mod inspect;
mod kill;
mod machine;
mod order;
mod pace;
mod places;
mod real;
mod recrawl;
mod redirects;
mod repair;
mod results;
mod resume;
mod robots;
mod rot;
mod scope;
mod script;
mod shapes;
mod sites;
mod spider_daemon;
mod store_daemon;
mod support;
mod tidy;
mod traps;
mod why;
mod wire;
