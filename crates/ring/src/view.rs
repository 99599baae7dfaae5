//! A crawl seen from another process: through its socket while it runs, from its files when it does not.

use std::io::{BufRead, Write};
use std::path::Path;

use orbweaver_config::Settings;
use orbweaver_crawldir::CrawlDir;
use orbweaver_docindex::{Damage, Reader};
use orbweaver_intake::seeds::parse_seed;
use orbweaver_intake::{Canonicalizer, Scope, surt};
use orbweaver_model::{CapturePlace, CrawlUrl, Link};
use orbweaver_store::Found;

use crate::clock;
use crate::error::{Context, Error, Result};
use orbweaver_control::Question;
use orbweaver_control::changes::{Changes, Entry};
use orbweaver_control::hosts::{self, Said};
use orbweaver_control::socket::{self, ask, ask_one};
use orbweaver_watch::check::{self, IndexLine, READER_MEMORY};
use orbweaver_watch::outcomes;
use orbweaver_watch::slow::Slow;
use orbweaver_watch::status::Status;
use orbweaver_watch::why::{self, Why};

/// The crawl in a directory, whether it runs or not.
#[derive(Clone, Debug)]
pub struct View {
    dir: CrawlDir,
}

/// An answer, and what could not be read for it.
#[derive(Clone, Debug)]
pub struct Seen<T> {
    /// The answer, from what could be read.
    pub answer: T,
    /// Where the doc index is damaged.
    pub damage: Vec<Damage>,
}

impl<T> Seen<T> {
    fn whole(answer: T) -> Self {
        Self {
            answer,
            damage: Vec::new(),
        }
    }

    fn of(answer: T, reader: &Reader) -> Self {
        Self {
            answer,
            damage: reader.damage(),
        }
    }
}

impl View {
    /// Looks at the crawl in a directory.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            dir: CrawlDir::open(path)?,
        })
    }

    /// Its directory.
    pub fn dir(&self) -> &CrawlDir {
        &self.dir
    }

    fn reader(&self) -> Result<Reader> {
        let dir = self.dir.clone().readable()?;
        Ok(Reader::open(&dir.index(), READER_MEMORY)?)
    }

    /// The counts of URLs and hosts.
    pub fn status(&self) -> Result<Seen<Status>> {
        if let Some(status) = ask_one(&self.dir, &Question::Status)? {
            return Ok(Seen::whole(status));
        }
        let reader = self.reader()?;
        let status = Status::read(&reader, clock::steady()())?;
        Ok(Seen::of(status, &reader))
    }

    /// Everything that decides about a URL.
    pub fn why(&self, url: &str) -> Result<Seen<Why>> {
        let question = Question::Why { url: url.into() };
        if let Some(why) = ask_one(&self.dir, &question)? {
            return Ok(Seen::whole(why));
        }
        let reader = self.reader()?;
        let why = self.explain(&reader, url)?;
        Ok(Seen::of(why, &reader))
    }

    /// The newest document of a URL that can be read from the archive, and what could not. The record of the URL says where
    /// it lies; without one it is looked for in the CDXJ.
    pub fn page(&self, url: &CrawlUrl) -> Result<Found> {
        let dir = self.dir.clone().readable_in(&["warc", "cdxj"])?;
        let place = self.place_of(url);
        let found = orbweaver_store::newest(dir.path(), place, &|| surt(url), url.as_str());
        Ok(found?)
    }

    /// The page is found even if the index cannot be read.
    fn place_of(&self, url: &CrawlUrl) -> Option<CapturePlace> {
        let question = Question::Why {
            url: url.to_string(),
        };
        match ask_one::<Why>(&self.dir, &question) {
            Ok(Some(why)) => {
                let says = why.archive?;
                orbweaver_store::place_in(&says.file, says.offset)
            }
            Ok(None) => {
                let reader = self.reader().ok()?;
                let entry = reader.entry(url.key(reader.seed())).ok()??;
                entry.fate?.capture
            }
            Err(_) => None,
        }
    }

    /// What limits the speed of a crawl that runs.
    pub fn slow(&self) -> Result<Slow> {
        let slow = ask_one(&self.dir, &Question::Slow)?;
        Ok(slow.ok_or_else(|| hosts::not_running(&self.dir, &Question::Slow))?)
    }

    /// Writes one JSON object per URL: `docs/formats/json-lines.md`.
    pub fn outcomes(&self, out: &mut dyn Write) -> Result<Vec<Damage>> {
        if let Some(answer) = ask(&self.dir, &Question::Outcomes)? {
            copy(answer, out)?;
            return Ok(Vec::new());
        }
        let reader = self.reader()?;
        outcomes::write(&reader, self.dir.path(), out)?;
        Ok(reader.damage())
    }

    /// Checks the doc index; calls back with each finding, and at the end with the number of URLs.
    pub fn check_index(&self, each: &mut dyn FnMut(IndexLine) -> Result<()>) -> Result<()> {
        let mut lines: Box<dyn Iterator<Item = std::io::Result<String>>> =
            match ask(&self.dir, &Question::Check)? {
                Some(answer) => Box::new(answer.lines()),
                None => Box::new(std::io::Cursor::new(check::read_index(&self.dir)?).lines()),
            };
        lines.try_for_each(|line| -> Result<()> {
            let line = line.context("cannot read the findings")?;
            if let Some(refused) = socket::refusal(line.as_bytes()) {
                return Err(refused.into());
            }
            let line = serde_json::from_str(&line);
            each(line.map_err(|error| Error::Failed(format!("not a finding: {error}")))?)
        })
    }

    /// Changes a crawl that runs, or one host of a crawl that does not.
    pub fn change(&self, question: &Question) -> Result<Said> {
        if let Some(said) = ask_one(&self.dir, question)? {
            return Ok(said);
        }
        match question.needs_a_running_crawl() {
            true => Err(hosts::not_running(&self.dir, question).into()),
            false => Ok(hosts::at_rest(&self.dir, question, clock::steady()())?),
        }
    }

    /// What operators changed, the oldest first.
    pub fn changes(&self) -> Result<Vec<Entry>> {
        Ok(Changes::of(&self.dir).read()?)
    }

    /// Where in the log of changes lines begin that cannot be read.
    pub fn damaged_changes(&self) -> Vec<u64> {
        Changes::of(&self.dir).damaged()
    }

    /// Repairs what can be proven from the rest, while no crawl runs; what was done, in words.
    pub fn repair(&self) -> Result<Vec<String>> {
        crate::repair::repair(&self.dir)
    }

    /// Reads what a crawl that does not run has left.
    fn explain(&self, reader: &Reader, text: &str) -> Result<Why> {
        let settings = Settings::new(&self.dir.stored_config()?)?;
        let canonicalizer = Canonicalizer::new(settings.canonical.clone());
        let url = parse_seed(text, &canonicalizer)
            .map_err(|error| Error::input(format!("`{text}` is not a URL: {error}")))?;
        let mut scope = Scope::new(settings.scope.clone(), &settings.seeds)?;
        for seed in reader.seeds() {
            scope.admit(&seed?);
        }
        Ok(why::gather(
            &url,
            &why::Sources {
                dir: self.dir.path(),
                reader,
                settings: &settings,
                scope: &|link: &Link| scope.verdict(link),
                whereabouts: None,
                now: clock::steady()(),
            },
        )?)
    }
}

/// Passes on what a running crawl lists. When it cannot go on, its last line says why.
fn copy(answer: impl BufRead, out: &mut dyn Write) -> Result<()> {
    for line in answer.split(b'\n') {
        let mut line = line.context("the crawl ended while it answered")?;
        if let Some(refused) = socket::refusal(&line) {
            return Err(refused.into());
        }
        line.push(b'\n');
        out.write_all(&line)
            .context("cannot write the list of URLs")?;
    }
    Ok(())
}
