//! Work on a mount from outside, and its end.

use std::sync::Weak;
use std::time::Duration;

use mcp_sansio::server::Millis;
use mcp_sansio_http::endpoint::{App, Endpoint};

use crate::shared::{Shared, SharedServer};

/// The time between two looks of a [`stop`](Handle::stop) for requests in flight.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// A handle to a mount, for its end and for work that a [`LateSender`](crate::LateSender) does not cover. It does not keep the
/// mount alive. When the mount is gone, all calls do nothing. No call waits: where a handler runs at that moment, the work
/// is done right after it.
pub struct Handle<S: 'static>(pub(crate) Weak<Shared<S>>);

impl<S: Send> Handle<S> {
    /// Runs a function with the endpoint and the state, under the lock of the mount, with the time in milliseconds. For work
    /// that the other calls do not cover.
    pub fn with(&self, work: impl FnOnce(&mut Endpoint<'static>, &mut App<'_, S>, Millis) + Send + 'static) {
        self.submit(move |server| {
            let now = server.now;
            let (endpoint, mut app) = server.parts();
            work(endpoint, &mut app, now);
        });
    }

    /// Begins an end in order, at once: listens and streams of sessions end, further requests get 503, and requests in flight
    /// may finish; see [`Endpoint::drain`]. The future waits until they have, for `grace` at most, and then
    /// [shuts down](Handle::shut_down) what is left. Spawn it, and let the HTTP server begin its own graceful shutdown, which waits
    /// for the streams that are open:
    ///
    /// ```ignore
    /// let handle = mcp.handle();
    /// let stop = async move {
    ///     let _ = tokio::signal::ctrl_c().await;
    ///     tokio::spawn(handle.stop(Duration::from_secs(5)));
    /// };
    /// axum::serve(listener, Router::new().fallback_service(mcp)).with_graceful_shutdown(stop).await
    /// ```
    ///
    /// A client that has opened a connection and sent no whole request holds up a graceful shutdown of hyper, and with it of axum:
    /// `examples/axum` waits for such a connection no longer than for the calls.
    #[must_use = "spawn it: it ends what takes longer than `grace`"]
    pub fn stop(&self, grace: Duration) -> impl Future<Output = ()> + Send + 'static {
        self.submit(|server| {
            let (endpoint, mut app) = server.parts();
            endpoint.drain(&mut app);
        });
        let handle = self.clone();
        let begun = self.0.upgrade().map_or(0, |shared| shared.now());
        let end = begun.saturating_add(Millis::try_from(grace.as_millis()).unwrap_or(Millis::MAX));
        async move {
            while let Some(shared) = handle.0.upgrade().filter(|shared| shared.is_busy()) {
                let left = Duration::from_millis(end.saturating_sub(shared.now()));
                if left.is_zero() {
                    break;
                }
                let sleep = (shared.timer)(left.min(STOP_CHECK));
                drop(shared);
                sleep.await;
            }
            handle.shut_down();
        }
    }

    /// Ends all at once: listens end, open requests get an error, event streams end after what was written to them,
    /// and further requests get 503. Call it before the graceful shutdown of the HTTP server, which waits for open streams;
    /// [`stop`](Handle::stop) lets requests in flight finish before.
    pub fn shut_down(&self) {
        self.submit(|server| {
            *server.closing = true;
            server.endpoint.shut_down();
        });
    }

    fn submit(&self, job: impl FnOnce(&mut SharedServer<'_, S>) + Send + 'static) {
        if let Some(shared) = self.0.upgrade() {
            shared.submit(Box::new(job));
        }
    }
}

impl<S> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Handle(Weak::clone(&self.0))
    }
}

mcp_sansio::debug_fields!(impl<S> for Handle<S> {});
