//! The two enumerations of a result: the HTTP code and the outcome, each in one byte.
//!
//! The numbers are part of the protocol and of the journal on disk: they are never given away again.
//! `docs/formats/http-codes.md` lists them; a test holds the page against these tables.

use std::fmt;

use orbweaver_model::{OutcomeClass, Truncation};

/// Statuses that have numbers of their own: first number, first status, how many.
///
/// All of 4xx and 5xx have one, because servers use unregistered ones freely and what is to be done can
/// depend on them (520–530); of the others the registered range with room to spare.
pub const RANGES: [(u8, u16, u8); 5] = [
    (1, 100, 9),
    (10, 200, 30),
    (40, 300, 10),
    (50, 400, 100),
    (150, 500, 100),
];

/// Statuses without a number of their own: number, what it stands for, first and last status.
pub const OTHERS: [(u8, &str, u16, u16); 4] = [
    (250, "another 1xx", 109, 199),
    (251, "another 2xx", 230, 299),
    (252, "another 3xx", 310, 399),
    (253, "below 100, or 600 and above", 600, 99),
];

/// An HTTP status as an enumeration; zero when there was no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpCode(u8);

impl HttpCode {
    /// No answer with a status came.
    pub const NONE: Self = Self(0);

    /// The number for a status.
    pub fn of(status: Option<u16>) -> Self {
        let Some(status) = status else {
            return Self::NONE;
        };
        for (number, first, count) in RANGES {
            let offset = status
                .checked_sub(first)
                .and_then(|it| u8::try_from(it).ok());
            if let Some(offset) = offset.filter(|offset| *offset < count) {
                return Self(number + offset);
            }
        }
        let other = OTHERS
            .iter()
            .find(|(_, _, first, last)| (*first..=*last).contains(&status));
        Self(other.map_or(253, |(number, ..)| *number))
    }

    /// The status; none for no answer, and for a number that stands for several.
    pub fn status(self) -> Option<u16> {
        RANGES.iter().find_map(|(number, first, count)| {
            let offset = self.0.checked_sub(*number)?;
            (offset < *count).then(|| first + u16::from(offset))
        })
    }

    /// Reads a number from the wire; none when it is not in the table.
    pub fn from_byte(byte: u8) -> Option<Self> {
        (byte <= 253).then_some(Self(byte))
    }

    /// The number.
    pub const fn to_byte(self) -> u8 {
        self.0
    }
}

impl fmt::Display for HttpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = self.status() {
            return write!(f, "{status}");
        }
        let other = OTHERS.iter().find(|(number, ..)| *number == self.0);
        f.write_str(other.map_or("none", |(_, words, ..)| words))
    }
}

/// Where in the outcome byte the kind of a cut begins; the class is below.
const CUT_SHIFT: u8 = 5;

/// The cuts in the order of their numbers, from 1.
pub const CUTS: [Truncation; 3] = [Truncation::Length, Truncation::Time, Truncation::Disconnect];

/// The outcome byte: the class counted from 1 in the order of `OutcomeClass::ALL`, plus 32, 64 or 96 when
/// the data was cut by a size limit, by a time limit, or by the end of the connection.
pub fn outcome_code(class: OutcomeClass, cut: Option<Truncation>) -> u8 {
    let class = place(OutcomeClass::ALL, &class);
    let cut = cut.map_or(0, |cut| place(&CUTS, &cut));
    class | cut << CUT_SHIFT
}

/// Reads an outcome byte; none when it is not in the table.
pub fn outcome_of_code(byte: u8) -> Option<(OutcomeClass, Option<Truncation>)> {
    let class = usize::from(byte & 0x1f).checked_sub(1)?;
    let class = *OutcomeClass::ALL.get(class)?;
    match usize::from(byte >> CUT_SHIFT) {
        0 => Some((class, None)),
        cut => Some((class, Some(*CUTS.get(cut - 1)?))),
    }
}

/// The place of an item in its list, counted from 1; 0 when it is not there, which no item is.
fn place<T: PartialEq>(list: &[T], item: &T) -> u8 {
    let at = list.iter().position(|it| it == item);
    at.and_then(|at| u8::try_from(at + 1).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_number_and_the_numbered_come_back() {
        for status in 0..=1000 {
            let code = HttpCode::of(Some(status));
            assert_ne!(code, HttpCode::NONE, "{status}");
            assert_eq!(HttpCode::from_byte(code.to_byte()), Some(code));
            let numbered = matches!(status, 100..=108 | 200..=229 | 300..=309 | 400..=599);
            assert_eq!(code.status(), numbered.then_some(status), "{status}");
        }
        assert_eq!(HttpCode::of(None).status(), None);
        assert_eq!(HttpCode::of(Some(200)).to_byte(), 10);
        assert_eq!(HttpCode::of(Some(404)).to_byte(), 54);
        assert_eq!(HttpCode::of(Some(250)).to_byte(), 251);
        assert_eq!(HttpCode::of(Some(999)).to_byte(), 253);
        assert_eq!(HttpCode::from_byte(254), None);
    }

    #[test]
    fn no_number_is_used_twice() {
        let mut numbers: Vec<u8> = OTHERS.iter().map(|(number, ..)| *number).collect();
        for (number, _, count) in RANGES {
            numbers.extend(number..number + count);
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=253).collect::<Vec<u8>>());
    }

    #[test]
    fn outcomes_and_their_numbers_are_one_to_one() {
        let mut known = 0;
        for byte in 0..=255 {
            if let Some((class, cut)) = outcome_of_code(byte) {
                assert_eq!(outcome_code(class, cut), byte);
                known += 1;
            }
        }
        assert_eq!(known, 18 * 4);
        assert_eq!(outcome_code(OutcomeClass::Success, None), 1);
        let cut = Some(Truncation::Length);
        assert_eq!(outcome_code(OutcomeClass::Truncated, cut), 3 + 32);
        assert_eq!(outcome_code(OutcomeClass::FailedDns, None), 18);
    }
}
