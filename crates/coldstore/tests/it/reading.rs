//! What the store wrote is what is read from its files, from tables and journals, past what is damaged.

use std::collections::{BTreeMap, Bound};
use std::fs;
use std::path::{Path, PathBuf};

use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use orbweaver_coldstore::{ColdStore, Error, Hold, survey};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes a store with two keyspaces: some of it in tables, some in the journal, some changed and some removed since.
fn write(path: &Path) -> [Records; 2] {
    let db = Database::builder(path).worker_threads(1).open().unwrap();
    let options = KeyspaceCreateOptions::default;
    let spaces = ["meta", "urls"].map(|name| db.keyspace(name, options).unwrap());
    let mut model = [Records::new(), Records::new()];
    for round in 0..3u32 {
        for n in 0..2000u32 {
            let (space, key) = ((n % 2) as usize, n.to_be_bytes());
            if (n + round) % 7 == 0 {
                spaces[space].remove(key).unwrap();
                model[space].remove(&key[..]);
            } else if (n + round) % 3 == 0 || round == 0 {
                let value = format!("round {round}, record {n}, {}", "x".repeat(n as usize % 90));
                spaces[space].insert(key, value.as_bytes()).unwrap();
                model[space].insert(key.to_vec(), value.into_bytes());
            }
        }
        // The last round stays in the journal.
        if round < 2 {
            spaces
                .iter()
                .for_each(|space| space.rotate_memtable_and_wait().unwrap());
        }
    }
    db.persist(PersistMode::SyncAll).unwrap();
    model
}

fn read(cold: &ColdStore) -> Vec<Records> {
    let everything = || (Bound::Unbounded, Bound::Unbounded);
    let rows = |(key, value): (fjall::Slice, fjall::Slice)| (key.to_vec(), value.to_vec());
    cold.spaces()
        .map(|space| space.scan(everything()).map(rows).collect())
        .collect()
}

fn open(path: &Path) -> ColdStore {
    ColdStore::open(path, 8 << 20, Hold::Shared, 2).unwrap()
}

/// The table files, largest first.
fn tables(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = [1, 2]
        .iter()
        .flat_map(|n| fs::read_dir(path.join(format!("keyspaces/{n}/tables"))).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort_by_key(|file| std::cmp::Reverse(fs::metadata(file).unwrap().len()));
    found
}

#[test]
fn what_the_store_wrote_is_read_from_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let model = write(&path);
    assert!(survey::inspect(&path, 2).unwrap().is_some());
    let cold = open(&path);
    assert_eq!(read(&cold), model);
    for (space, records) in cold.spaces().zip(&model) {
        for n in 0..2000u32 {
            let value = space.get(&n.to_be_bytes()).map(|value| value.to_vec());
            assert_eq!(value.as_ref(), records.get(&n.to_be_bytes()[..]));
        }
        let range = |n: u32| fjall::Slice::from(n.to_be_bytes());
        let some = space.scan((Bound::Included(range(100)), Bound::Excluded(range(200))));
        let expected = records.range(range(100).to_vec()..range(200).to_vec());
        assert!(
            some.map(|(key, _)| key.to_vec())
                .eq(expected.map(|(key, _)| key.clone()))
        );
    }
    assert_eq!(cold.survey(|_, _, _| Ok(())), []);
    // Nothing was written by that: the store opens as before.
    drop(cold);
    assert_eq!(read(&open(&path)), model);
    Database::builder(&path).open().unwrap();
}

#[test]
fn a_record_that_its_owner_cannot_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    write(&path);
    let key = 9u32.to_be_bytes();
    let found = open(&path).survey(|place, found, _| match (place, found == key) {
        (1, true) => Err(("urls", "it is no record".into())),
        _ => Ok(()),
    });
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["urls: key 00000009: it is no record"]);
}

#[test]
fn damage_is_named_and_costs_what_it_hit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let model = write(&path);
    let known: usize = model.iter().map(BTreeMap::len).sum();
    let table = tables(&path).remove(0);
    let whole = fs::read(&table).unwrap();
    for at in [0, whole.len() / 3, whole.len() / 2, whole.len() - 5] {
        let mut harmed = whole.clone();
        harmed[at] ^= 0x10;
        fs::write(&table, &harmed).unwrap();
        let cold = open(&path);
        let left: usize = read(&cold).iter().map(BTreeMap::len).sum();
        assert!(left > known / 2, "byte {at}: {left} of {known} are left");
        let damage = cold.survey(|_, _, _| Ok(()));
        let short = table.strip_prefix(&path).unwrap().to_str().unwrap();
        assert!(
            damage.iter().any(|place| place.file == short),
            "byte {at}: {damage:?}"
        );
    }
    // A file that is cut short still gives what is whole.
    fs::write(&table, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(
        survey::inspect(&path, 2),
        Err(Error::Damaged { .. })
    ));
    assert!(!open(&path).damages().list().is_empty());
    fs::write(&table, &whole).unwrap();
    assert_eq!(read(&open(&path)), model);
}

#[test]
fn a_journal_is_read_past_a_flipped_bit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    write(&path);
    let journal = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.extension().is_some_and(|ext| ext == "jnl"))
        .max()
        .unwrap();
    let mut bytes = fs::read(&journal).unwrap();
    let at = bytes.iter().position(|byte| *byte == b'x').unwrap();
    bytes[at] ^= 1;
    fs::write(&journal, bytes).unwrap();
    let cold = open(&path);
    let damage = cold.damages().list();
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert!(
        damage[0].what.contains("commits there are lost"),
        "{damage:?}"
    );
    assert!(matches!(
        survey::inspect(&path, 2),
        Err(Error::Damaged { .. })
    ));
}

#[test]
fn a_store_that_is_in_use_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    write(&path);
    let db = Database::builder(&path).open().unwrap();
    let refused = ColdStore::open(&path, 1 << 20, Hold::Shared, 2);
    assert!(matches!(refused.err(), Some(Error::InUse(_))));
    drop(db);
    let first = open(&path);
    let _second = open(&path);
    let alone = ColdStore::open(&path, 1 << 20, Hold::Alone, 2);
    assert!(matches!(alone.err(), Some(Error::InUse(_))));
    drop(first);
}
