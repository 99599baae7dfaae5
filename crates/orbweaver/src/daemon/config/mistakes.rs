//! Reading what a configuration says, and gathering its mistakes so that all are reported at once.

use anyhow::Result;
use ipnet::IpNet;

use crate::exit::Fatal;

/// Reads networks; what is none is a mistake.
pub(super) fn networks(texts: &[String], wrong: &mut Vec<String>) -> Vec<IpNet> {
    let mut read = |text: &String| {
        let net = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
        let problem = |_| {
            wrong.push(format!(
                "`{text}` is not a network; write it like 10.0.0.0/8"
            ))
        };
        net.map_err(problem).ok()
    };
    texts.iter().filter_map(&mut read).collect()
}

/// A mistake unless it holds.
pub(super) fn demand(holds: bool, message: &str, wrong: &mut Vec<String>) {
    if !holds {
        wrong.push(message.into());
    }
}

/// The settings, or every mistake at once.
pub(super) fn all_right<T>(settings: T, wrong: Vec<String>) -> Result<T> {
    match wrong.as_slice() {
        [] => Ok(settings),
        [one] => Err(Fatal::input(one.clone())),
        many => Err(Fatal::input(format!(
            "{} things are wrong:\n  {}",
            many.len(),
            many.join("\n  ")
        ))),
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
