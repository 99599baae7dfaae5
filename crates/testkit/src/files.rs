//! Directories as a whole.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file below a directory, in the order of their names.
///
/// # Panics
///
/// When it cannot be read.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(dir, &mut found);
    found.sort();
    found
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, found),
            false => found.push(path),
        }
    }
}

/// Copies a directory with all that is below it.
///
/// # Panics
///
/// When it cannot be read, or the copy cannot be written.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &there),
            false => drop(fs::copy(&path, &there).unwrap()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("b")).unwrap();
        fs::write(from.join("b/c"), "1").unwrap();
        fs::write(from.join("a"), "2").unwrap();
        assert_eq!(files(&from), [from.join("a"), from.join("b/c")]);
        let to = dir.path().join("to");
        copy(&from, &to);
        assert_eq!(files(&to), [to.join("a"), to.join("b/c")]);
        assert_eq!(fs::read_to_string(to.join("b/c")).unwrap(), "1");
    }
}
