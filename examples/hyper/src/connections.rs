//! The connections of a hyper server on smol.

use std::convert::Infallible;
use std::net::TcpListener;

use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use mcp_sansio_tower::Body;
use smol::Async;
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
