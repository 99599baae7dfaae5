//! The orbweaver binary: the only place that knows the whole ring.

mod adopt;
mod cli;
mod clock;
mod config;
mod control;
mod crawl_dir;
mod exit;
mod harvest;
mod indexer;
mod pipeline;
mod progress;
mod redirect;
mod retry;
mod settings;
mod summary;
mod units;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(ending) => ending.into(),
        Err(error) => {
            // A reader that went away (`orbweaver outcomes | head`) is no failure of ours.
            if is_broken_pipe(&error) {
                return exit::Ending::Done.into();
            }
            let _ = writeln!(std::io::stderr(), "orbweaver: {error:#}");
            exit::ending_of(&error).into()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
