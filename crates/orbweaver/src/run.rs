//! A crawl run to its end on the command line: progress, messages, signals, and the summary.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};

use orbweaver_daemons::Signals;
use orbweaver_ring::{Crawl, CrawlBuilder, Error};

use crate::exit::{Ending, Fatal};
use crate::progress::{Form, Progress, Show};
use crate::summary;

/// How often the crawl is looked at; its end is seen at once.
const EVERY: Duration = Duration::from_millis(50);

/// Runs a crawl to its end and says how it went.
pub(crate) fn run(builder: CrawlBuilder, show: Show, is_service: bool) -> Result<Ending> {
    let mut progress = Progress::new(show);
    let builder = match progress.log_output() {
        Some(output) => builder.on_request(move |line| output.log(line)),
        None => builder,
    };
    let signals = signals()?;
    let crawl = builder.start().map_err(in_words)?;
    let mut told = false;
    while !crawl.wait_timeout(EVERY) {
        say(&crawl, &progress);
        progress.show(crawl.progress());
        if signals.try_recv().is_err() {
            continue;
        }
        if std::mem::replace(&mut told, true) {
            progress.clear();
            // Its threads end with the process.
            std::mem::forget(crawl);
            let what = "ended at once; the same command resumes";
            return Err(Fatal::with(Ending::Interrupted, what));
        }
        progress.say(
            "orbweaver: stopping; waiting for requests in flight, a second signal ends at once",
        );
        crawl.stop();
    }
    say(&crawl, &progress);
    let dir = crawl.dir().clone();
    let last = crawl.progress();
    progress.clear();
    let summary = crawl.wait()?;
    progress.finish(last, &summary);
    if matches!(show.form, Form::Live | Form::Plain) {
        summary::print(&dir, &summary)?;
    }
    Ok(match summary.stopped {
        true => Ending::Interrupted,
        false if summary.status.pages == 0 && !is_service => Ending::NoPage,
        false => Ending::Done,
    })
}

/// What there is to tell and has not been said.
fn say(crawl: &Crawl, progress: &Progress) {
    for message in crawl.messages() {
        progress.say(&format!("orbweaver: {message}"));
    }
}

/// Hears SIGINT and SIGTERM, two of them at most.
fn signals() -> Result<Receiver<()>> {
    let (tell, heard) = sync_channel(2);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot listen for signals")?;
    let mut signals = runtime
        .block_on(async { Signals::new() })
        .context("cannot listen for signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    signals.next().await;
                    // Whoever does not take the second one is ending anyway.
                    let _ = tell.try_send(());
                }
            });
        })
        .context("cannot listen for signals")?;
    Ok(heard)
}

/// What can be typed when there is nothing to crawl.
fn in_words(error: Error) -> anyhow::Error {
    match error {
        Error::NoSeeds { kept: Some(file) } => {
            let file = file.display();
            Fatal::input(format!("{file} has no seeds any more; give them again"))
        }
        Error::NoSeeds { kept: None } => Fatal::input(
            "nothing to crawl: give a URL, or --seeds FILE, or -o the directory of an earlier crawl",
        ),
        error => error.into(),
    }
}
