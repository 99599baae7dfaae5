//! The bare client: every page of a list over connections that stay open, nothing read. No crawler that
//! uses this HTTP library on this machine can be cheaper.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use tokio::task::JoinSet;
use url::Url;

use crate::client;
use crate::contest::{CONCURRENCY, PER_HOST};
use crate::sim::Control;

/// A share of a host's pages, fetched one after the other.
struct Share {
    address: SocketAddr,
    authority: String,
    targets: Vec<String>,
}

/// Fetches every page that the simulated web at this control address has.
pub(crate) async fn fetch_all(control: SocketAddr) -> Result<()> {
    let mut hosts: BTreeMap<String, Vec<Url>> = BTreeMap::new();
    for line in Control::at(control).lines("/pages")? {
        let url = Url::parse(&line)?;
        hosts.entry(authority(&url)).or_default().push(url);
    }
    for (authority, urls) in &hosts {
        let mut connection = client::connect(address(urls)?).await?;
        let answer = client::get(&mut connection, authority, "/robots.txt").await?;
        answer.into_body().collect().await?;
    }
    let shares = Arc::new(Mutex::new(shares(hosts)?));
    let mut lanes = JoinSet::new();
    for _ in 0..CONCURRENCY {
        lanes.spawn(lane(Arc::clone(&shares)));
    }
    while let Some(ended) = lanes.join_next().await {
        ended??;
    }
    Ok(())
}

/// Few hosts are asked over several connections each, many over one.
fn shares(hosts: BTreeMap<String, Vec<Url>>) -> Result<VecDeque<Share>> {
    let each = (CONCURRENCY / hosts.len().max(1)).clamp(1, PER_HOST);
    let mut shares = VecDeque::new();
    for (authority, urls) in hosts {
        for part in urls.chunks(urls.len().div_ceil(each)) {
            let targets = part.iter().map(target);
            shares.push_back(Share {
                address: address(part)?,
                authority: authority.clone(),
                targets: targets.collect(),
            });
        }
    }
    Ok(shares)
}

async fn lane(shares: Arc<Mutex<VecDeque<Share>>>) -> Result<()> {
    let next = || {
        shares
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    while let Some(share) = next() {
        let mut connection = client::connect(share.address).await?;
        for target in &share.targets {
            let answer = client::get(&mut connection, &share.authority, target).await?;
            ensure!(answer.status() == 200, "{target}: {}", answer.status());
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                frame?;
            }
        }
    }
    Ok(())
}

/// Host and port, as the Host header has them.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Path and query, as the request line has them.
pub(crate) fn target(url: &Url) -> String {
    url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
}

fn address(urls: &[Url]) -> Result<SocketAddr> {
    let url = urls.first().context("a host without pages")?;
    let found = url.socket_addrs(|| None)?;
    found.first().copied().context("no address")
}
