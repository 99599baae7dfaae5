//! A web that misbehaves, on loopback: framing, time, size, redirects, encodings, charsets, documents,
//! traps, robots.txt, Retry-After, cookies, TLS, DNS and connections, each in every way we know.
//!
//! Every case has a host of its own, so that cases do not meet. Each says what its server does and what
//! a good crawler makes of it; the server counts what it sees, and `HostileWeb::faults` holds the two
//! against each other. The cases expect a visitor that keeps at most a few megabytes of a body, asks
//! twice for what may pass, and at most a hundred pages of a host. Addresses outside of 127.90.0.0/16
//! stand for what a crawler must not reach.

mod case;
mod cases;
mod identity;
mod names;
mod script;
mod serve;
mod tally;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

pub use case::{Case, Kind};
pub use tally::Visits;

use crate::SimError;
use case::Door;
use serve::{Listening, Ports};
use tally::CaseCounts;

/// A hostile web that is being served, until this is dropped.
pub struct HostileWeb {
    cases: Arc<[Case]>,
    tally: Arc<CaseCounts>,
    ports: Ports,
    dns: SocketAddr,
    issuer: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HostileWeb {
    /// The network of all hosts, to be allowed; everything else on loopback is to be left alone.
    pub const NETWORK: &'static str = "127.90.0.0/16";

    /// The network of hosts that have nothing but a body without end: 127.91.0.0/16.
    pub const ENDLESS_NETWORK: &'static str = "127.91.0.0/16";

    /// Starts to serve, on ports that are free.
    pub fn start() -> Result<Self, SimError> {
        let cases: Arc<[Case]> = cases::all().into();
        let tally = Arc::new(CaseCounts::new(cases.len()));
        let identities = identity::Identities::new(&cases)?;
        let issuer = identities.issuer().to_owned();
        let (report, reported) = std::sync::mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let (own_cases, own_tally) = (Arc::clone(&cases), Arc::clone(&tally));
        let thread = thread::Builder::new()
            .name("hostile".to_owned())
            .spawn(move || {
                let run = async {
                    let listening = Listening::bind(own_cases, own_tally, identities).await;
                    match listening {
                        Err(error) => drop(report.send(Err(error))),
                        Ok(listening) => {
                            let addresses = (listening.ports(), listening.dns());
                            if report.send(Ok(addresses)).is_ok() {
                                tokio::select! {
                                    _ = stopped => {}
                                    () = listening.serve() => {}
                                }
                            }
                        }
                    }
                };
                match tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()
                {
                    Ok(runtime) => {
                        runtime.block_on(run);
                        // Connections may be in the middle of an endless answer.
                        runtime.shutdown_background();
                    }
                    // The channel is dropped, which says enough.
                    Err(_) => drop(run),
                }
            })
            .map_err(SimError::Thread)?;
        let gone = |_| SimError::Thread(std::io::Error::other("the thread ended at once"));
        let (ports, dns) = reported.recv().map_err(gone)??;
        Ok(Self {
            cases,
            tally,
            ports,
            dns,
            issuer,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Every case.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The URL that a crawl of this case begins with.
    pub fn url(&self, case: &Case) -> String {
        let ip = case.ip();
        match case.door {
            Door::Plain => format!("http://{ip}:{}/", self.ports.plain),
            Door::Named => format!("http://{}:{}/", case.host_name(), self.ports.plain),
            Door::Tls(_) => format!("https://{ip}:{}/", self.ports.tls),
            Door::Refused => format!("http://{ip}:{}/", self.ports.closed),
        }
    }

    /// The URL of a host that has nothing but a body without end, encoded if `encoding` says so:
    /// `plain`, `gzip`, `zstd` or `br`.
    pub fn endless_url(&self, host: u16, encoding: &str) -> String {
        let [high, low] = host.to_be_bytes();
        format!("http://127.91.{high}.{low}:{}/{encoding}", self.ports.plain)
    }

    /// The name server.
    pub fn dns_addr(&self) -> SocketAddr {
        self.dns
    }

    /// The certificate authority to be trusted, in PEM form.
    pub fn issuer_pem(&self) -> &str {
        &self.issuer
    }

    /// What was seen of the visitors of a case.
    pub fn visits(&self, case: &Case) -> Visits {
        let number = self
            .cases
            .iter()
            .position(|other| (other.kind, other.number) == (case.kind, case.number));
        number
            .map(|number| self.tally.visits(number))
            .unwrap_or_default()
    }

    /// What no visitor may do, whatever the case: connections to addresses that stand for others, and
    /// requests with something in them that does not belong there.
    pub fn trespasses(&self) -> Vec<String> {
        self.tally.trespasses()
    }

    /// Bodies without end that are being sent now, and that were at most at once.
    pub fn endless_now_and_most(&self) -> (u64, u64) {
        self.tally.endless()
    }

    /// A sentence for each thing that went wrong with a case, given the word that was recorded for its
    /// URL; nothing when all is well.
    pub fn faults(&self, case: &Case, recorded: Option<&str>) -> Vec<String> {
        let visits = self.visits(case);
        let mut faults = Vec::new();
        match recorded {
            None => faults.push("nothing was recorded".to_owned()),
            Some(class) if !case.expect.contains(&class) => {
                faults.push(format!(
                    "{class} was recorded, not {}",
                    case.expect.join(" or ")
                ));
            }
            Some(_) => {}
        }
        if visits.requests > case.max_requests {
            let (made, most) = (visits.requests, case.max_requests);
            faults.push(format!(
                "{made} requests, more than {most}: {:?}",
                visits.targets
            ));
        }
        // A robots.txt that is unavailable is asked for more often, and each connection has its buffers.
        let most = (case.max_bytes / 4).saturating_mul(visits.connections.max(4));
        if visits.bytes > most {
            faults.push(format!("{} bytes, more than {most}", visits.bytes));
        }
        let asked = |target: &str| visits.targets.contains_key(target);
        if let Some(target) = case.leads_to.filter(|target| !asked(target)) {
            faults.push(format!("{target} was not asked for: {:?}", visits.targets));
        }
        if let Some(target) = case.never.filter(|target| asked(target)) {
            faults.push(format!("{target} was asked for"));
        }
        let (kind, name) = (case.kind.as_str(), case.name);
        let named = |fault| format!("{kind}/{name} ({}): {fault}", case.does);
        faults.into_iter().map(named).collect()
    }
}

impl Drop for HostileWeb {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}
