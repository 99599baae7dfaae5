//! The figures as a table, or as JSON: medians, and ratios to the naive loop of the same run.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::sim::Shape;
use crate::standing::{Run, Standing};

/// The one that all others are compared with.
const YARDSTICK: &str = "loop";

/// Medians over the runs of one contestant.
#[derive(Serialize)]
struct Figures {
    cpu_ms_per_page: f64,
    pages_per_second: f64,
    peak_mb: f64,
    server_cpu_ms_per_page: f64,
    /// Against the naive loop in the same run of the benchmark; none without it.
    cpu_to_loop: Option<f64>,
    speed_to_loop: Option<f64>,
}

/// One line of the result.
#[derive(Serialize)]
struct Line<'a> {
    shape: &'a str,
    name: &'a str,
    rounds: usize,
    gate: bool,
    /// Counts of the last run.
    pages: u64,
    requests: u64,
    missed: u64,
    duplicates: u64,
    robots_violations: u64,
    before_robots: u64,
    /// None when the gate is enforced and was not passed.
    figures: Option<Figures>,
}

/// Whether the figures of a contestant count.
pub(crate) fn passed(standing: &Standing) -> bool {
    (standing.contestant.peer && standing.runs.iter().all(|run| run.stats.fetched > 0))
        || clean(standing)
}

fn clean(standing: &Standing) -> bool {
    standing.runs.iter().all(|run| run.faults.is_empty())
}

/// The table for readers.
pub(crate) fn write(out: &mut impl Write, shape: Shape, all: &[Standing]) -> Result<()> {
    let (hosts, pages) = shape.size();
    let rounds = all.first().map_or(0, |standing| standing.runs.len());
    writeln!(
        out,
        "shape {}: {hosts} × {pages} pages of 16 KB with 30 links; median of {rounds} rounds\n",
        shape.name()
    )?;
    writeln!(
        out,
        "| what | CPU ms/page | × loop | pages/s | × loop | peak RSS MB | server CPU ms/page | gate |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for line in lines(shape, all) {
        let Some(figures) = &line.figures else {
            writeln!(out, "| {} | FAILED GATE | | | | | | see below |", line.name)?;
            continue;
        };
        let ratio = |ratio: Option<f64>| ratio.map_or("–".into(), |ratio| format!("{ratio:.2}"));
        writeln!(
            out,
            "| {} | {:.3} | {} | {:.0} | {} | {:.0} | {:.3} | {} |",
            line.name,
            figures.cpu_ms_per_page,
            ratio(figures.cpu_to_loop),
            figures.pages_per_second,
            ratio(figures.speed_to_loop),
            figures.peak_mb,
            figures.server_cpu_ms_per_page,
            if line.gate { "passed" } else { "see below" },
        )?;
    }
    writeln!(out)?;
    for standing in all {
        // The rounds differ little in what goes wrong; the first that shows it is enough.
        let faulty = standing.runs.iter().find(|run| !run.faults.is_empty());
        for fault in faulty.iter().flat_map(|run| &run.faults) {
            writeln!(out, "{}: {fault}", standing.contestant.name)?;
        }
    }
    Ok(())
}

/// A JSON object a line.
pub(crate) fn write_json(out: &mut impl Write, shape: Shape, all: &[Standing]) -> Result<()> {
    for line in lines(shape, all) {
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(())
}

fn lines(shape: Shape, all: &[Standing]) -> Vec<Line<'_>> {
    let yardstick = all
        .iter()
        .find(|standing| standing.contestant.name == YARDSTICK && passed(standing))
        .map(|standing| figures(&standing.runs, None));
    all.iter()
        .filter_map(|standing| {
            let last = standing.runs.last()?;
            Some(Line {
                shape: shape.name(),
                name: standing.contestant.name,
                rounds: standing.runs.len(),
                gate: clean(standing),
                pages: last.stats.fetched,
                requests: last.stats.requests,
                missed: last.stats.missed.count,
                duplicates: last.stats.duplicates.count,
                robots_violations: last.stats.robots_violations.count,
                before_robots: last.stats.before_robots.count,
                figures: passed(standing).then(|| figures(&standing.runs, yardstick.as_ref())),
            })
        })
        .collect()
}

fn figures(runs: &[Run], yardstick: Option<&Figures>) -> Figures {
    let pages = |run: &Run| run.stats.fetched.max(1) as f64;
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let cpu = median(runs, |run| millis(run.used.cpu) / pages(run));
    let speed = median(runs, |run| pages(run) / run.used.wall.as_secs_f64());
    Figures {
        cpu_ms_per_page: cpu,
        pages_per_second: speed,
        peak_mb: median(runs, |run| run.used.peak_bytes as f64 / f64::from(1 << 20)),
        server_cpu_ms_per_page: median(runs, |run| millis(run.server_cpu) / pages(run)),
        cpu_to_loop: yardstick.map(|other| cpu / other.cpu_ms_per_page),
        speed_to_loop: yardstick.map(|other| speed / other.pages_per_second),
    }
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
