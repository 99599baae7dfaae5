//! The exact versions whose files are read here.

use std::fs;
use std::path::{Path, PathBuf};

/// The versions that `reading.rs`, and the tests of the doc index about damaged files, were last run with.
const READ: [(&str, &str); 2] = [("fjall", "3.1.13"), ("lsm-tree", "3.1.10")];

const WHAT_TO_DO: &str = "the files of this crate are read byte by byte, so a new version is looked at before it is used:
1. compare the formats of both versions in their sources: the journal's batches and the `version` file (fjall); block heads, the
   sections at the end of a table, `current` and the version files of a keyspace (lsm-tree);
2. run `cargo test -p orbweaver-coldstore` and `cargo test -p orbweaver-docindex` with the new version: they write stores with it, damage
   them, and read them without it; an index written by the old version must open as well;
3. raise the pins in crates/coldstore/Cargo.toml and the versions in this test together";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The version of a package in the lock file.
fn locked(name: &str) -> Vec<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let head = format!("name = \"{name}\"\nversion = \"");
    let found = lock.split(&head).skip(1);
    found
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_versions_in_use_are_those_whose_files_are_known() {
    for (name, version) in READ {
        assert_eq!(locked(name), [version], "{name} has changed; {WHAT_TO_DO}");
        let manifest = fs::read_to_string(root().join("crates/coldstore/Cargo.toml")).unwrap();
        let pin = format!("{name} = {{ version = \"={version}\"");
        assert!(
            manifest.contains(&pin),
            "{name} is not pinned; {WHAT_TO_DO}"
        );
    }
}

#[test]
fn nobody_else_pins_them() {
    let mut manifests = vec![root().join("Cargo.toml")];
    let crates = fs::read_dir(root().join("crates")).unwrap();
    manifests.extend(crates.map(|entry| entry.unwrap().path().join("Cargo.toml")));
    for manifest in manifests.iter().filter(|path| path.exists()) {
        let text = fs::read_to_string(manifest).unwrap();
        let pins = text.contains("\"=") && !manifest.ends_with("coldstore/Cargo.toml");
        assert!(!pins, "{} pins an exact version", manifest.display());
    }
}
