//! Gathering what is wrong with a configuration, so that all of it is reported at once, each under the name that the
//! user wrote.

use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::error::Error;
use crate::origins::Origins;
use crate::units;

/// The mistakes so far.
#[derive(Debug)]
pub(crate) struct Mistakes<'a> {
    origins: &'a Origins,
    list: Vec<String>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn new(origins: &'a Origins) -> Self {
        Self {
            origins,
            list: Vec::new(),
        }
    }

    /// A mistake in the value of a key.
    pub(crate) fn about(&mut self, path: &str, message: impl Display) {
        self.list
            .push(format!("{}: {message}", self.origins.name(path)));
    }

    /// A mistake unless it holds; `must` is a sentence whose subject is the key.
    pub(crate) fn demand(&mut self, holds: bool, path: &str, must: &str) {
        if !holds {
            self.list
                .push(format!("{} {must}", self.origins.name(path)));
        }
    }

    /// What messages call a key.
    pub(crate) fn name(&self, path: &str) -> String {
        self.origins.name(path)
    }

    /// A mistake in what may stand on the command line for itself.
    pub(crate) fn about_given(&mut self, path: &str, message: impl Display) {
        match self.origins.get(path) {
            Some(origin) => self.list.push(format!("{origin}: {message}")),
            None => self.list.push(message.to_string()),
        }
    }

    /// What was read, unless it is a mistake in the value of a key.
    pub(crate) fn take<T>(&mut self, path: &str, read: Result<T, impl Display>) -> Option<T> {
        read.map_err(|error| self.about(path, error)).ok()
    }

    /// A size such as "512M".
    pub(crate) fn size(&mut self, path: &str, given: Option<&String>) -> Option<u64> {
        self.take(path, units::size(given?))
    }

    /// A duration such as "2h".
    pub(crate) fn time(&mut self, path: &str, given: Option<&String>) -> Option<Duration> {
        self.take(path, units::duration(given?))
    }

    /// Seconds.
    pub(crate) fn seconds(&mut self, path: &str, given: Option<f64>) -> Option<Duration> {
        let seconds = units::seconds_to(given?);
        self.demand(
            seconds.is_some(),
            path,
            "must be a number of seconds, 0 or more",
        );
        seconds
    }

    /// Requests per second.
    pub(crate) fn rate(&mut self, path: &str, given: Option<f64>) -> Option<f64> {
        let rate = given?;
        self.demand(
            rate == 0.0 || (1e-6..=1e6).contains(&rate),
            path,
            "must be 0 (no limit) or a number of requests per second, at most a million",
        );
        Some(rate)
    }

    /// Networks such as 10.0.0.0/8.
    pub(crate) fn networks(&mut self, path: &str, given: Option<&Vec<String>>) -> Vec<IpNet> {
        let read = |text: &String| {
            let net = text.parse::<IpNet>();
            net.or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
                .map_err(|_| format!("`{text}` is not a network; write it like 10.0.0.0/8"))
        };
        let texts = given.into_iter().flatten();
        texts
            .filter_map(|text| self.take(path, read(text)))
            .collect()
    }

    /// A whole number that must not be 0.
    pub(crate) fn some<T: Copy + PartialEq + From<u8>>(
        &mut self,
        path: &str,
        given: Option<T>,
        usual: T,
    ) -> T {
        let value = given.unwrap_or(usual);
        self.demand(value != T::from(0), path, "must be at least 1");
        value
    }

    /// With those of another part of the settings.
    pub(crate) fn add(&mut self, others: Vec<String>) {
        for mistake in others {
            if !self.list.contains(&mistake) {
                self.list.push(mistake);
            }
        }
    }

    /// The settings, or every mistake at once.
    pub(crate) fn unless<T>(self, settings: T) -> Result<T, Error> {
        match self.list.is_empty() {
            true => Ok(settings),
            false => Err(Error::Mistakes(self.list)),
        }
    }
}
