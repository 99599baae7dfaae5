//! Running a process to its end and reading what it used.
//!
//! CPU time is read from the kernel's account after the last thread has ended and before the process is
//! reaped, so it is whole; it counts in hundredths of a second. The peak of memory is gone by then and is
//! read while the process runs.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// The kernel shows times in these, on every architecture.
const TICKS_PER_SECOND: u64 = 100;

/// How often the peak of memory is read. What a process takes in its last moments only is missed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a process used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
    pub(crate) peak_bytes: u64,
}

/// Runs a command to its end, for `patience` at most.
pub(crate) fn run(command: &mut Command, patience: Duration) -> Result<Used> {
    let name = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let pid = Pid::from_child(&child);
    let (ended, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    let (wall, account) = thread::scope(|scope| {
        scope.spawn(|| watch(pid, &ended, &peak, began + patience));
        let waited = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        );
        let wall = began.elapsed();
        ended.store(true, Ordering::Relaxed);
        waited
            .map_err(anyhow::Error::from)
            .and_then(|_| process_cpu(pid))
            .map(|cpu| (wall, cpu))
    })?;
    let status = child.wait()?;
    if wall >= patience {
        bail!("{name} did not end within {} s", patience.as_secs());
    }
    // Crawlers like wget say with their status that some page was missing; the gate knows better.
    if status.code().is_none() {
        bail!("{name} ended by {status}");
    }
    Ok(Used {
        cpu: account,
        wall,
        peak_bytes: peak.into_inner(),
    })
}

/// Follows the peak of memory, and ends the process when its time is over.
fn watch(pid: Pid, ended: &AtomicBool, peak: &AtomicU64, until: Instant) {
    while !ended.load(Ordering::Relaxed) {
        if let Some(bytes) = peak_memory(pid) {
            peak.fetch_max(bytes, Ordering::Relaxed);
        }
        if Instant::now() >= until {
            // It may just have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn peak_memory(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

/// User and system time of a process with all its threads, ended ones too.
fn process_cpu(pid: Pid) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    // The name in parentheses may contain anything; user and system time are the 12th and 13th after it.
    let (_, fields) = stat
        .rsplit_once(") ")
        .context("no account of the process")?;
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    let (user, system) = ticks().zip(ticks()).context("no account of the process")?;
    Ok(Duration::from_millis(
        (user + system) * 1000 / TICKS_PER_SECOND,
    ))
}

/// CPU time of the running threads of a process, to the nanosecond.
pub(crate) fn threads_cpu(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let account = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let running = account
            .split(' ')
            .next()
            .context("no account of a thread")?;
        nanos += running.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_accounted_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        let used = run(&mut command, Duration::from_secs(60)).unwrap();
        assert!(used.cpu > Duration::ZERO);
        assert!(used.peak_bytes > 100 << 10);
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let said = run(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(said.unwrap_err().to_string().contains("did not end"));
    }
}
