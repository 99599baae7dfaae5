//! Gathering the mistakes of a configuration, so that all are reported at once, each under the name of its key.

use std::time::Duration;

use anyhow::Result;
use ipnet::IpNet;

use super::DaemonConfig;
use super::keys::Names;
use crate::exit::Fatal;
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
    pub(super) fn unless<T>(self, settings: T) -> Result<T> {
        match self.list.as_slice() {
            [] => Ok(settings),
            list => Err(Fatal::input(told(list))),
        }
    }
}

/// Mistakes in one message.
fn told(list: &[String]) -> String {
    match list {
        [one] => one.clone(),
        many => format!("{} things are wrong:\n  {}", many.len(), many.join("\n  ")),
    }
}

/// Both, or the mistakes of both.
pub(crate) fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(one), Err(other)) => {
            let list: Vec<String> = [one, other].iter().flat_map(lines).collect();
            Err(Fatal::input(told(&list)))
        }
    }
}

/// The mistakes in a message of [`told`].
fn lines(error: &anyhow::Error) -> Vec<String> {
    let text = error.to_string();
    match text.split_once(" things are wrong:\n") {
        Some((_, many)) => many.lines().map(|line| line.trim().to_owned()).collect(),
        None => vec![text],
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
