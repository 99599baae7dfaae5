//! The progress of a crawl, shown to people as a live line, to logs as plain lines, to programs as JSON.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use orbweaver_model::text;
use orbweaver_ring::{Progress as Standing, Summary, json};

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

/// Writes to the terminal, from any thread.
#[derive(Clone)]
pub(crate) struct Output {
    form: Form,
    bar: Option<ProgressBar>,
}

impl Output {
    /// Prints a message without disturbing the live line.
    pub(crate) fn say(&self, sentence: &str) {
        let sentence = text::shown(sentence);
        match (&self.bar, self.form) {
            (Some(bar), _) => bar.println(&sentence),
            (None, Form::Plain) => line(&sentence),
            (None, _) => {}
        }
    }

    /// Prints a line of the request log, which was requested in any form of progress.
    pub(crate) fn log(&self, entry: &str) {
        match (&self.bar, self.form) {
            (Some(bar), _) => bar.println(entry),
            (None, Form::Json) => line(&json::line(&serde_json::json!({ "log": entry }))),
            (None, _) => line(entry),
        }
    }
}

/// Shows progress.
pub(crate) struct Progress {
    show: Show,
    output: Output,
    last_line: Instant,
}

impl Progress {
    /// How often the live line changes.
    const LIVE_EVERY: Duration = Duration::from_millis(250);
    /// How often a plain line is written; a log is read afterwards.
    const PLAIN_EVERY: Duration = Duration::from_secs(5);
    /// How often a JSON line is written.
    const JSON_EVERY: Duration = Duration::from_secs(1);

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
            output: Output { form, bar },
            last_line: Instant::now(),
        }
    }

    /// Shows how far the crawl is, if it is time.
    pub(crate) fn show(&mut self, now: Standing) {
        let every = match self.show.form {
            Form::Live => Self::LIVE_EVERY,
            Form::Plain => Self::PLAIN_EVERY,
            Form::Json => Self::JSON_EVERY,
            Form::Off => return,
        };
        if self.last_line.elapsed() >= every {
            self.last_line = Instant::now();
            self.write(&now);
        }
    }

    /// For programs: how far the crawl was when it ended.
    pub(crate) fn finish(self, last: Standing, summary: &Summary) {
        if self.show.form == Form::Json {
            self.write(&Standing {
                seconds: summary.seconds,
                pages: summary.pages,
                rate: summary.pages as f64 / summary.seconds.max(0.001),
                limited_by: "the end".into(),
                ..last
            });
        }
    }

    /// Prints a message without disturbing the live line.
    pub(crate) fn say(&self, sentence: &str) {
        self.output.say(sentence);
    }

    /// Where the request log is shown, if it is.
    pub(crate) fn log_output(&self) -> Option<Output> {
        self.show.verbose.then(|| self.output.clone())
    }

    /// Removes the live line.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.output.bar {
            bar.finish_and_clear();
        }
    }

    fn write(&self, now: &Standing) {
        match (&self.output.bar, self.show.form) {
            (Some(bar), _) => {
                bar.set_message(sentence(now));
                bar.tick();
            }
            (None, Form::Json) => line(&json::line(now)),
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
