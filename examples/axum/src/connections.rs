//! The connections of the server: as `axum::serve` has them, and a client that closes its half after the request gets its answer.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// Serves until `signal` is ready. `last` then waits for the requests in flight; what is left when it is over ends too.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    signal: impl Future<Output = std::io::Result<()>>,
    last: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let connections = GracefulShutdown::new();
    let mut builder = Builder::new();
    builder.half_close(true).timer(TokioTimer::new());
    let mut signal = std::pin::pin!(signal);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            signalled = &mut signal => break signalled?,
        };
        match accepted {
            // An error ends only this connection.
            Ok((socket, _)) => {
                let service = TowerToHyperService::new(app.clone());
                tokio::spawn(connections.watch(builder.serve_connection(TokioIo::new(socket), service)));
            }
            // Such as: no file descriptor is free.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    drop(listener);
    // Hyper waits half a minute for a connection on which no whole request has come.
    let last = async {
        last.await;
        tokio::time::sleep(Duration::from_millis(200)).await; // for the last bytes
    };
    tokio::select! {
        () = connections.shutdown() => {}
        () = last => {}
    }
    Ok(())
}

/// Waits for Ctrl-C or, on Unix, SIGTERM.
pub(crate) async fn signalled() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
