//! The URL server of a run, with the ends of its queues.

use std::sync::Arc;

use tokio::sync::mpsc;

use orbweaver_model::{Clock, Order, TransId};
use orbweaver_spider::{Resolver, ResolverOptions};
use orbweaver_urlserver::{Handle, Links, Notice, UrlServer};

use super::opened::Opened;
use super::options::urlserver_options;
use super::start::Start;
use crate::addresses::Addresses;
use crate::error::Result;
use crate::machine::Descriptors;

/// The URL server at work, and the ends of its queues.
pub(super) struct Serving {
    pub(super) handle: Handle,
    pub(super) task: tokio::task::JoinHandle<()>,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) give_up: mpsc::Receiver<TransId>,
    pub(super) notices: mpsc::Receiver<Notice>,
}

impl Serving {
    pub(super) fn start(start: &Start, opened: &Opened, descriptors: Descriptors) -> Result<Self> {
        let settings = &start.settings;
        let (to_orders, orders) = mpsc::channel(settings.concurrency);
        let (to_notices, notices) = mpsc::channel(1024);
        let (to_give_up, give_up) = mpsc::channel(settings.concurrency);
        let resolver_options = ResolverOptions {
            server: settings.resolver,
            max_lookups: descriptors.lookups,
            ..ResolverOptions::default()
        };
        let resolver = Arc::new(Addresses {
            resolver: Resolver::new(resolver_options, opened.policy.clone()),
            policy: opened.policy.clone(),
        });
        let links = Links {
            orders: to_orders,
            give_up: Some(to_give_up),
            notices: to_notices,
            resolver,
            clock: Clock::clone(&opened.clock),
        };
        let docs = &opened.docs;
        let options = urlserver_options(settings, docs.resumed(), &docs.reader())?;
        let (handle, task) = UrlServer::spawn(options, links)?;
        Ok(Self {
            handle,
            task,
            orders,
            give_up,
            notices,
        })
    }
}
