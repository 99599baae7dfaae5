//! What became of each URL, as JSON lines: `docs/formats/json-lines.md` explains the fields.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use orbweaver_config::units::moment;
use orbweaver_docindex::{Entry, Reader};
use orbweaver_intake::surt;
use orbweaver_store::{Place, Places};

use crate::error::{Context, Result};
use orbweaver_crawldir::json;

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    url: &'a str,
    class: &'a str,
    out_of_scope: bool,
    status: Option<u16>,
    time: Option<String>,
    ip: Option<std::net::IpAddr>,
    bytes: u64,
    ms: u32,
    attempts: u8,
    redirect: Option<&'a str>,
    reason: Option<&'a str>,
    depth: u16,
    kind: &'a str,
    via: Option<String>,
    #[serde(rename = "type")]
    media: Option<Box<str>>,
    digest: Option<String>,
    archive: Option<InArchive>,
}

/// Where the newest capture lies, as `why` says it.
#[derive(Serialize)]
struct InArchive {
    file: String,
    offset: u64,
    length: u64,
}

/// Writes all lines of an index, with what the archive in this directory says of them.
pub fn write(reader: &Reader, dir: &Path, out: &mut dyn Write) -> Result<()> {
    let mut places = Places::open(dir)?;
    for entry in reader.entries() {
        let entry = entry?;
        let was_asked = entry
            .fate
            .as_ref()
            .is_some_and(|fate| fate.report.ip.is_some());
        let url = &entry.link.url;
        let place = was_asked
            .then(|| places.find(url.host(), &surt(url), url.as_str()))
            .flatten();
        // A page that is damaged or gone costs this field and no line.
        let via = entry.link.via.map(|page| reader.entry(page));
        let via = via.and_then(|page| page.ok().flatten());
        json::write(out, &line(&entry, via, place))
            .and_then(|()| out.write_all(b"\n"))
            .context("cannot write the list of URLs")?;
    }
    Ok(())
}

fn line(entry: &Entry, via: Option<Entry>, place: Option<Place>) -> Line<'_> {
    let link = &entry.link;
    let report = entry.fate.as_ref().map(|fate| &fate.report);
    Line {
        out_of_scope: report.is_some_and(|report| report.outcome.out_of_scope),
        time: report.map(|report| moment(report.at)),
        via: via.map(|page| page.link.url.to_string()),
        media: place.as_ref().and_then(|place| place.mime.clone()),
        digest: (place.as_ref().and_then(|place| place.digest.as_ref()))
            .map(|digest| format!("sha1:{digest}")),
        archive: place.map(|place| InArchive {
            file: format!("warc/{}", place.file),
            offset: place.offset,
            length: place.length,
        }),
        url: link.url.as_str(),
        class: report.map_or("queued", |report| report.outcome.class.as_str()),
        status: report.and_then(|report| report.status),
        ip: report.and_then(|report| report.ip),
        bytes: report.map_or(0, |report| report.bytes),
        ms: report.map_or(0, |report| report.millis),
        attempts: entry.fate.as_ref().map_or(0, |fate| fate.attempts),
        redirect: report.and_then(|report| report.redirect.as_deref()),
        reason: report
            .map(|report| report.outcome.reason.as_str())
            .filter(|text| !text.is_empty()),
        depth: link.depth,
        kind: link.kind.as_str(),
    }
}
