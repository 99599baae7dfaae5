//! The command line: one file per command.

pub(crate) mod check;
pub(crate) mod crawl;
pub(crate) mod ctl;
pub(crate) mod damaged;
pub(crate) mod demo;
pub(crate) mod get;
pub(crate) mod inspect;
pub(crate) mod outcomes;
pub(crate) mod sim;
pub(crate) mod spider;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod urlserver;
pub(crate) mod why;

use clap::{Parser, Subcommand};

use crate::exit::Ending;

/// The exit codes, as `--help` shows them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done: nothing is left to do, or a limit that you set was reached
  1  internal error, or an unexpected failure
  2  the command line, the configuration, or an input is wrong
  3  stopped by a signal; the same command resumes
  4  the crawl directory cannot be used: in use, another version, not a crawl, not
     readable for this user, or removed meanwhile; or the command needs a running crawl
  5  the disk is full, read-only, or failing; what was acknowledged is safe
  6  something is damaged: check found an error, or only a part could be printed
  7  what was requested does not exist
  8  the crawl ended without a page: no seed could be fetched";

/// A web crawler that obeys robots.txt, archives to WARC, and can be resumed at any time
#[derive(Parser, Debug)]
#[command(name = "orbweaver", version, about, after_help = EXIT_CODES, max_term_width = 100)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Crawl(Box<crawl::CrawlArgs>),
    Demo(demo::DemoArgs),
    Status(status::StatusArgs),
    Why(why::WhyArgs),
    Ctl(ctl::CtlArgs),
    Outcomes(outcomes::OutcomesArgs),
    Get(get::GetArgs),
    Check(check::CheckArgs),
    Urlserver(urlserver::UrlserverArgs),
    Spider(spider::SpiderArgs),
    Store(store::StoreArgs),
    Sim(sim::SimArgs),
    Inspect(inspect::InspectArgs),
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(self) -> anyhow::Result<Ending> {
        match self.verb {
            Verb::Crawl(args) => args.run(),
            Verb::Demo(args) => args.run(),
            Verb::Status(args) => args.run(),
            Verb::Why(args) => args.run(),
            Verb::Ctl(args) => args.run(),
            Verb::Outcomes(args) => args.run(),
            Verb::Get(args) => args.run(),
            Verb::Check(args) => args.run(),
            Verb::Urlserver(args) => args.run(),
            Verb::Spider(args) => args.run(),
            Verb::Store(args) => args.run(),
            Verb::Sim(args) => args.run(),
            Verb::Inspect(args) => args.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
