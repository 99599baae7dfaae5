//! The smallest HTTP client that both the bare client and the naive loop can stand on: one hyper
//! connection at a time, kept open as long as the server does.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// An open connection.
pub(crate) type Connection = SendRequest<Empty<Bytes>>;

/// Runs one of the clients to its end on a single thread: that is the cheapest way to run it, and it
/// leaves the other core to the server.
pub(crate) fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?
        .block_on(work)
}

/// Connects, and leaves the connection to run by itself.
pub(crate) async fn connect(to: SocketAddr) -> Result<Connection> {
    let stream = TcpStream::connect(to)
        .await
        .with_context(|| format!("cannot connect to {to}"))?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // An end of the connection shows at the sender.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// Asks for a path; the body is still to be read.
pub(crate) async fn get(
    connection: &mut Connection,
    authority: &str,
    target: &str,
) -> Result<Response<Incoming>> {
    let request = Request::get(target)
        .header(HOST, authority)
        .header(USER_AGENT, "orbweaver-bench/0.1")
        .body(Empty::new())?;
    connection.ready().await?;
    Ok(connection.send_request(request).await?)
}
