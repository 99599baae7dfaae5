//! Sizes and durations as people write them.

use std::time::Duration;

use orbweaver_model::Timestamp;

/// Reads "512M", "1G", "65536".
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text
        .get(digits.len()..)
        .unwrap_or_default()
        .to_ascii_uppercase();
    let shift = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("`{text}` is not a size; write it like 512M or 2G")),
    };
    let number: f64 = digits
        .trim()
        .parse()
        .map_err(|_| format!("`{text}` is not a size; write it like 512M or 2G"))?;
    let bytes = number * 2f64.powi(shift);
    if !(0.0..1e18).contains(&bytes) {
        return Err(format!("`{text}` is too large"));
    }
    Ok(bytes as u64)
}

/// Reads "90", "90s", "5m", "1h30m", "7d", "1d12h".
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 90s, 5m, 1h30m or 7d");
    read_duration(text.trim()).ok_or_else(wrong)
}

fn read_duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds_to(seconds);
    }
    // A day has 24 hours here; the library leaves days to calendars.
    if let Some((days, rest)) = text.split_once('d')
        && let Ok(days) = days.trim().parse::<u32>()
    {
        let days = Duration::from_secs(u64::from(days) * 86_400);
        return match rest.trim() {
            "" => Some(days),
            rest => days.checked_add(read_duration(rest)?),
        };
    }
    let span: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(span).ok()
}

/// A duration from seconds, when it is one.
pub fn seconds_to(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// "1 page", "2 pages" for people.
pub fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// "1.3 GB" for people.
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// "1h02m", "3m20s", "12s" for people.
pub fn human_duration(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// "2026-03-01T12:00:00.250Z" for people and programs.
pub fn moment(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

/// The rate that belongs to a time between two requests, without the noise of two divisions.
pub fn rate_of(gap: Duration) -> f64 {
    if gap.is_zero() {
        return 0.0;
    }
    let rate = 1.0 / gap.as_secs_f64();
    (rate * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("512M", 512 << 20),
            ("1.5g", 3 << 29),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1M", "12Q", "1e300G", "NaN"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_thing_and_many() {
        assert_eq!(counted(0, "URL"), "0 URLs");
        assert_eq!(counted(1, "URL"), "1 URL");
        assert_eq!(counted(2, "URL"), "2 URLs");
    }

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("5m", 300),
            ("1h30m", 5400),
            ("7d", 604_800),
            ("1d 12h", 129_600),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "-5", "soon", "inf", "-3m", "d", "-1d", "1dd", "1d-3h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
