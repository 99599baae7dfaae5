//! Messages of the commands that read a damaged crawl directory.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

use orbweaver_docindex::Damage;

use crate::exit::Ending;

/// Places that are named; `check` lists all.
const NAMED: usize = 20;

/// Lists on standard error the damaged places of the index and what to do about them. Returns how to end.
pub(crate) fn index(damage: &[Damage], dir: &Path) -> Ending {
    let places = damage.iter().map(|damage| format!("index/{damage}"));
    tell(places, || {
        let dir = dir.display();
        let places = match damage.len() {
            1 => "one place".into(),
            count => format!("{count} places"),
        };
        format!(
            "the index is damaged in {places}, and only what can be read is shown; \
             `orbweaver crawl -o {dir}` recovers the rest and fetches lost pages again"
        )
    })
}

/// Lists places on standard error, then the advice. Returns how to end.
pub(crate) fn tell(
    places: impl ExactSizeIterator<Item = impl Display>,
    advice: impl FnOnce() -> String,
) -> Ending {
    let count = places.len();
    if count == 0 {
        return Ending::Done;
    }
    let mut out = std::io::stderr().lock();
    // Whoever does not listen gets the exit code.
    for place in places.take(NAMED) {
        let _ = writeln!(out, "orbweaver: damaged: {place}");
    }
    if count > NAMED {
        let more = count - NAMED;
        let _ = writeln!(
            out,
            "orbweaver: and {more} more; `orbweaver check` lists them"
        );
    }
    let _ = writeln!(out, "orbweaver: {}", advice());
    Ending::Damaged
}
