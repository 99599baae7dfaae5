//! What is spoken on a port.

/// What is spoken on a port. Each has a key pair of its own, so that nobody in the middle can lead a
/// connection meant for one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The line protocol: the spider listens.
    Line,
    /// The store protocol: the store listens.
    Store,
    /// The results protocol: the store listens.
    Results,
}

impl Service {
    /// Its name in the derivation of its key.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Store => "store",
            Self::Results => "results",
        }
    }
}
