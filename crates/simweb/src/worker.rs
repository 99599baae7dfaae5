//! The threads: each has a runtime and a listener of its own, so that they share nothing but counters.
//!
//! Sockets are bound inside the threads, because a runtime may neither be driven nor dropped in the
//! async code of a caller. A thread reports its ports, waits for the web, and serves it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::{Served, SimConfig, SimError, control, dns, serve};

/// Running threads; they end when this is dropped.
pub(crate) struct Workers {
    pub(crate) control: SocketAddr,
    pub(crate) dns: Option<SocketAddr>,
    threads: Vec<Thread>,
}

/// Threads that listen and wait for the web.
pub(crate) struct Bound {
    pub(crate) http_port: u16,
    control: SocketAddr,
    dns: Option<SocketAddr>,
    threads: Vec<Waiting>,
}

impl Drop for Workers {
    /// Tells all threads to stop before any of them is waited for.
    fn drop(&mut self) {
        for thread in &mut self.threads {
            drop(thread.stop.take());
        }
    }
}

struct Waiting {
    web: oneshot::Sender<Arc<Served>>,
    thread: Thread,
}

struct Thread {
    /// Dropping it stops the thread.
    stop: Option<oneshot::Sender<()>>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has said so already.
            let _ = handle.join();
        }
    }
}

/// What one thread listens on.
struct Sockets {
    http: TcpListener,
    /// Only in the first thread.
    control: Option<TcpListener>,
    /// Only in the first thread, when hosts have names.
    dns: Option<UdpSocket>,
}

/// The addresses of a thread's sockets.
struct Addresses {
    http: SocketAddr,
    control: Option<SocketAddr>,
    dns: Option<SocketAddr>,
}

/// Starts the threads and listens.
pub(crate) fn bind(config: &SimConfig) -> Result<Bound, SimError> {
    let (first, addresses) = start(config, true)?;
    let mut threads = vec![first];
    let http_port = addresses.http.port();
    let with_port = SimConfig {
        port: http_port,
        ..config.clone()
    };
    for _ in 1..config.threads {
        threads.push(start(&with_port, false)?.0);
    }
    Ok(Bound {
        http_port,
        control: addresses.control.unwrap_or(addresses.http),
        dns: addresses.dns,
        threads,
    })
}

impl Bound {
    /// Gives the threads their web.
    pub(crate) fn serve(self, shared: &Arc<Served>) -> Workers {
        let threads = self.threads.into_iter().map(|waiting| {
            // The thread waits for nothing else, so it is there to take it.
            let _ = waiting.web.send(Arc::clone(shared));
            waiting.thread
        });
        Workers {
            control: self.control,
            dns: self.dns,
            threads: threads.collect(),
        }
    }
}

fn start(config: &SimConfig, first: bool) -> Result<(Waiting, Addresses), SimError> {
    let (report, reported) = mpsc::sync_channel(1);
    let (web, given) = oneshot::channel();
    let (stop, stopped) = oneshot::channel();
    let config = config.clone();
    let body = move || run(&config, first, &report, given, stopped);
    let handle = thread::Builder::new()
        .name("simweb".to_owned())
        .spawn(body)
        .map_err(SimError::Thread)?;
    let thread = Thread {
        stop: Some(stop),
        handle: Some(handle),
    };
    let gone = || {
        SimError::Thread(io::Error::other(
            "the thread ended before it began to serve",
        ))
    };
    let addresses = reported.recv().map_err(|_| gone())??;
    Ok((Waiting { web, thread }, addresses))
}

fn run(
    config: &SimConfig,
    first: bool,
    report: &mpsc::SyncSender<Result<Addresses, SimError>>,
    web: oneshot::Receiver<Arc<Served>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => {
            let _ = report.send(Err(SimError::Thread(source)));
            return;
        }
    };
    runtime.block_on(async {
        let bound = listen(config, first).await;
        let (sockets, addresses) = match bound {
            Ok(both) => both,
            Err(error) => {
                let _ = report.send(Err(error));
                return;
            }
        };
        if report.send(Ok(addresses)).is_err() {
            return;
        }
        let Ok(shared) = web.await else {
            return;
        };
        tokio::select! {
            _ = stopped => {}
            () = everything(sockets, shared) => {}
        }
    });
}

async fn listen(config: &SimConfig, first: bool) -> Result<(Sockets, Addresses), SimError> {
    let at = |port| move |source| SimError::Listen { port, source };
    let http = serve::listen(config.port, config.threads > 1).map_err(at(config.port))?;
    let mut sockets = Sockets {
        http,
        control: None,
        dns: None,
    };
    if first {
        let port = config.control_port;
        sockets.control = Some(control::listen(port).await.map_err(at(port))?);
    }
    if first && config.ips > 0 {
        let port = config.dns_port;
        sockets.dns = Some(dns::listen(port).await.map_err(at(port))?);
    }
    let addresses = sockets.addresses().map_err(at(config.port))?;
    Ok((sockets, addresses))
}

impl Sockets {
    fn addresses(&self) -> io::Result<Addresses> {
        let control = self.control.as_ref().map(TcpListener::local_addr);
        let dns = self.dns.as_ref().map(UdpSocket::local_addr);
        Ok(Addresses {
            http: self.http.local_addr()?,
            control: control.transpose()?,
            dns: dns.transpose()?,
        })
    }
}

/// Never ends; dropping it closes the sockets, and dropping the runtime the connections.
async fn everything(sockets: Sockets, shared: Arc<Served>) {
    if let Some(listener) = sockets.control {
        tokio::spawn(control::accept(listener, Arc::clone(&shared)));
    }
    if let Some(socket) = sockets.dns {
        tokio::spawn(dns::serve(socket, Arc::clone(&shared)));
    }
    serve::accept(sockets.http, shared).await;
}
