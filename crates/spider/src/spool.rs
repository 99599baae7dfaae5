//! Bodies that are too large for memory: they go to a file without a name, as they come over the wire.
//!
//! The file lies in the crawl directory, so that what is fetched never fills another disk, and is gone with its
//! last user, also after a kill. Writing waits beside the runtime, and the server with it: nobody reads its
//! socket meanwhile.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use orbweaver_model::Spooled;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is kept of a body in memory before it goes to disk, and what is written at once.
pub(crate) const SPOOL_BYTES: usize = 1 << 20;

/// The same when there is no memory left: disk is cheaper than waiting, except for crumbs.
pub(crate) const SHORT_BYTES: usize = 32 << 10;

/// Where large bodies go; clones share the places.
#[derive(Clone, Debug)]
pub struct SpoolDir {
    dir: PathBuf,
    places: Arc<Semaphore>,
}

impl SpoolDir {
    /// Files in `dir`, at most `files` of them at once, for each is an open file descriptor.
    pub fn new(dir: PathBuf, files: usize) -> Self {
        Self {
            dir,
            places: Arc::new(Semaphore::new(files.max(1))),
        }
    }

    /// A new file, once there is a place for it.
    pub(crate) async fn open(&self) -> io::Result<Spool> {
        // The semaphore is never closed; if it were, going on beats waiting forever.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let dir = self.dir.clone();
        let file = beside(move || tempfile::tempfile_in(dir)).await?;
        Ok(Spool {
            file,
            len: 0,
            place,
        })
    }
}

/// The first `most` bytes of a body on disk.
pub(crate) async fn read_back(body: &Arc<Spooled>, most: usize) -> io::Result<Vec<u8>> {
    let body = Arc::clone(body);
    beside(move || {
        let len = usize::try_from(body.size()).unwrap_or(usize::MAX).min(most);
        let mut bytes = vec![0; len];
        body.file().read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    })
    .await
}

/// A body on its way to disk.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    len: u64,
    place: Option<OwnedSemaphorePermit>,
}

impl Spool {
    /// Bytes written.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends.
    pub(crate) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let mut file = self.file.try_clone()?;
        let len = bytes.len() as u64;
        beside(move || file.write_all(&bytes)).await?;
        self.len += len;
        Ok(())
    }

    /// The body, of which the first `len` bytes belong to the answer.
    pub(crate) fn finish(self, len: u64) -> Arc<Spooled> {
        let len = len.min(self.len);
        Arc::new(Spooled::new(self.file, len, Box::new(self.place)))
    }
}

/// Runs what waits for the disk on a thread that may.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::other("the runtime is shut down")),
    }
}
