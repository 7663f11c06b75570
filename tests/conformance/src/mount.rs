//! The same server as a tower service in axum.

use std::io;

use axum::Router;
use mcp_sansio_conformance_fixture::{SERVICE, go_on};
use mcp_sansio_tower::{Mcp, MountOptions};
use tokio::signal::unix::{SignalKind, signal};

use super::{CONFIG, SEAL, fixture};

pub(crate) fn serve(port: u16) -> io::Result<()> {
    let options = MountOptions::new(tokio::time::sleep).config(CONFIG).seal(&*SEAL).tick(go_on);
    let mcp = Mcp::new(SERVICE, fixture(), options);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let (handle, mut ended) = (mcp.handle(), signal(SignalKind::terminate())?);
        // Tasks of the suites go on while no stream is open.
        tokio::spawn(mcp.run());
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let stop = async move {
            ended.recv().await;
            handle.shut_down();
        };
        axum::serve(listener, Router::new().fallback_service(mcp)).with_graceful_shutdown(stop).await
    })
}
