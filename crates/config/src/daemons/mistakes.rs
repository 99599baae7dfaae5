//! Gathering the mistakes of a configuration, so that all are reported at once, each under the name of its key.

use std::time::Duration;

use ipnet::IpNet;

use super::DaemonConfig;
use super::keys::Names;
use crate::error::Error;
use crate::units;

/// The mistakes so far.
#[derive(Debug)]
pub(super) struct Mistakes<'a> {
    names: &'a Names,
    list: Vec<String>,
}

impl<'a> Mistakes<'a> {
    /// Those that were seen when the file was read.
    pub(super) fn of(config: &'a DaemonConfig) -> Self {
        Self {
            names: &config.names,
            list: config.mistakes.clone(),
        }
    }

    /// A mistake that names its key itself.
    pub(super) fn add(&mut self, message: impl ToString) {
        self.list.push(message.to_string());
    }

    /// A mistake in the value of a key.
    pub(super) fn about(&mut self, key: &'static str, message: impl std::fmt::Display) {
        self.list.push(format!("{}: {message}", self.names.of(key)));
    }

    /// A mistake unless it holds; `must` goes on after the name of the key.
    pub(super) fn demand(&mut self, holds: bool, key: &'static str, must: &str) {
        if !holds {
            self.list.push(format!("{} {must}", self.names.of(key)));
        }
    }

    /// Reads a size.
    pub(super) fn size(&mut self, given: Option<&str>, usual: u64, key: &'static str) -> u64 {
        match given.map(units::size) {
            None => usual,
            Some(Ok(size)) => size,
            Some(Err(error)) => {
                self.about(key, error);
                usual
            }
        }
    }

    /// Reads milliseconds, which must not be none.
    pub(super) fn millis(
        &mut self,
        given: Option<u64>,
        usual: Duration,
        key: &'static str,
    ) -> Duration {
        self.demand(given != Some(0), key, "must be at least 1 (millisecond)");
        given.map_or(usual, Duration::from_millis)
    }

    /// Reads networks.
    pub(super) fn networks(&mut self, texts: &[String], key: &'static str) -> Vec<IpNet> {
        let mut read = |text: &String| {
            let net = text
                .parse::<IpNet>()
                .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
            if net.is_err() {
                self.about(
                    key,
                    format_args!("`{text}` is not a network; write it like 10.0.0.0/8"),
                );
            }
            net.ok()
        };
        texts.iter().filter_map(&mut read).collect()
    }

    /// The settings, or every mistake at once.
    pub(super) fn unless<T>(self, settings: T) -> Result<T, Error> {
        match self.list.is_empty() {
            true => Ok(settings),
            false => Err(Error::Mistakes(self.list)),
        }
    }
}

/// Both, or the mistakes of both.
pub fn both<A, B>(one: Result<A, Error>, other: Result<B, Error>) -> Result<(A, B), Error> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(one), Err(other)) => {
            let mut all = one.mistakes();
            all.extend(other.mistakes());
            Err(Error::Mistakes(all))
        }
    }
}

/// A size as memory has it.
pub(super) fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// E7: half the cores, so that the machine can do other work.
pub(super) fn half_the_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}
