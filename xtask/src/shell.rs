//! Running other programs, and saying so.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Writes a line for whoever is watching. A closed output is no failure of the recipe.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Writes a line about what went wrong.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Announces a step.
pub(crate) fn step(text: &str) {
    say(&format!("==> {text}"));
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo says where the crate is now; where it was compiled is as good when it is run without cargo.
    let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    crate_dir.parent().unwrap_or(&crate_dir).to_path_buf()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Cargo, at the root of the workspace.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    // What cargo told us about this crate is not for the build: build scripts that look at it would run
    // anew each time a recipe and a plain cargo take turns, and half of the house would be built again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Announces a command, runs it with its output shown, and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    step(&words(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", words(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", words(command));
    }
    Ok(())
}

/// True when a command can be run and ends well; its output is thrown away.
pub(crate) fn works(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What a command prints.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{}`", words(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", words(command), output.status);
    }
    Ok(output.stdout)
}

/// A directory that exists and is empty.
pub(crate) fn fresh_dir(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path)
            .with_context(|| format!("cannot remove {}", path.display()))?;
    }
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

/// A command as one would type it.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let settings = command.get_envs().filter_map(|(name, value)| {
        let mut pair = name.to_os_string();
        pair.push("=");
        pair.push(value?);
        Some(pair)
    });
    let parts: Vec<OsString> = settings
        .chain([program.to_os_string()])
        .chain(command.get_args().map(OsStr::to_os_string))
        .collect();
    parts.join(OsStr::new(" ")).to_string_lossy().into_owned()
}
