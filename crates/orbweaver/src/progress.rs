//! The progress of a crawl, shown to people as a live line, to logs as plain lines, to programs as JSON.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use orbweaver_model::text;

use crate::terminal;
use orbweaver_config::units::{counted, human_bytes, human_duration};

/// The form in which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A line that changes in place.
    Live,
    /// A line every few seconds.
    Plain,
    /// A JSON object per line.
    Json,
    /// Nothing.
    Off,
}

/// What a run shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    pub(crate) form: Form,
    /// A line for each request, too.
    pub(crate) verbose: bool,
}

impl Show {
    /// Nothing.
    pub(crate) const NOTHING: Self = Self {
        form: Form::Off,
        verbose: false,
    };
}

/// Where a crawl stands at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Standing {
    /// Seconds since this run began.
    pub(crate) seconds: f64,
    /// Documents that this run fetched.
    pub(crate) pages: u64,
    /// Documents a second, lately.
    pub(crate) rate: f64,
    /// Bytes that this run received.
    pub(crate) bytes: u64,
    /// URLs still to be asked for.
    pub(crate) queued: u64,
    /// Hosts being worked on.
    pub(crate) hosts_active: usize,
    /// Requests that are out.
    pub(crate) in_flight: usize,
    /// URLs that failed in this run.
    pub(crate) failed: u64,
    /// What limits the speed now.
    pub(crate) limited_by: String,
    /// What the run has to tell beyond the counts, so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
}

/// Speaks to the person before the screen, from any thread.
#[derive(Clone)]
pub(crate) struct Voice {
    form: Form,
    bar: Option<ProgressBar>,
}

impl Voice {
    /// A sentence for people that does not disturb the live line.
    pub(crate) fn say(&self, sentence: &str) {
        let sentence = text::shown(sentence);
        match (&self.bar, self.form) {
            (Some(bar), _) => bar.println(&sentence),
            (None, Form::Plain) => line(&sentence),
            (None, _) => {}
        }
    }

    /// A line of the log, which was asked for whatever the form of the progress.
    pub(crate) fn log(&self, entry: &str) {
        match (&self.bar, self.form) {
            (Some(bar), _) => bar.println(entry),
            (None, Form::Json) => line(&terminal::json(&serde_json::json!({ "log": entry }))),
            (None, _) => line(entry),
        }
    }
}

/// Shows progress.
pub(crate) struct Progress {
    show: Show,
    voice: Voice,
    last_line: Instant,
    /// Documents at earlier moments, for a rate that follows but does not jump.
    history: Vec<(f64, u64)>,
}

impl Progress {
    /// How often a standing should be shown.
    pub(crate) const EVERY: Duration = Duration::from_millis(250);
    /// How often a plain line is written; a log is read afterwards.
    const PLAIN_EVERY: Duration = Duration::from_secs(5);
    /// How often a JSON line is written.
    const JSON_EVERY: Duration = Duration::from_secs(1);
    /// Seconds over which the rate is taken.
    const WINDOW: f64 = 5.0;

    pub(crate) fn new(show: Show) -> Self {
        let form = show.form;
        let bar = (form == Form::Live).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            show,
            voice: Voice { form, bar },
            last_line: Instant::now(),
            history: Vec::new(),
        }
    }

    /// Fills in the rate and shows the standing if it is time. The rate.
    pub(crate) fn show(&mut self, mut now: Standing) -> f64 {
        now.rate = self.rate(&now);
        let due = match self.show.form {
            Form::Live => true,
            Form::Plain => self.last_line.elapsed() >= Self::PLAIN_EVERY,
            Form::Json => self.last_line.elapsed() >= Self::JSON_EVERY,
            Form::Off => false,
        };
        if due {
            self.last_line = Instant::now();
            self.write(&now);
        }
        now.rate
    }

    /// Shows the last standing and takes the live line away.
    pub(crate) fn finish(self, mut now: Standing) {
        now.rate = if now.seconds > 0.0 {
            now.pages as f64 / now.seconds
        } else {
            0.0
        };
        self.clear();
        if self.show.form == Form::Json {
            self.write(&now);
        }
    }

    /// A sentence for people that does not disturb the live line.
    pub(crate) fn say(&self, sentence: &str) {
        self.voice.say(sentence);
    }

    /// Where the log is shown, if it is.
    pub(crate) fn log_voice(&self) -> Option<Voice> {
        self.show.verbose.then(|| self.voice.clone())
    }

    /// Takes the live line away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.voice.bar {
            bar.finish_and_clear();
        }
    }

    fn rate(&mut self, now: &Standing) -> f64 {
        self.history
            .retain(|(at, _)| now.seconds - at <= Self::WINDOW);
        let rate = match self.history.first() {
            Some((at, pages)) if now.seconds > *at => {
                now.pages.saturating_sub(*pages) as f64 / (now.seconds - at)
            }
            _ => 0.0,
        };
        self.history.push((now.seconds, now.pages));
        rate
    }

    fn write(&self, now: &Standing) {
        match (&self.voice.bar, self.show.form) {
            (Some(bar), _) => {
                bar.set_message(sentence(now));
                bar.tick();
            }
            (None, Form::Json) => line(&terminal::json(now)),
            (None, _) => line(&sentence(now)),
        }
    }
}

fn sentence(now: &Standing) -> String {
    format!(
        "{} · {} · {:.1}/s · {} · {} queued · {} · {} in flight · {} failed · limit: {}",
        human_duration(Duration::from_secs_f64(now.seconds)),
        counted(now.pages, "page"),
        now.rate,
        human_bytes(now.bytes),
        now.queued,
        counted(now.hosts_active as u64, "host"),
        now.in_flight,
        now.failed,
        now.limited_by,
    )
}

/// Progress goes to standard error: standard output belongs to results. A closed one is no failure.
fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// CPU time of this process so far, user and system.
pub(crate) fn cpu_time() -> Duration {
    // Fields 14 and 15 of stat, counted after the name, which may itself hold spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    // The kernel reports in hundredths of a second on every Linux.
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_last_seconds() {
        let mut progress = Progress::new(Show::NOTHING);
        let at = |seconds: f64, pages| Standing {
            seconds,
            pages,
            ..Standing::default()
        };
        assert_eq!(progress.rate(&at(0.0, 0)), 0.0);
        assert_eq!(progress.rate(&at(1.0, 100)), 100.0);
        for second in 2..20 {
            progress.rate(&at(f64::from(second), 100));
        }
        assert_eq!(progress.rate(&at(20.0, 100)), 0.0);
    }
}
