//! Reading a store file by file, past whatever is damaged.
//!
//! The store finds every flipped bit, for its blocks carry checksums, but a range with a damaged block in it
//! ends there. Each file by itself goes on with its next block.

use std::path::Path;

use fjall::AbstractTree;

use crate::error::Result;
use crate::tables::Table;

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) keyspace: &'static str,
    pub(crate) what: String,
}

/// Takes a key and its value.
type Each<'a> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<()> + 'a;

/// Reads the files of a keyspace, the oldest first, so that of two values for a key the newer comes later;
/// none stands for a removal. What is only in memory and in the journal is not in them.
pub(crate) fn read_files(
    table: &Table,
    each: &mut Each<'_>,
    damaged: &mut dyn FnMut(Damage),
) -> Result<()> {
    let Some(keyspace) = table.keyspace() else {
        return Ok(());
    };
    let version = keyspace.tree.current_version();
    let files: Vec<_> = version.iter_tables().collect();
    for file in files.into_iter().rev() {
        let mut last: Option<Vec<u8>> = None;
        let mut hole: Option<String> = None;
        // An index that cannot be read fails for ever; one that can leads from block to block.
        let mut failures = 0;
        for item in file.iter() {
            let item = match item {
                Ok(item) => item,
                Err(error) => {
                    hole.get_or_insert_with(|| error.to_string());
                    failures += 1;
                    if failures > file.metadata.data_block_count {
                        break;
                    }
                    continue;
                }
            };
            let key = item.key.user_key.as_ref();
            if let Some(why) = hole.take() {
                damaged(between(
                    table.name(),
                    &file.path,
                    last.as_deref(),
                    Some(key),
                    &why,
                ));
            }
            // Within a file the newest version of a key comes first.
            if last.as_deref() == Some(key) {
                continue;
            }
            let value = (!item.is_tombstone()).then_some(item.value.as_ref());
            each(key, value)?;
            last = Some(key.to_vec());
        }
        if let Some(why) = hole {
            damaged(between(
                table.name(),
                &file.path,
                last.as_deref(),
                None,
                &why,
            ));
        }
    }
    Ok(())
}

fn between(
    keyspace: &'static str,
    file: &Path,
    after: Option<&[u8]>,
    before: Option<&[u8]>,
    why: &str,
) -> Damage {
    let place = match (after, before) {
        (None, None) => "all records".into(),
        (Some(after), None) => format!("the records after key {}", hex(after)),
        (None, Some(before)) => format!("the records before key {}", hex(before)),
        (Some(after), Some(before)) => {
            format!(
                "the records between keys {} and {}",
                hex(after),
                hex(before)
            )
        }
    };
    // The file by its place in the index: `keyspaces/4/tables/17`.
    let mut parts: Vec<_> = file.iter().rev().take(4).collect();
    parts.reverse();
    let file = parts.iter().collect::<std::path::PathBuf>();
    Damage {
        keyspace,
        what: format!("{}: {place} cannot be read: {why}", file.display()),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
