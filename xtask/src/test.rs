//! `cargo xtask test`: everything that must hold before a change goes in, from a bare machine on.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{packages, real, shell};

/// The readers of other people, against which our archives are held. Pinned, so that a test that fails
/// fails because of us.
const READERS: [&str; 2] = ["warcio==1.8.1", "pywb==2.10.0"];

/// What must be on the machine: how to see whether it is, and the Debian packages that bring it.
const NEEDS: [(&[&str], &[&str]); 3] = [
    // ring, mimalloc and libdeflate are compiled from C.
    (&["cc", "--version"], &["gcc", "libc6-dev"]),
    (
        &["python3", "-c", "import ensurepip, venv"],
        &["python3", "python3-venv"],
    ),
    // A second opinion on which pages a site has.
    (&["wget", "--version"], &["wget"]),
];

pub(crate) fn run() -> Result<()> {
    install_packages()?;
    let python = readers()?;
    let folders = real::usual()?;
    if tool("fmt", "rustfmt")? {
        shell::run(&mut shell::cargo(["fmt", "--all", "--check"]))?;
    }
    if tool("clippy", "clippy")? {
        let lints = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        shell::run(&mut shell::cargo(lints))?;
    }
    let mut tests = shell::cargo(["test", "--workspace"]);
    tests.env("ORBWEAVER_PYTHON", python);
    if let Some(folders) = folders {
        tests.env("ORBWEAVER_REAL", folders);
    }
    shell::run(&mut tests)
}

fn install_packages() -> Result<()> {
    let missing: Vec<&str> = NEEDS
        .iter()
        .filter(|(probe, _)| !present(probe))
        .flat_map(|(_, packages)| packages.iter().copied())
        .collect();
    packages::install(&missing)
}

fn present(probe: &[&str]) -> bool {
    match probe.split_first() {
        Some((program, arguments)) => shell::works(Command::new(program).args(arguments)),
        None => true,
    }
}

/// A Python of our own with the readers in it; its path.
fn readers() -> Result<PathBuf> {
    let venv = shell::target().join("interop-venv");
    let python = venv.join("bin/python");
    // Written last, so that an installation that broke off is made again.
    let mark = venv.join("installed");
    let wanted = READERS.join("\n");
    if std::fs::read_to_string(&mark).is_ok_and(|found| found == wanted) && python.exists() {
        return Ok(python);
    }
    shell::fresh_dir(&venv)?;
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    install_readers(&python).context(
        "cannot install the archive readers that the tests compare with; is the network there?",
    )?;
    std::fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(python)
}

fn install_readers(python: &Path) -> Result<()> {
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ];
    shell::run(Command::new(python).args(pip).args(READERS))
}

/// True when a cargo tool is there. A minimal toolchain lacks it, and rustup can add it; where it cannot,
/// the tests are still worth running, so that is said instead of being a failure.
fn tool(name: &str, component: &str) -> Result<bool> {
    if shell::works(&mut shell::cargo([name, "--version"])) {
        return Ok(true);
    }
    let added = shell::run(Command::new("rustup").args(["component", "add", component]));
    if added.is_err() {
        shell::complain(&format!(
            "xtask: NOT CHECKED: cargo {name} is not installed and cannot be added; install {component}"
        ));
    }
    Ok(added.is_ok())
}
