//! The same server as a tower service in other HTTP servers, and with the driver of an example.

#[path = "../../../examples/axum/src/connections.rs"]
mod axum_connections;
#[path = "../../../examples/hyper/src/connections.rs"]
mod connections;
#[path = "../../../examples/mio/src/driver.rs"]
mod driver;

use std::io;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use axum::Router;
use mcp_sansio_conformance_fixture::{Fixture, SERVICE, go_on};
use mcp_sansio_host::{HttpServerOptions, HttpSetup};
use mcp_sansio_http::endpoint::{App, MessageAccess};
use mcp_sansio_tower::{Mcp, MountOptions};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use smol::future::FutureExt as _;
use tower_service::Service as _;

use super::{SEAL, config, fixture, scopes};

fn mcp<T: Future + Send + 'static>(
    port: u16,
    timer: impl Fn(Duration) -> T + Send + Sync + 'static,
) -> io::Result<Mcp<Fixture>> {
    let (config, metadata_url) = config(port)?;
    let options = MountOptions::new(timer).options(HttpServerOptions::new().config(config).seal(&*SEAL)).tick(go_on);
    let options = options.authorize(|_, head| scopes::authorize(head));
    let options = options.permit(move |message| scopes::permit(message, &metadata_url));
    Ok(Mcp::new(SERVICE, fixture(0), options))
}

pub(crate) fn axum(port: u16) -> io::Result<()> {
    let mcp = mcp(port, tokio::time::sleep)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let handle = mcp.handle();
        // Tasks of the suites go on while no stream is open.
        tokio::spawn(mcp.run());
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let app = Router::new().fallback_service(mcp);
        axum_connections::serve(listener, app, axum_connections::signalled(), async {
            handle.stop(Duration::from_secs(5)).await
        })
        .await
    })
}

pub(crate) fn hyper(port: u16) -> io::Result<()> {
    let mcp = mcp(port, smol::Timer::after)?;
    smol::block_on(async {
        smol::spawn(mcp.run()).detach();
        let listener = smol::Async::<TcpListener>::bind(([127, 0, 0, 1], port))?;
        let ended = connections::ended(mcp.handle());
        connections::serve(listener, move |request| mcp.clone().call(request)).or(ended).await
    })
}

pub(crate) fn mio(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let mut setup = HttpSetup::new();
    let (config, metadata_url) = config(port)?;
    setup.options = HttpServerOptions::new().config(config).seal(&*SEAL);
    setup.tick = Some(Box::new(go_on));
    let (mut signals, stopper) = (Signals::new([SIGTERM])?, setup.stopper.clone());
    thread::spawn(move || signals.forever().next().map(|_| stopper.stop()));
    let permit = |message: &MessageAccess<'_>| scopes::permit(message, &metadata_url);
    let mut fixture = fixture(0);
    let app = App::new(&SERVICE, &mut fixture).authorize(&scopes::authorize).permit(&permit);
    driver::serve(listener, setup, app)
}
