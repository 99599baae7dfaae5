//! The order of a benchmark: a web, rounds over it, everyone once a round, the gate after each.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use orbweaver_simweb::VisitLimits;

use crate::CrawlArgs;
use crate::contest::{self, Contestant, PER_HOST, Task};
use crate::measure;
use crate::sim::{Shape, Sim};
use crate::standing::{Run, Standing};
use crate::table;

/// The slowest crawlers that are worth a comparison need about a minute.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs the benchmark and prints what came of it. Fails when one of ours did not pass the gate.
pub(crate) fn run(args: &CrawlArgs) -> Result<()> {
    let orbweaver = match &args.orbweaver {
        Some(path) => path.clone(),
        None => beside_us()?,
    };
    ensure!(
        orbweaver.is_file(),
        "{} is not there; build it with cargo build --release -p orbweaver, or name one with --orbweaver",
        orbweaver.display()
    );
    let contestants = contest::chosen(&args.only, args.peers, args.before.is_some())?;
    let others = contestants.iter().any(|contestant| contestant.peer);
    let port = args.port.unwrap_or(if others { 80 } else { 0 });
    let scratch = match &args.scratch {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    }
    .context("cannot make a scratch directory")?;
    let mut out = std::io::stdout();
    let mut passed = true;
    let shapes = args.shape.map_or(Shape::ALL.to_vec(), |shape| vec![shape]);
    for shape in shapes {
        let sim = Sim::start(&orbweaver, shape, port, scratch.path())?;
        let results = rounds(&contestants, args, &sim, &orbweaver, scratch.path())?;
        passed &= results.iter().all(table::passed);
        if args.json {
            table::write_json(&mut out, shape, &results)?;
        } else {
            table::write(&mut out, shape, &results)?;
        }
        out.flush()?;
    }
    ensure!(passed, "a gate was not passed: see FAILED GATE above");
    Ok(())
}

/// By turns, so that what happens on the machine meanwhile happens to all.
fn rounds(
    contestants: &[Contestant],
    args: &CrawlArgs,
    sim: &Sim,
    orbweaver: &Path,
    scratch: &Path,
) -> Result<Vec<Standing>> {
    let mut results: Vec<Standing> = contestants
        .iter()
        .map(|contestant| Standing {
            contestant: *contestant,
            runs: Vec::new(),
        })
        .collect();
    for _ in 0..args.rounds {
        for result in &mut results {
            let out = scratch.join(result.contestant.name);
            std::fs::create_dir(&out)?;
            let task = Task {
                orbweaver,
                before: args.before.as_deref(),
                seeds: sim.seeds(),
                control: sim.control().address(),
                out,
            };
            result.runs.push(once(result.contestant, &task, sim)?);
            std::fs::remove_dir_all(&task.out)?;
        }
    }
    Ok(results)
}

fn once(contestant: Contestant, task: &Task<'_>, sim: &Sim) -> Result<Run> {
    let mut command = (contestant.command)(task)?;
    sim.control().reset()?;
    let before = sim.cpu()?;
    let used = measure::run(&mut command, PATIENCE)
        .with_context(|| format!("{} failed", contestant.name))?;
    let server_cpu = sim.cpu()?.saturating_sub(before);
    let stats = sim.control().stats()?;
    let limit = u32::try_from(PER_HOST).ok();
    let faults = stats.faults(&VisitLimits {
        per_host: limit,
        per_ip: limit,
        ..VisitLimits::default()
    });
    Ok(Run {
        used,
        server_cpu,
        stats,
        faults,
    })
}

fn beside_us() -> Result<PathBuf> {
    let ours = std::env::current_exe().context("cannot find this program")?;
    Ok(ours.with_file_name("orbweaver"))
}
