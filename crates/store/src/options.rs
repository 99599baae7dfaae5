//! The settings of the store.

use std::time::Duration;

/// How the store writes. `Default` is the only place these values live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Bytes after which a WARC file is finished and the next begun; the group that passes it is the last one in.
    pub rotate_bytes: u64,
    /// Deflate level of a response whose body is not compressed yet, 0 (stored) to 12 (smallest).
    pub compression_level: u8,
    /// Payload digests kept in memory to recognise a body that is stored already, about 40 bytes each; 0 writes no revisit.
    pub max_digests: usize,
    /// Name and version of the program, for the first record of each file.
    pub software: String,
    /// Who runs the crawl and how to reach them, for the first record of each file; empty leaves it out.
    pub operator: String,
    /// How robots.txt is treated, for the first record of each file; empty leaves it out.
    pub robots: String,
    /// Shortest time between two syncs: under load one sync then serves all that came in between; 0 syncs back to back.
    pub linger: Duration,
    /// Bytes of prepared groups that may wait for the disk; whoever submits more waits.
    pub queue_bytes: usize,
    /// Time until a failed write is tried again.
    pub retry: Duration,
    /// Bytes after which a file of the results is finished and the next begun.
    pub results_segment: u64,
    /// True when results are entered that no exchange stands for, so that the archive cannot bring them back: then they are
    /// synced before they are acknowledged, and damage to them is an error.
    pub durable_results: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            rotate_bytes: 1 << 30,
            // A 16 KB HTML page costs 37–51 µs at level 1 and 60–200 µs at level 6, which saves only
            // 2–6 % more (libdeflate 1.26 on three pages of documentation).
            compression_level: 1,
            max_digests: 1 << 20,
            software: concat!("orbweaver/", env!("CARGO_PKG_VERSION")).to_owned(),
            operator: String::new(),
            robots: String::new(),
            linger: Duration::from_millis(25),
            queue_bytes: 16 << 20,
            retry: Duration::from_secs(1),
            results_segment: 8 << 20,
            durable_results: false,
        }
    }
}
