//! What the crawl needs from the machine it runs on: file descriptors, a secret.

use rand::TryRng;

use crate::error::{Context, Result};

/// A secret from the operating system.
pub(crate) fn random() -> Result<u64> {
    rand::rngs::SysRng
        .try_next_u64()
        .map_err(std::io::Error::other)
        .context("cannot have random numbers of the system")
}

/// What the file descriptors that a process may have open are divided into, so that one use cannot starve another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Requests at once.
    pub places: usize,
    /// Connections that are kept for later.
    pub idle: usize,
    /// Names that are looked up at once.
    pub lookups: usize,
    /// Large bodies on disk, each with the record that is made of it.
    pub spools: usize,
}

impl Descriptors {
    /// As many as the machine allows, requested now.
    pub fn get() -> Self {
        Self::of(allow_many_files())
    }

    /// The division of `limit`. A quarter of a thousand, or half of few, is for the doc index, the archive and all
    /// that is not counted here.
    fn of(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let rest = limit - (limit / 2).min(256);
        let idle = (rest / 8).min(256);
        let lookups = (rest / 8).clamp(1, 512);
        let spools = (rest / 16).clamp(1, 256);
        Self {
            places: rest.saturating_sub(idle + lookups + 2 * spools).max(1),
            idle,
            lookups,
            spools,
        }
    }
}

/// Thousands of connections need thousands of file descriptors; the usual soft limit is 1,024. Returns the limit.
pub fn allow_many_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused means that the limit stays as it is, and that connections beyond it fail as such.
    let _ = setrlimit(Resource::Nofile, limit);
    // None means that there is no limit.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_divided_and_none_is_counted_twice() {
        for limit in [16, 64, 256, 1024, 4096, 1 << 20] {
            let it = Descriptors::of(limit);
            let used = it.places + it.idle + it.lookups + 2 * it.spools;
            assert!(used as u64 <= limit, "{limit}: {it:?}");
            assert!(it.places as u64 >= limit / 8, "{limit}: {it:?}");
        }
        assert_eq!(Descriptors::of(1024).places, 480);
    }
}
