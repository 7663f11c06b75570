//! The connections of a hyper server on smol.

use std::convert::Infallible;
use std::io::Error;
use std::net::TcpListener;
use std::time::Duration;

use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use mcp_sansio_tower::{Body, Handle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use smol::{Async, Timer};
use smol_hyper::rt::FuturesIo;

/// Accepts connections for ever. `handle` answers each request.
pub(crate) async fn serve<F>(
    listener: Async<TcpListener>,
    handle: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) -> std::io::Result<()>
where
    F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
{
    loop {
        let (socket, _) = listener.accept().await?;
        let connection =
            http1::Builder::new().half_close(true).serve_connection(FuturesIo::new(socket), service_fn(handle.clone()));
        // An error ends only this connection.
        smol::spawn(async { drop(connection.await) }).detach();
    }
}

/// Waits for Ctrl-C or SIGTERM, and then for the calls in flight, five seconds at most.
pub(crate) async fn ended<S: Send>(handle: Handle<S>) -> std::io::Result<()> {
    let (stop, stopped) = smol::channel::bounded(1);
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || signals.forever().next().map(|_| stop.try_send(())));
    stopped.recv().await.map_err(Error::other)?;
    handle.stop(Duration::from_secs(5)).await;
    Timer::after(Duration::from_millis(200)).await; // for the last bytes
    Ok(())
}
