//! `orbweaver inspect`: one parser at a time, on a file or on JSON lines.

mod wire;

use std::io::{BufRead, BufWriter, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use orbweaver_intake::{CanonicalOptions, Canonicalizer, domain_or_host, surt};
use orbweaver_model::{CrawlUrl, Limits, LinkKind};
use orbweaver_robots::Robots;

use crate::exit::{Ending, Fatal};

/// Show the output of one parser for an input
///
/// Reads a file or standard input and prints JSON; captured traffic between two daemons (wire) is printed as text, one line
/// per message. With --batch every line of the input is a JSON question and every line of the output its answer, in order;
/// a question that cannot be parsed is answered with {"error": …}.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Questions and answers of --batch:
  url      {\"href\", \"base\"?}                     {\"url\", \"canonical\", \"surt\", \"host\", \"domain\"} or {\"error\"}
  robots   {\"robots\", \"agent\", \"url\"}            {\"allowed\", \"rule\", \"crawl_delay\"}
  links    {\"html\" or \"html_base64\", \"url\"}      {\"links\": [{\"url\", \"kind\", \"nofollow\"}]}
  sitemap  {\"body\" or \"body_base64\", \"url\"}      {\"urls\": [{\"url\", \"lastmod\"}], \"sitemaps\": […]}

Examples:
  orbweaver inspect robots robots.txt --agent orbweaver --url https://example.org/private/
  curl -s https://example.org | orbweaver inspect links --url https://example.org/
  orbweaver inspect wire --store captured.bin
  echo '{\"href\": \"../a\", \"base\": \"http://example.org/x/y\"}' | orbweaver inspect url --batch")]
pub(crate) struct InspectArgs {
    /// Which parser
    #[arg(value_enum)]
    what: InspectCommand,

    /// The input; standard input if not given, or -

    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// JSON lines in, JSON lines out
    #[arg(long, conflicts_with_all = ["line", "store", "answers", "results"])]
    batch: bool,

    /// wire: the line protocol, both directions; the default for input that begins like text
    #[arg(long, group = "protocol")]
    line: bool,

    /// wire: records from a spider to a store; the default for anything else
    #[arg(long, group = "protocol")]
    store: bool,

    /// wire: the answers of a store
    #[arg(long, group = "protocol")]
    answers: bool,

    /// wire: results from a store to a URL server, or the URL server's messages
    #[arg(long, group = "protocol")]
    results: bool,

    /// The URL of the input, or the URL to test
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// robots: the crawler's name
    #[arg(long, value_name = "NAME", default_value = "orbweaver")]
    agent: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum InspectCommand {
    /// The canonical form, SURT key, host and registered domain of each line
    Url,
    /// Whether a robots.txt allows --url, and by which rule
    Robots,
    /// The links of a page
    Links,
    /// The URLs of a sitemap
    Sitemap,
    /// Captured traffic between two daemons, one direction
    Wire,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UrlQuestion {
    href: String,
    base: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RobotsQuestion {
    robots: String,
    agent: String,
    url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinksQuestion {
    html: Option<String>,
    html_base64: Option<String>,
    url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SitemapQuestion {
    body: Option<String>,
    body_base64: Option<String>,
    url: String,
}

impl InspectArgs {
    pub(crate) fn run(self) -> Result<Ending> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let is_wire = matches!(self.what, InspectCommand::Wire);
        if is_wire && self.batch {
            return Err(Fatal::input("wire has no --batch"));
        }
        if self.protocol().is_some() && !is_wire {
            return Err(Fatal::input("a protocol can be named for wire only"));
        }
        if self.batch {
            self.batch(&mut out)?;
        } else {
            self.single(&mut out)?;
        }
        out.flush()?;
        Ok(Ending::Done)
    }

    fn batch(&self, out: &mut dyn Write) -> Result<()> {
        let mut input = std::io::BufReader::new(self.input()?);
        let mut line = Vec::new();
        // Read as bytes: a line that is not UTF-8 gets its answer like any other.
        while input.read_until(b'\n', &mut line)? > 0 {
            let answer = match self.what {
                InspectCommand::Url => ask(&line, |q: UrlQuestion| url(&q.href, q.base.as_deref())),
                InspectCommand::Robots => ask(&line, |q: RobotsQuestion| {
                    robots(q.robots.as_bytes(), &q.agent, &q.url)
                }),
                InspectCommand::Links => ask(&line, |q: LinksQuestion| {
                    links(&bytes(q.html, q.html_base64)?, &q.url)
                }),
                InspectCommand::Sitemap => ask(&line, |q: SitemapQuestion| {
                    sitemap(&bytes(q.body, q.body_base64)?, &q.url)
                }),
                InspectCommand::Wire => return Ok(()),
            };
            writeln!(
                out,
                "{}",
                answer.unwrap_or_else(|error| json!({ "error": error }))
            )?;
            out.flush()?;
            line.clear();
        }
        Ok(())
    }

    fn single(&self, out: &mut dyn Write) -> Result<()> {
        let mut body = Vec::new();
        self.input()?
            .read_to_end(&mut body)
            .context("cannot read the input")?;
        if matches!(self.what, InspectCommand::Wire) {
            let kind = self.protocol().unwrap_or_else(|| wire::Kind::guess(&body));
            return wire::show(&body, kind, out);
        }
        if matches!(self.what, InspectCommand::Url) {
            for line in String::from_utf8_lossy(&body)
                .lines()
                .filter(|line| !line.trim().is_empty())
            {
                let answer = url(line, self.url.as_deref())
                    .unwrap_or_else(|error| json!({ "error": error }));
                writeln!(out, "{answer}")?;
            }
            return Ok(());
        }
        let from = || {
            self.url
                .as_deref()
                .ok_or("give the URL of the input with --url".to_owned())
        };
        let answer = match self.what {
            InspectCommand::Url | InspectCommand::Wire => return Ok(()),
            InspectCommand::Robots => from().and_then(|url| robots(&body, &self.agent, url)),
            InspectCommand::Links => from().and_then(|url| links(&body, url)),
            InspectCommand::Sitemap => {
                sitemap(&body, self.url.as_deref().unwrap_or("http://localhost/"))
            }
        };
        writeln!(out, "{:#}", answer.map_err(Fatal::input)?)?;
        Ok(())
    }

    fn protocol(&self) -> Option<wire::Kind> {
        [
            (self.line, wire::Kind::Line),
            (self.store, wire::Kind::Store),
            (self.answers, wire::Kind::Answers),
            (self.results, wire::Kind::Results),
        ]
        .into_iter()
        .find_map(|(named, kind)| named.then_some(kind))
    }

    fn input(&self) -> Result<Box<dyn Read>> {
        match &self.file {
            Some(path) if path.as_os_str() != "-" => {
                let file = std::fs::File::open(path).map_err(|error| {
                    Fatal::input(format!("cannot read {}: {error}", path.display()))
                })?;
                Ok(Box::new(file))
            }
            _ => Ok(Box::new(std::io::stdin())),
        }
    }
}

fn ask<Q: for<'de> Deserialize<'de>>(
    line: &[u8],
    answer: impl FnOnce(Q) -> Result<Value, String>,
) -> Result<Value, String> {
    let question =
        serde_json::from_slice(line).map_err(|error| format!("not a question: {error}"))?;
    answer(question)
}

fn bytes(text: Option<String>, base64: Option<String>) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => data_encoding::BASE64
            .decode(base64.trim().as_bytes())
            .map_err(|error| format!("not base64: {error}")),
        _ => Err("give the text or its base64 form, one of them".into()),
    }
}

fn canonicalizer() -> Canonicalizer {
    Canonicalizer::new(CanonicalOptions::default())
}

fn parse(text: &str) -> Result<CrawlUrl, String> {
    canonicalizer()
        .parse(text)
        .map_err(|error| format!("`{text}`: {error}"))
}

/// `url` is the reference as a browser resolves it, `canonical` as the crawler keeps it.
fn url(href: &str, base: Option<&str>) -> Result<Value, String> {
    let resolved = match base {
        Some(base) => {
            let base =
                url::Url::parse(base).map_err(|error| format!("the base is no URL: {error}"))?;
            base.join(href)
        }
        None => url::Url::parse(href),
    };
    let resolved = resolved.map_err(|error| error.to_string())?;
    let canonical = canonicalizer()
        .parse(resolved.as_str())
        .map_err(|error| error.to_string())?;
    Ok(json!({
        "url": resolved.as_str(),
        "canonical": canonical.as_str(),
        "surt": surt(&canonical),
        "host": canonical.host(),
        "domain": domain_or_host(canonical.host()),
    }))
}

fn robots(body: &[u8], agent: &str, url: &str) -> Result<Value, String> {
    let url = parse(url)?;
    let limits = Limits::default();
    let rules = Robots::parse(body, agent, limits.robots_max_bytes);
    let delay = rules
        .crawl_delay()
        .map(|delay| delay.min(limits.crawl_delay_cap));
    let verdict = rules.verdict(url.target());
    Ok(json!({
        "allowed": verdict.allowed,
        "rule": verdict.rule.map(|rule| rule.to_string()),
        "crawl_delay": delay.map(|delay| delay.as_secs_f64()),
    }))
}

fn links(html: &[u8], url: &str) -> Result<Value, String> {
    let url = parse(url)?;
    let limits = Limits::default();
    let mut headers = http::HeaderMap::new();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/html"),
    );
    let reading = orbweaver_extract::read(&orbweaver_extract::Page {
        url: &url,
        headers: &headers,
        body: html,
        limits: &limits,
        agent: "orbweaver",
        kind: LinkKind::Seed,
    });
    let page = url::Url::parse(url.as_str()).map_err(|error| error.to_string())?;
    let base = reading
        .base
        .as_deref()
        .and_then(|base| page.join(base).ok())
        .unwrap_or(page);
    let encode = orbweaver_extract::query_encoder(reading.encoding);
    let canonicalizer = canonicalizer();
    let links: Vec<Value> = (reading.links.iter())
        .filter_map(|link| {
            let encoding = encode.as_ref().map(|encode| encode as _);
            let url = canonicalizer.resolve(&base, link.href, encoding).ok()?;
            Some(
                json!({"url": url.as_str(), "kind": link.kind.as_str(), "nofollow": link.nofollow}),
            )
        })
        .collect();
    Ok(json!({ "links": links }))
}

fn sitemap(body: &[u8], url: &str) -> Result<Value, String> {
    let base = url::Url::parse(url).map_err(|error| format!("`{url}`: {error}"))?;
    let canonicalizer = canonicalizer();
    let resolve = |loc: &str| {
        canonicalizer
            .resolve(&base, loc, None)
            .ok()
            .map(|url| url.to_string())
    };
    let read = orbweaver_extract::read_sitemap(body, &Limits::default());
    let urls: Vec<Value> = (read.urls.iter())
        .filter_map(|entry| Some(json!({"url": resolve(&entry.loc)?, "lastmod": entry.lastmod})))
        .collect();
    let sitemaps: Vec<String> = read
        .sitemaps
        .iter()
        .filter_map(|loc| resolve(loc))
        .collect();
    Ok(json!({ "urls": urls, "sitemaps": sitemaps }))
}
