//! `cargo xtask real`: sites that we did not make, crawled and compared with an independent reader and with wget.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{packages, shell};

/// Documentation for every change, by three generators: Sphinx with its index pages of many thousand links into
/// few pages, AsciiDoc without any navigation, and the pages of SQLite, made by scripts of their own. All three
/// together are crawled five times in two minutes.
const PACKAGES: [&str; 3] = ["python3-doc", "git-doc", "sqlite3-doc"];

/// The folders that every change is tried on; none where there are no such packages.
pub(crate) fn usual() -> Result<Option<OsString>> {
    if !packages::are_known() {
        shell::complain(&format!(
            "xtask: NOT CHECKED: there is no apt-get here, so no documentation of {} to crawl",
            PACKAGES.join(", ")
        ));
        return Ok(None);
    }
    folders(&PACKAGES.map(str::to_owned)).map(Some)
}

/// Crawls folders, and the documentation of packages, in all manners.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let named = match arguments {
        [] => folders(&PACKAGES.map(str::to_owned))?,
        named => folders(named)?,
    };
    let test = [
        "test",
        "-p",
        "orbweaver",
        "--test",
        "it",
        "real::",
        "--",
        "--nocapture",
    ];
    let mut command = shell::cargo(test);
    command.env("ORBWEAVER_REAL_ALL", "1");
    shell::run(command.env("ORBWEAVER_REAL", named))
}

/// Folders as they are, packages as the folders of HTML that they bring; as one value for the tests.
fn folders(named: &[String]) -> Result<OsString> {
    let is_folder = |name: &str| name.contains('/') || Path::new(name).is_dir();
    let wanted: Vec<&str> = named
        .iter()
        .map(String::as_str)
        .filter(|name| !is_folder(name))
        .collect();
    if !wanted.is_empty() && !packages::are_known() {
        bail!(
            "{} is not a directory, and there is no apt-get here to install it as a package",
            wanted.join(", ")
        );
    }
    let missing: Vec<&str> = wanted
        .into_iter()
        .filter(|name| !packages::is_installed(name))
        .collect();
    packages::install(&missing)?;
    let mut all: Vec<PathBuf> = Vec::new();
    for name in named {
        if is_folder(name) {
            // The tests run in the folder of their crate.
            let folder = std::fs::canonicalize(name)
                .with_context(|| format!("there is no directory {name}"))?;
            if !folder.is_dir() {
                bail!("{name} is not a directory");
            }
            all.push(folder);
        } else {
            all.extend(packages::html_folders(name)?);
        }
    }
    std::env::join_paths(all).context("the tests take no folder with a colon in its name")
}
