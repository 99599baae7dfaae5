//! Every parser of outside bytes against inputs that nobody meant.
//!
//! A kept corpus, one folder a parser, and mutations of it from a number. The usual tests do a few
//! thousand; `cargo xtask fuzz` as many as fit into a time. A panic, a promise that does not hold, or an
//! input that takes out of proportion long is a finding: it is written to a file that can be put into
//! the corpus, where it stays as a test.

mod mutate;
mod targets;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use orbweaver_testkit::Random;

use self::mutate::child;
use self::targets::{TARGETS, Target};

/// Mutations in the usual tests, for a parser that takes microseconds.
const FEW: u64 = 2_000;

/// An input is at most 64 KiB; what takes longer than this for it does too much. Only reported, never
/// asserted: the machine may be busy.
const LONG: Duration = Duration::from_millis(800);

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/fuzz/corpus")
        .join(target.name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let inputs: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    assert!(!inputs.is_empty(), "{} has no corpus", target.name);
    inputs
}

/// Gives one input to a parser; a panic keeps the input in a file.
fn try_one(target: &Target, input: &[u8]) -> Duration {
    let began = Instant::now();
    let run = std::panic::AssertUnwindSafe(|| (target.run)(input));
    if let Err(panic) = std::panic::catch_unwind(run) {
        let kept = keep(target, input);
        println!("{}: this input was kept as {}", target.name, kept.display());
        std::panic::resume_unwind(panic);
    }
    began.elapsed()
}

fn keep(target: &Target, input: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir()
        .join("orbweaver-fuzz")
        .join(target.name);
    std::fs::create_dir_all(&folder).unwrap();
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let file = folder.join(format!("{hash:016x}"));
    std::fs::write(&file, input).unwrap();
    file
}

#[test]
fn the_corpus_and_some_mutations_of_it() {
    for target in TARGETS {
        let corpus = corpus(target);
        for input in &corpus {
            try_one(target, input);
        }
        let mut random = Random::new(1);
        for _ in 0..FEW / target.cost {
            try_one(target, &child(&corpus, &mut random));
        }
    }
}

/// `ORBWEAVER_FUZZ_SECONDS` for each target, or for the one that `ORBWEAVER_FUZZ_TARGET` names.
#[test]
#[ignore = "takes minutes: cargo xtask fuzz"]
fn as_many_as_fit_into_the_time() {
    let seconds = std::env::var("ORBWEAVER_FUZZ_SECONDS").map_or(60, |text| text.parse().unwrap());
    let only = std::env::var("ORBWEAVER_FUZZ_TARGET").unwrap_or_default();
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| only.is_empty() || target.name == only)
        .collect();
    assert!(!chosen.is_empty(), "there is no target {only}");
    for target in chosen {
        let corpus = corpus(target);
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let mut random = Random::new(seed);
        let (began, mut tried, mut longest) = (Instant::now(), 0_u64, Duration::ZERO);
        while began.elapsed() < Duration::from_secs(seconds) {
            let input = child(&corpus, &mut random);
            let took = try_one(target, &input);
            tried += 1;
            longest = longest.max(took);
            if took > LONG {
                let kept = keep(target, &input);
                println!(
                    "{}: {took:?} for {} bytes, kept as {}",
                    target.name,
                    input.len(),
                    kept.display()
                );
            }
        }
        println!(
            "{}: {tried} inputs in {seconds} s, the longest took {longest:?}, peak memory {} MiB",
            target.name,
            peak_mib()
        );
    }
}

/// The kernel's record of the most memory this process had.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
