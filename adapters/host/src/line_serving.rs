//! A server on lines: what every driver decides about it, without its reader and writer.

use std::task::Context;
use std::time::{Duration, Instant};

use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{MessageLimits, Millis, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::Out;

use crate::{LateReceiver, Stopper};

/// A function that looks for changes.
type Look<S> = fn(&mut S, &mut Server<'_>);

/// A function that is called after each turn.
type Tick<S> = Box<dyn FnMut(&Service<'_, S>, &mut S, &mut Server<'_>, &mut dyn Out, Millis) -> Option<Millis> + Send>;

/// A server on lines without its reader and writer: its settings, its timers, and its way to the end. The macro
/// [`line_server!`](crate::line_server) makes the builder.
pub struct LineServing<S: 'static> {
    /// The limits of messages, of requests to the client and of subscriptions.
    pub limits: MessageLimits,
    /// The limit of bytes that wait for the writer, for a driver that keeps them. Default: 1 MiB.
    pub backlog: usize,
    /// The time for late answers after the end of the input. Default: 1.5 seconds.
    pub grace: Duration,
    /// The late answers.
    pub late: Option<LateReceiver<S>>,
    /// A function that looks for changes from time to time.
    pub watch: Option<(Duration, Look<S>)>,
    /// A function that is called after each turn.
    pub tick: Option<Tick<S>>,
    /// Ends the server.
    pub stopper: Stopper,
    look_at: Option<Instant>,
    tick_at: Option<Instant>,
    /// The input has ended: late answers are waited for until this time.
    patience: Option<Instant>,
    abandoned: bool,
    started: Instant,
}

impl<S> LineServing<S> {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Self {
        LineServing {
            limits: MessageLimits::default(),
            backlog: 1 << 20,
            grace: Duration::from_millis(1500),
            late: None,
            watch: None,
            tick: None,
            stopper: Stopper::new(),
            look_at: None,
            tick_at: None,
            patience: None,
            abandoned: false,
            started: Instant::now(),
        }
    }

    /// Does what is due. Call it before each [`LineServer::run`].
    pub fn turn<O: Out>(&mut self, lines: &mut LineServer<'_, O>, state: &mut S) {
        let now = Instant::now();
        lines.server.expire(now.saturating_duration_since(self.started).as_millis() as Millis);
        self.abandoned |= self.patience.is_some_and(|at| at <= now);
        if let (Some((_, look)), Some(_)) = (&self.watch, self.look_at.take_if(|at| *at <= now)) {
            look(state, &mut lines.server);
        }
    }

    /// Calls the function of each turn. Call it after [`LineServer::run`] and the late messages.
    pub fn tick<O: Out>(&mut self, service: &Service<'_, S>, lines: &mut LineServer<'_, O>, state: &mut S) {
        let Some(tick) = &mut self.tick else { return };
        let (server, out) = (&mut lines.server, &mut lines.out);
        let next = tick(service, state, server, out, self.started.elapsed().as_millis() as Millis);
        self.tick_at = next.and_then(|at| self.started.checked_add(Duration::from_millis(at)));
    }

    /// Ends the input if the server was stopped, and abandons its requests if it was stopped twice. Returns whether that is new.
    /// The next stop wakes the task.
    pub fn stop<O: Out>(&mut self, lines: &mut LineServer<'_, O>, cx: &Context<'_>) -> bool {
        let stops = self.stopper.count(cx);
        let is_new = stops > 0 && !self.is_ending() || stops > 1 && !self.abandoned;
        if stops > 0 {
            self.end_input(lines);
        }
        self.abandoned |= stops > 1;
        is_new
    }

    /// Notes the end of the input. From now on only answers are to be written.
    pub fn end_input<O: Out>(&mut self, lines: &mut LineServer<'_, O>) {
        lines.end_of_input();
        self.patience.get_or_insert_with(|| Instant::now() + self.grace);
    }

    /// Returns whether the input has ended.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.patience.is_some()
    }

    /// Returns whether the requests that are left are to be [abandoned](LineServer::abandon).
    #[must_use]
    pub const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Returns the time of the next [`turn`](LineServing::turn).
    pub fn next_deadline<O: Out>(&mut self, lines: &mut LineServer<'_, O>) -> Option<Instant> {
        let server = &mut lines.server;
        let deadline = server.next_deadline().map(|at| self.started + Duration::from_millis(at));
        let watch = self.watch.as_ref().filter(|_| server.has_subscribers());
        self.look_at = watch.map(|(period, _)| self.look_at.unwrap_or_else(|| Instant::now() + *period));
        let patience = self.patience.filter(|_| !self.abandoned);
        [deadline, self.look_at, self.tick_at, patience].into_iter().flatten().min()
    }
}

impl<S> Default for LineServing<S> {
    fn default() -> Self {
        LineServing::new()
    }
}

mcp_sansio::debug_fields!(impl<S> for LineServing<S> { limits, backlog, grace });

/// Makes the `Serve` of a driver: its struct with the documentation that is given, and all methods but those that serve.
///
/// It is a macro because the methods of a type are those of its own crate, and serving is a future in one driver and a call in
/// the other.
#[macro_export]
macro_rules! line_server {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        #[must_use = "call `stdio` or `over`"]
        #[derive(Debug)]
        pub struct Serve<'s, 't, S: 'static> {
            service: &'s $crate::mcp_sansio::service::Service<'t, S>,
            serving: $crate::LineServing<S>,
        }

        impl<'s, 't, S> Serve<'s, 't, S> {
            /// Makes a server of `service`, with limits for a host.
            pub fn new(service: &'s $crate::mcp_sansio::service::Service<'t, S>) -> Self {
                Serve { service, serving: $crate::LineServing::new() }
            }

            /// Sets limits of messages, of requests to the client and of subscriptions.
            pub fn limits(mut self, limits: $crate::mcp_sansio::server::MessageLimits) -> Self {
                self.serving.limits = limits;
                self
            }

            /// Sets how long the server waits for late answers after the end of the input. Default: 1.5 seconds, because some
            /// hosts kill a server 2 seconds after they close its stdin. Meanwhile it writes only answers: no progress, log
            /// messages or changes.
            pub fn grace(mut self, grace: ::std::time::Duration) -> Self {
                self.serving.grace = grace;
                self
            }

            /// Sets the channel of late answers, see [`channel`](crate::channel).
            pub fn late(mut self, late: $crate::LateReceiver<S>) -> Self {
                self.serving.late = Some(late);
                self
            }

            /// Calls `look` each `period` while a client is subscribed to something; it can
            /// [`publish`](mcp_sansio::server::Server::publish) changes.
            pub fn watch(
                mut self,
                period: ::std::time::Duration,
                look: fn(&mut S, &mut $crate::mcp_sansio::server::Server<'_>),
            ) -> Self {
                self.serving.watch = Some((period, look));
                self
            }

            /// Calls `tick` after each turn of the server with the time in milliseconds since `new`, and at the time that the last call
            /// returned. It may answer and publish. For work that [`late`](Serve::late) and [`watch`](Serve::watch) do not cover.
            pub fn tick(
                mut self,
                tick: impl FnMut(
                    &$crate::mcp_sansio::service::Service<'_, S>,
                    &mut S,
                    &mut $crate::mcp_sansio::server::Server<'_>,
                    &mut dyn $crate::mcp_sansio::sink::Out,
                    $crate::mcp_sansio::server::Millis,
                ) -> Option<$crate::mcp_sansio::server::Millis>
                + Send
                + 'static,
            ) -> Self {
                self.serving.tick = Some(Box::new(tick));
                self
            }

            /// Returns a handle that stops the server as the end of its input does: late answers have the time of
            /// [`grace`](Serve::grace), and a second stop ends it.
            #[must_use]
            pub fn stopper(&self) -> $crate::Stopper {
                self.serving.stopper.clone()
            }
        }
    };
}
