//! Debian packages: what is missing is installed, and what one brings is found.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Whether this is a system of Debian's kind, where packages can be asked for.
pub(crate) fn are_known() -> bool {
    shell::works(Command::new("dpkg-query").arg("--version"))
        && shell::works(Command::new("apt-get").arg("--version"))
}

/// True when a package is installed.
pub(crate) fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    let query = query.args(["--show", "--showformat=${db:Status-Status}", package]);
    query
        .output()
        .is_ok_and(|output| output.status.success() && output.stdout == b"installed")
}

/// Installs packages, or says what to type where this user cannot.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    let Some(prefix) = root_prefix() else {
        bail!(
            "{} must be installed; as root: {by_hand}",
            missing.join(", ")
        );
    };
    let apt = |arguments: &[&str]| {
        let mut words = prefix.iter().copied().chain(["apt-get"]);
        let mut command = Command::new(words.next().unwrap_or("apt-get"));
        command
            .args(words)
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        shell::run(&mut command)
    };
    apt(&["update", "-q"])?;
    let install = ["install", "-q", "-y", "--no-install-recommends"];
    apt(&[&install, missing].concat()).with_context(|| format!("install these by hand: {by_hand}"))
}

/// What to put before a command that only root may run; none when this user cannot become root.
fn root_prefix() -> Option<&'static [&'static str]> {
    if !shell::works(Command::new("apt-get").arg("--version")) {
        return None;
    }
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(&[]);
    }
    shell::works(Command::new("sudo").args(["-n", "true"])).then_some(&["sudo", "-n"])
}

/// The folders of HTML that an installed package brings: for each folder below `/usr/share/doc` and the like, the
/// lowest one that has all of it.
pub(crate) fn html_folders(package: &str) -> Result<Vec<PathBuf>> {
    let listed = shell::output(Command::new("dpkg-query").args(["--listfiles", package]))?;
    let mut folders: Vec<PathBuf> = Vec::new();
    for line in String::from_utf8_lossy(&listed).lines() {
        let Some(folder) = html_folder(Path::new(line)) else {
            continue;
        };
        match folders
            .iter_mut()
            .find(|known| place(known) == place(&folder))
        {
            Some(known) => *known = shared(known, &folder),
            None => folders.push(folder),
        }
    }
    if folders.is_empty() {
        bail!("the package {package} has no HTML");
    }
    // Many packages have a second way into the same folder.
    let mut places: Vec<PathBuf> = Vec::new();
    for folder in folders {
        places.push(std::fs::canonicalize(&folder).unwrap_or(folder));
    }
    places.sort();
    places.dedup_by(|folder, above| folder.starts_with(above));
    Ok(places)
}

/// The folder of a page, or a link to a folder that has pages.
fn html_folder(path: &Path) -> Option<PathBuf> {
    if path.is_symlink() && path.is_dir() {
        let has_pages = std::fs::read_dir(path)
            .ok()?
            .flatten()
            .any(|entry| is_page(&entry.path()));
        return has_pages.then(|| path.to_path_buf());
    }
    (is_page(path) && path.is_file()).then(|| path.parent().map(Path::to_path_buf))?
}

fn is_page(path: &Path) -> bool {
    let name = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["html", "htm", "xhtml"].iter().any(|known| name == *known)
}

/// `/usr/share/doc/NAME`: pages below one such folder belong together.
fn place(folder: &Path) -> PathBuf {
    folder.components().take(5).collect()
}

/// The lowest folder that has both.
fn shared(one: &Path, other: &Path) -> PathBuf {
    let parts = one.components().zip(other.components());
    parts
        .take_while(|(one, other)| one == other)
        .map(|(part, _)| part)
        .collect()
}
