//! The part of an HTTP server without its sockets: late messages, timers and its end.

use std::io::ErrorKind;
use std::task::{Context, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::server::Millis;
use mcp_sansio_http::endpoint::{App, Endpoint, Fleet};
use mcp_sansio_http::host::{HttpHost, HttpSocket};

use super::shutdown::{HttpShutdown, ShutdownStep};
use crate::{HttpServerOptions, LateReceiver, SpareDescriptors, Stopper};

/// The endpoint of an HTTP server.
pub type HttpEndpoint = Endpoint<'static>;

/// The function that is called after each turn of a server.
type Tick<S> = Box<dyn FnMut(&mut App<'_, S>, &mut HttpEndpoint, Millis) -> Option<Millis> + Send>;

/// A function that looks for changes.
type Look<S> = fn(&mut S, &mut HttpEndpoint);

/// An HTTP server while it serves, without its sockets and events. A driver has a loop:
///
/// 1. Wait for events, until [`next`](HttpServing::next) at most, and call [`look_at_clock`](HttpServing::look_at_clock).
/// 2. Give [turns](HttpHost::turn) to the connections whose sockets are ready.
/// 3. While the server [accepts](HttpServing::accepts), accept connections, and [`enter`](HttpServing::enter) each.
/// 4. Call [`turn`](HttpServing::turn), then [`has_ended`](HttpServing::has_ended).
pub struct HttpServing<S: 'static, T> {
    /// The connections.
    pub host: HttpHost<T>,
    /// The descriptors that connections leave free.
    pub spare: SpareDescriptors,
    setup: HttpSetup<S>,
    shutdown: HttpShutdown,
    /// The time to look for changes; `None` while no stream is open.
    look_at: Option<Millis>,
    /// It serves one stream, and no connection will come.
    is_single: bool,
    /// The time to accept connections again, after an error.
    accept_at: Option<Millis>,
    epoch: Millis,
    started: Instant,
    now: Millis,
}

/// The parts of an [`HttpServing`].
pub struct HttpSetup<S: 'static> {
    /// Limits and security.
    pub options: HttpServerOptions,
    /// The channel of late answers.
    pub late: Option<LateReceiver<S>>,
    /// Other processes of the same server.
    pub fleet: Option<&'static mut dyn Fleet>,
    /// Ends the server.
    pub stopper: Stopper,
    /// The longest time of requests in flight when the server is stopped. Default: 5 seconds.
    pub grace: Duration,
    /// A function that is called each period while an event stream is open.
    pub watch: Option<(Duration, Look<S>)>,
    /// A function that is called after each turn, and at the time that the last call returned.
    pub tick: Option<Tick<S>>,
}

/// Some 50 days: long enough, and far from the end of the numbers.
const FOREVER: Millis = u32::MAX as Millis;
/// The time without accepting after an error: the process has no free descriptor.
const ACCEPT_PAUSE: Millis = 100;

impl<S> HttpSetup<S> {
    /// Makes one with the defaults.
    #[must_use]
    pub fn new() -> Self {
        HttpSetup {
            options: HttpServerOptions::new(),
            late: None,
            fleet: None,
            stopper: Stopper::new(),
            grace: Duration::from_secs(5),
            watch: None,
            tick: None,
        }
    }

    /// Begins to serve. `random` fills ids of sessions with secure random bytes. The only client of a server that `is_single`
    /// cannot open another connection, so its connection is not closed for being idle, and the server ends with it.
    pub fn serve<T>(
        mut self,
        is_single: bool,
        app: &mut App<'_, S>,
        random: impl FnMut(&mut [u8]) + Send + 'static,
    ) -> HttpServing<S, T> {
        // A wall clock at the start, and then a monotonic one: a `requestState` may come back to another process.
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis);
        let endpoint = self.options.endpoint();
        let endpoint = match self.fleet.take() {
            Some(fleet) => endpoint.fleet(fleet),
            None => endpoint,
        };
        let mut limits = self.options.host_limits();
        if is_single {
            limits.wire = limits.wire.idle_time(FOREVER);
        }
        let mut host = HttpHost::new(endpoint, limits, random);
        if let Some(late) = &mut self.late {
            // Sessions that other processes have ended get 404 from the first request on.
            while late.give(&mut host.endpoint, app.service, app.state) {}
        }
        HttpServing {
            host,
            spare: SpareDescriptors::of(self.options.spare_descriptors),
            shutdown: HttpShutdown::new(self.grace),
            setup: self,
            look_at: None,
            is_single,
            accept_at: None,
            epoch,
            started: Instant::now(),
            now: epoch,
        }
    }
}

impl<S> Default for HttpSetup<S> {
    fn default() -> Self {
        HttpSetup::new()
    }
}

impl<S, T: HttpSocket> HttpServing<S, T> {
    /// Looks at the clock, and returns the time in milliseconds: since 1970 at the start, and monotonic from then on.
    pub fn look_at_clock(&mut self) -> Millis {
        self.now = self.epoch + self.started.elapsed().as_millis() as Millis;
        self.now
    }

    /// Returns the time of the last look at the clock.
    #[must_use]
    pub const fn now(&self) -> Millis {
        self.now
    }

    /// Gives the connection at this place a turn, at the time of the clock.
    pub fn serve(&mut self, slot: usize, app: &mut App<'_, S>) {
        let now = self.look_at_clock();
        self.host.turn(slot, app, now);
    }

    /// Returns whether the server accepts connections.
    #[must_use]
    pub fn accepts(&self) -> bool {
        let rests = self.accept_at.is_some_and(|at| self.now < at);
        self.host.has_room() && self.shutdown.is_serving() && !rests
    }

    /// Notes that no connection could be accepted. Returns whether another one can be at once.
    pub fn accept_failed(&mut self, error: ErrorKind) -> bool {
        match error {
            ErrorKind::WouldBlock => false,
            ErrorKind::Interrupted | ErrorKind::ConnectionAborted => true,
            // The process has no free descriptor. The listener stays readable, so it is not watched for a while.
            _ => {
                self.accept_at = Some(self.look_at_clock() + ACCEPT_PAUSE);
                false
            }
        }
    }

    /// Takes a new connection. No other one comes while its descriptor is [to be spared](SpareDescriptors::has).
    pub fn enter(&mut self, socket: T, is_spare: bool, app: &mut App<'_, S>) {
        self.host.is_crowded = is_spare;
        let now = self.look_at_clock();
        self.host.enter(socket, app, now);
    }

    /// Does all work that does not begin with a socket. Returns the time of the next turn, if there is something to do. The task of
    /// `cx` is woken by late messages.
    pub fn turn(&mut self, app: &mut App<'_, S>, cx: &mut Context<'_>) -> Option<Millis> {
        let mut now = self.look_at_clock();
        let (more, mut asks) = self.hear(app, cx);
        self.host.expire(app, now);
        self.look(app);
        let mut wake = more.then_some(now);
        if let Some(tick) = &mut self.setup.tick {
            // Each look at the clock is 1 % of the instructions of a `tools/call`.
            now = self.epoch + self.started.elapsed().as_millis() as Millis;
            wake = wake.into_iter().chain(tick(app, &mut self.host.endpoint, now)).min();
            // It may have learned of decisions.
            asks = true;
        }
        if asks {
            self.host.ask_again(app, now);
        }
        wake.into_iter().chain(self.host.write_streams(app, now)).chain(self.host.serve_parked(app, now)).min()
    }

    /// Takes late messages. Returns whether there may be more, and whether the application can decide about requests.
    fn hear(&mut self, app: &mut App<'_, S>, cx: &mut Context<'_>) -> (bool, bool) {
        let Some(late) = &mut self.setup.late else { return (false, false) };
        late.give(&mut self.host.endpoint, app.service, app.state);
        (late.poll_ready(cx).is_ready(), late.take_decided())
    }

    /// Looks for changes, if it is time.
    fn look(&mut self, app: &mut App<'_, S>) {
        let Some((period, look)) = self.setup.watch else { return };
        let endpoint = &mut self.host.endpoint;
        if self.look_at.take_if(|at| *at <= self.now).is_some() {
            look(app.state, endpoint);
        }
        let period = period.as_millis().try_into().unwrap_or(Millis::MAX);
        let (_, _, streams) = endpoint.load();
        self.look_at = (streams > 0).then(|| self.look_at.unwrap_or(self.now.saturating_add(period)));
    }

    /// Takes the steps to the end of the server. Returns whether it has ended. A stop wakes the task of `waker`; then the `listener`
    /// is dropped before any connection closes.
    pub fn has_ended<L>(&mut self, app: &mut App<'_, S>, waker: &Waker, listener: &mut Option<L>) -> bool {
        // A server over one stream ends with it.
        if self.is_single && self.host.open() == 0 {
            return true;
        }
        let stops = self.setup.stopper.count(&Context::from_waker(waker));
        if stops == 0 {
            return false;
        }
        loop {
            match self.shutdown.step(stops, self.host.is_drained(), Instant::now()) {
                None => return false,
                Some(ShutdownStep::Drain) => {
                    *listener = None;
                    self.host.drain(app, self.now);
                }
                Some(ShutdownStep::ShutDown) => self.host.shut_down(app, self.now),
                Some(ShutdownStep::End) => return true,
            }
        }
    }

    /// Returns the time until which there is nothing to do, if there is one; `wake` is the time that [`turn`](HttpServing::turn)
    /// has returned. The time that its handlers took is not looked at: a deadline may come later by it.
    #[must_use]
    pub fn next(&self, wake: Option<Millis>) -> Option<Millis> {
        let end = self.shutdown.deadline().map(|at| {
            // A millisecond more: it must be over then.
            self.now + at.saturating_duration_since(Instant::now()).as_millis() as Millis + 1
        });
        let accept = self.accept_at.filter(|at| *at > self.now);
        let own = wake.into_iter().chain(self.look_at).chain(end).chain(accept);
        own.chain(self.host.next_deadline(self.now)).min()
    }
}

#[cfg(test)]
mod tests;
