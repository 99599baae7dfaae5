//! The orbweaver binary: the command line, exit codes and the progress line over the ring and the daemons.

mod cli;
mod exit;
mod progress;
mod run;
mod summary;

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
            let said = format!("{error:#}");
            let said = orbweaver_model::text::shown_lines(&said);
            let _ = writeln!(std::io::stderr(), "orbweaver: {said}");
            exit::ending_of(&error).into()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = std::io::ErrorKind::BrokenPipe;
    // serde_json does not name the failed write as its cause.
    error.chain().any(|cause| {
        let plain = cause.downcast_ref::<std::io::Error>();
        let json = cause.downcast_ref::<serde_json::Error>();
        plain.is_some_and(|cause| cause.kind() == broken)
            || json.is_some_and(|cause| cause.io_error_kind() == Some(broken))
    })
}
