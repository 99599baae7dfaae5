//! SHA-1 digests as archives spell them, and the memory of the payloads that are stored already.
//!
//! The memory holds only places of records that have been synced, so that no revisit record can outlive
//! what it refers to; and it is only a hint: a revisit is written after the full digest was read back
//! from the record itself.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use data_encoding::BASE32;
use sha1::{Digest as _, Sha1};

/// A SHA-1 digest of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 20]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha1::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: Sha1) -> Self {
        Self(hasher.finalize().into())
    }

    /// Base 32 in capitals: 32 characters without padding, for 20 bytes fill them exactly.
    pub fn base32(self) -> String {
        BASE32.encode(&self.0)
    }

    /// The same with the name of the algorithm before it, as the fields of a record want it.
    pub fn labelled(self) -> String {
        let mut text = String::with_capacity(37);
        text.push_str("sha1:");
        BASE32.encode_append(&self.0, &mut text);
        text
    }

    /// Reads the base 32 form, with or without `sha1:` before it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sha1:").unwrap_or(text);
        let bytes = BASE32.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    fn prefix(self) -> u64 {
        let mut first = [0; 8];
        for (to, from) in first.iter_mut().zip(self.0) {
            *to = from;
        }
        u64::from_be_bytes(first)
    }
}

/// Where a response record lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DigestPlace {
    /// Name of the finished WARC file.
    pub(crate) file: Arc<str>,
    pub(crate) offset: u64,
}

/// Sixty-four locks make it unlikely that two of a few dozen preparing threads meet at one.
const SHARDS: usize = 64;

/// Which payloads are stored, and where: the first 64 bits of a digest, a file number and an offset.
///
/// Filled by the writer after each sync and, at the start, from the CDXJ files; bounded by forgetting:
/// each shard has two generations, and when the young one holds half of what is allowed it becomes the
/// old one, whose place is given up.
pub(crate) struct Digests {
    shards: Vec<RwLock<Shard>>,
    files: RwLock<Vec<Arc<str>>>,
    generation: usize,
}

#[derive(Default)]
struct Shard {
    young: HashMap<u64, (u32, u64)>,
    old: HashMap<u64, (u32, u64)>,
}

impl Digests {
    /// Remembers at most `max` payloads, or a few fewer.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            files: RwLock::default(),
            generation: max / SHARDS / 2,
        }
    }

    /// The number under which the records of a file are to be inserted.
    pub(crate) fn register(&self, file: &str) -> u32 {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.push(file.into());
        u32::try_from(files.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn insert(&self, digest: Digest, file: u32, offset: u64) {
        if self.generation == 0 {
            return;
        }
        let prefix = digest.prefix();
        let Some(shard) = self.shard(prefix) else {
            return;
        };
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if shard.young.len() >= self.generation {
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.entry(prefix).or_insert((file, offset));
    }

    /// Where a payload of this digest probably is.
    pub(crate) fn find(&self, digest: Digest) -> Option<DigestPlace> {
        let prefix = digest.prefix();
        let shard = self.shard(prefix)?;
        let (file, offset) = {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let found = shard.young.get(&prefix).or_else(|| shard.old.get(&prefix));
            *found?
        };
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let file = files.get(usize::try_from(file).ok()?)?.clone();
        Some(DigestPlace { file, offset })
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        let count = |shard: &RwLock<Shard>| {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            shard.young.len() + shard.old.len()
        };
        self.shards.iter().map(count).sum()
    }

    fn shard(&self, prefix: u64) -> Option<&RwLock<Shard>> {
        let number = usize::try_from(prefix % SHARDS as u64).ok()?;
        self.shards.get(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_of_the_empty_digest() {
        let empty = Digest::of(b"");
        assert_eq!(empty.base32(), "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(
            Digest::parse("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            Some(empty)
        );
        assert_eq!(Digest::parse("sha256:3I42H3S6"), None);
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_oldest() {
        let digests = Digests::new(1280);
        let file = digests.register("a.warc.gz");
        for n in 0..100_000_u64 {
            digests.insert(Digest::of(&n.to_be_bytes()), file, n);
            assert!(n % 1000 != 0 || digests.len() <= 1280);
        }
        let last = digests.find(Digest::of(&99_999_u64.to_be_bytes())).unwrap();
        assert_eq!((&*last.file, last.offset), ("a.warc.gz", 99_999));
        assert_eq!(digests.find(Digest::of(&0_u64.to_be_bytes())), None);
    }

    #[test]
    fn the_first_place_of_a_payload_stays() {
        let digests = Digests::new(1280);
        let file = digests.register("a.warc.gz");
        digests.insert(Digest::of(b"x"), file, 1);
        digests.insert(Digest::of(b"x"), file, 2);
        assert_eq!(digests.find(Digest::of(b"x")).unwrap().offset, 1);
        let none = Digests::new(0);
        none.insert(Digest::of(b"x"), none.register("a"), 1);
        assert_eq!(none.find(Digest::of(b"x")), None);
    }
}
