//! The two spellings of a moment in an archive: ISO 8601 with milliseconds in WARC, fourteen digits in CDXJ.

use std::fmt;

use orbweaver_model::Timestamp;

/// A moment broken into its UTC parts once, to be spelled several times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Date {
    parts: jiff::civil::DateTime,
}

impl Date {
    pub(crate) fn new(at: Timestamp) -> Self {
        let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        // The end of jiff's time lies in the year 9999: both spellings have room for four digits.
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        Self {
            parts: jiff::tz::Offset::UTC.to_datetime(moment),
        }
    }

    /// `2026-03-01T12:00:00.123Z`, as WARC-Date wants it.
    pub(crate) fn iso(self) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let p = self.parts;
            write!(
                f,
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                p.year(),
                p.month(),
                p.day(),
                p.hour(),
                p.minute(),
                p.second(),
                p.millisecond()
            )
        })
    }

    /// `20260301120000`, as CDXJ wants it.
    pub(crate) fn digits(self) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let p = self.parts;
            write!(
                f,
                "{:04}{:02}{:02}{:02}{:02}{:02}",
                p.year(),
                p.month(),
                p.day(),
                p.hour(),
                p.minute(),
                p.second()
            )
        })
    }
}

/// Reads a WARC-Date; none when it is not one.
pub(crate) fn parse_iso(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_millisecond())
        .ok()
        .map(Timestamp::from_millis)
}

/// Reads fourteen digits; none when they are not a moment.
pub(crate) fn parse_digits(text: &str) -> Option<Timestamp> {
    let part = |range: std::ops::Range<usize>| text.get(range);
    let [year, month, day] = [part(0..4)?, part(4..6)?, part(6..8)?];
    let [hour, minute, second] = [part(8..10)?, part(10..12)?, part(12..14)?];
    parse_iso(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_back() {
        let at = Timestamp::from_millis(1_772_366_400_007);
        let date = Date::new(at);
        assert_eq!(date.iso().to_string(), "2026-03-01T12:00:00.007Z");
        assert_eq!(date.digits().to_string(), "20260301120000");
        assert_eq!(parse_iso("2026-03-01T12:00:00.007Z"), Some(at));
        assert_eq!(parse_iso("2026-03-01"), None);
        assert_eq!(
            Date::new(Timestamp::from_millis(u64::MAX))
                .iso()
                .to_string(),
            "9999-12-30T22:00:00.999Z"
        );
    }
}
