//! What the crawl asks of the machine it runs on: signals, file descriptors, a secret.

use anyhow::{Context, Result};

/// SIGINT and SIGTERM.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A secret from the operating system.
pub(crate) fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    let mut source = std::fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes).context("cannot read /dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Thousands of connections need thousands of file descriptors; the usual soft limit is 1,024.
pub(crate) fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused means that the limit stays as it is, and that connections beyond it fail as such.
    let _ = setrlimit(Resource::Nofile, limit);
}
