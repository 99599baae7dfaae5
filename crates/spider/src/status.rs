//! Every HTTP status has a decided action: this table is the only place where one is decided.
//!
//! `docs/outcomes.md` shows the same table to users; a test holds the two together. How long "later" is,
//! and how often, is decided in the binary, where outcomes without a status are decided as well.

use std::ops::RangeInclusive;

/// What is to be done about a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Keep the document.
    Store,
    /// Go where Location points, if it points anywhere.
    Follow {
        /// True when the old URL is not coming back: later visits go to the target alone.
        permanent: bool,
    },
    /// Ask again when Retry-After says, or after a while; the whole host waits as long.
    Busy,
    /// Ask again later: the trouble is the server's and may pass.
    Retry,
    /// Asking again would bring the same answer.
    GiveUp,
    /// There is no such document now.
    Missing,
    /// There will be no such document again.
    Gone,
    /// Not a final status: the peer does not speak HTTP as asked.
    Violation,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The statuses it is about.
    pub statuses: &'static [RangeInclusive<u16>],
    /// What is done about them.
    pub action: Action,
    /// The same in words, for users.
    pub words: &'static str,
}

const fn row(statuses: &'static [RangeInclusive<u16>], action: Action, words: &'static str) -> Row {
    Row {
        statuses,
        action,
        words,
    }
}

/// The table. The first row that has a status decides.
///
/// 304 answers a question with a condition, which the document kept from an earlier visit still answers.
/// 407 and 511 come from something between us and the server, and no password is ever sent. 425 and 421
/// ask for another connection, which a repetition uses. 509 and 520–530 are what hosting companies and
/// proxy networks say when the server behind them fails.
pub const TABLE: &[Row] = &[
    row(
        &[100..=199],
        Action::Violation,
        "`failed_protocol` if no final response follows; retried",
    ),
    row(
        &[200..=299],
        Action::Store,
        "the document is archived and read",
    ),
    row(
        &[304..=304],
        Action::Store,
        "the document of the earlier visit is unchanged; without a conditional request, an empty document",
    ),
    row(
        &[301..=301, 308..=308],
        Action::Follow { permanent: true },
        "the target is queued as a link; later visits request only the target",
    ),
    row(
        &[302..=303, 307..=307],
        Action::Follow { permanent: false },
        "the target is queued as a link; later visits request this URL again",
    ),
    row(
        &[300..=300, 305..=306, 309..=399],
        Action::GiveUp,
        "`http_error`, not followed, not retried",
    ),
    row(
        &[404..=404],
        Action::Missing,
        "`http_error`, not retried; revisited with --recrawl",
    ),
    row(
        &[410..=410],
        Action::Gone,
        "`http_error`, never requested again",
    ),
    row(
        &[401..=401, 407..=407, 511..=511],
        Action::GiveUp,
        "`http_error`, not retried",
    ),
    row(
        &[403..=403, 451..=451],
        Action::GiveUp,
        "`http_error`, not retried: the server refuses",
    ),
    row(
        &[429..=429, 503..=503],
        Action::Busy,
        "retried at the time in Retry-After, with no other request to the host before it; then `http_error`",
    ),
    row(
        &[408..=408, 421..=421, 425..=425],
        Action::Retry,
        "retried on another connection, then `http_error`",
    ),
    row(
        &[
            500..=500,
            502..=502,
            504..=504,
            507..=507,
            509..=509,
            520..=530,
        ],
        Action::Retry,
        "retried, then `http_error`",
    ),
    row(
        &[400..=499],
        Action::GiveUp,
        "every other 4xx, known or not: `http_error`, not retried",
    ),
    row(
        &[500..=599],
        Action::GiveUp,
        "every other 5xx, known or not: `http_error`, not retried",
    ),
    row(
        &[0..=99, 600..=999],
        Action::GiveUp,
        "not an HTTP status: `http_error`, not retried",
    ),
];

/// The action for a status.
pub fn action(status: u16) -> Action {
    let row = TABLE
        .iter()
        .find(|row| row.statuses.iter().any(|range| range.contains(&status)));
    // HTTP/1 has three digits, but HTTP/2 frames could say anything.
    row.map_or(Action::GiveUp, |row| row.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_status_has_its_action() {
        for (status, wanted) in [
            (0, Action::GiveUp),
            (101, Action::Violation),
            (200, Action::Store),
            (206, Action::Store),
            (299, Action::Store),
            (300, Action::GiveUp),
            (301, Action::Follow { permanent: true }),
            (302, Action::Follow { permanent: false }),
            (303, Action::Follow { permanent: false }),
            (304, Action::Store),
            (306, Action::GiveUp),
            (307, Action::Follow { permanent: false }),
            (308, Action::Follow { permanent: true }),
            (399, Action::GiveUp),
            (401, Action::GiveUp),
            (404, Action::Missing),
            (407, Action::GiveUp),
            (410, Action::Gone),
            (418, Action::GiveUp),
            (429, Action::Busy),
            (451, Action::GiveUp),
            (499, Action::GiveUp),
            (501, Action::GiveUp),
            (503, Action::Busy),
            (522, Action::Retry),
            (599, Action::GiveUp),
            (600, Action::GiveUp),
            (999, Action::GiveUp),
            (u16::MAX, Action::GiveUp),
        ] {
            assert_eq!(action(status), wanted, "{status}");
        }
    }

    #[test]
    fn every_status_of_three_digits_is_in_the_table() {
        for status in 0..=999 {
            let rows = TABLE.iter();
            let of_status = |row: &&Row| row.statuses.iter().any(|range| range.contains(&status));
            assert!(rows.clone().any(|row| of_status(&row)), "{status}");
        }
    }

    fn numbers(row: &Row) -> String {
        let number = |range: &RangeInclusive<u16>| match (*range.start(), *range.end()) {
            (from, to) if from == to => from.to_string(),
            (from, to) if from % 100 == 0 && to == from + 99 && from > 0 => {
                format!("{}xx", from / 100)
            }
            (from, to) if to == from + 1 => format!("{from}, {to}"),
            (from, to) => format!("{from}–{to}"),
        };
        let all: Vec<String> = row.statuses.iter().map(number).collect();
        all.join(", ")
    }

    #[test]
    fn the_table_for_users_is_this_one() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/outcomes.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("\n## HTTP statuses\n").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let shown: Vec<&str> = section
            .lines()
            .filter(|line| line.starts_with("| "))
            .skip(1)
            .collect();
        let wanted: Vec<String> = TABLE
            .iter()
            .map(|row| format!("| {} | {} |", numbers(row), row.words))
            .collect();
        assert_eq!(
            shown,
            wanted,
            "write this into docs/outcomes.md:\n{}",
            wanted.join("\n")
        );
    }
}
