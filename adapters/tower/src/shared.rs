//! The endpoint with its state behind one lock, and the turns that run under it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::request::Parts;
use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
use mcp_sansio_host::{HttpServerOptions, LateReceiver};
use mcp_sansio_http::endpoint::{Access, App, Endpoint, RequestHead, StreamId, StreamStatus};
use mcp_sansio_http::host::BodyBuffer;

use crate::body::Mount;
use crate::keeper::Keeper;
use crate::options::Permit;
use crate::options::{Authorize, Clock, MountOptions, Principal, Random, Sleep, Tick, Timer};
use crate::waits::Waits;

/// The time before an overdue deadline is looked at again: it waits for something else, like a full socket.
const OVERDUE: Millis = 500;
/// The longest sleep; no timer has to represent more.
const DAY: Millis = 86_400_000;

/// Work that comes from outside of a turn. It never waits for the lock, so handlers may give it too.
pub(crate) type Job<S> = Box<dyn FnOnce(&mut SharedServer<'_, S>) + Send>;

/// The part of a mount that all its clones share.
pub(crate) struct Shared<S: 'static> {
    inner: Mutex<Inner<S>>,
    jobs: Mutex<Vec<Job<S>>>,
    /// Late messages have come that no turn has looked for.
    called: AtomicBool,
    waker: Waker,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) timer: Timer,
    clock: Option<Clock>,
    epoch: Millis,
    started: Instant,
    pub(crate) random: Random,
    authorize: Option<Authorize>,
    principal: Option<Principal>,
    pub(crate) permit: Option<Permit>,
    pub(crate) options: HttpServerOptions,
    /// The bytes of bodies that were read and not handled.
    pub(crate) reading: AtomicUsize,
    /// The bytes of answers that were made and not sent; those of event streams are counted in the endpoint.
    pub(crate) unsent: Arc<AtomicUsize>,
}

struct Inner<S: 'static> {
    endpoint: Endpoint<'static>,
    service: Service<'static, S>,
    state: S,
    waits: Waits,
    late: Option<LateReceiver<S>>,
    tick: Option<Tick<S>>,
    tick_at: Option<Millis>,
    /// The timer that is set, and the time when it fires.
    alarm: Option<(Millis, Sleep)>,
    closing: bool,
}

/// The parts that the work of a turn may use.
pub(crate) struct SharedServer<'t, S: 'static> {
    pub(crate) endpoint: &'t mut Endpoint<'static>,
    pub(crate) service: &'t Service<'static, S>,
    pub(crate) state: &'t mut S,
    pub(crate) now: Millis,
    pub(crate) waits: &'t mut Waits,
    pub(crate) closing: &'t mut bool,
    /// The stream that was just pulled, and has nothing to send.
    idle: Option<StreamId>,
}

impl<S> SharedServer<'_, S> {
    /// Returns the endpoint with its application.
    pub(crate) fn parts(&mut self) -> (&mut Endpoint<'static>, App<'_, S>) {
        (self.endpoint, App::new(self.service, self.state))
    }
}

/// Late messages have come. It runs on the side of the sender, and does not wait for the lock.
pub(crate) struct LateBell<S: 'static>(Weak<Shared<S>>);

impl<S: Send> LateBell<S> {
    pub(crate) fn waker(mount: Weak<Shared<S>>) -> Waker {
        Waker::from(Arc::new(LateBell(mount)))
    }
}

impl<S: Send> Wake for LateBell<S> {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.called.store(true, Ordering::SeqCst);
            shared.work();
        }
    }
}

impl<S> Shared<S> {
    pub(crate) fn new(service: Service<'static, S>, state: S, options: MountOptions<S>, waker: Waker) -> Self {
        let endpoint = options.options.endpoint();
        let endpoint = match options.fleet {
            Some(fleet) => endpoint.fleet(fleet),
            None => endpoint,
        };
        let inner = Inner {
            endpoint,
            service,
            state,
            waits: Waits::default(),
            late: options.late,
            tick: options.tick,
            tick_at: None,
            alarm: None,
            closing: false,
        };
        Shared {
            inner: Mutex::new(inner),
            jobs: Mutex::default(),
            // The first turn looks for messages.
            called: AtomicBool::new(true),
            waker,
            keeper: Arc::default(),
            timer: options.timer,
            clock: options.clock,
            // A wall clock at the start, and then a monotonic one: a `requestState` may come back to another process.
            epoch: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis),
            started: Instant::now(),
            random: options.random,
            authorize: options.authorize,
            principal: options.principal,
            permit: options.permit,
            options: options.options,
            reading: AtomicUsize::new(0),
            unsent: Arc::default(),
        }
    }

    /// Returns whether the unsent answers take more than their total.
    pub(crate) fn is_full(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) > self.options.output_total
    }

    pub(crate) fn now(&self) -> Millis {
        match &self.clock {
            Some(clock) => clock(),
            None => self.epoch.saturating_add(self.started.elapsed().as_millis() as Millis),
        }
    }

    /// Runs `act` under the lock, then does what has become due. With a context, the timer is set too. Returns `None` after
    /// a handler has panicked.
    pub(crate) fn turn<T>(
        &self,
        cx: Option<&mut Context<'_>>,
        act: impl FnOnce(&mut SharedServer<'_, S>) -> T,
    ) -> Option<T> {
        let done = {
            // Dropped after the lock.
            let end = End(self);
            let mut inner = self.inner.lock().ok()?;
            let done = inner.turn(self, cx, act);
            let woken = inner.waits.take_woken();
            drop(inner);
            drop(end);
            woken.into_iter().for_each(Waker::wake);
            done
        };
        self.work();
        Some(done)
    }

    /// Gives work to the holder of the lock, or does it now if the lock is free.
    pub(crate) fn submit(&self, job: Job<S>) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        self.work();
    }

    /// Does the work that was submitted. If the lock is taken, its holder looks here when it has given it back.
    pub(crate) fn work(&self) {
        while self.called.load(Ordering::SeqCst) || !self.jobs.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
        {
            let end = End(self);
            let woken = match self.inner.try_lock() {
                Ok(mut inner) => {
                    inner.turn(self, None, |_| ());
                    inner.waits.take_woken()
                }
                Err(TryLockError::WouldBlock) => return,
                Err(TryLockError::Poisoned(poisoned)) => {
                    // Its senders learn that the mount has ended.
                    let late = poisoned.into_inner().late.take();
                    return drop((self.take_jobs(), late));
                }
            };
            drop(end);
            woken.into_iter().for_each(Waker::wake);
        }
    }

    /// Returns `true` while a request is in flight, or an answer has not been handed to the HTTP server whole.
    pub(crate) fn is_busy(&self) -> bool {
        let busy = match self.inner.try_lock() {
            Ok(inner) => {
                let (requests, _, streams) = inner.endpoint.load();
                requests + streams > 0
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Poisoned(_)) => false,
        };
        // Who found the lock taken left its work here.
        self.work();
        busy
    }

    fn take_jobs(&self) -> Vec<Job<S>> {
        std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the name that the layers in front of the mount have given to the client.
    pub(crate) fn principal(&self, parts: &Parts) -> Option<String> {
        self.principal.as_ref().and_then(|principal| principal(parts))
    }

    /// Decides about a request by its head.
    pub(crate) fn decide<'a>(&self, parts: &Parts, principal: Option<&'a str>, head: &RequestHead<'_>) -> Access<'a> {
        match self.authorize.as_ref().map(|authorize| authorize(parts, head)) {
            None | Some(Access::Granted { principal: None }) => Access::Granted { principal },
            Some(decided) => decided,
        }
    }
}

impl<S: Send> Mount for Shared<S> {
    fn poll_stream(&self, id: StreamId, cx: &mut Context<'_>) -> Poll<(Bytes, bool)> {
        let waker = cx.waker().clone();
        let pulled = self.turn(Some(cx), |server| {
            server.waits.forget(id);
            let now = server.now;
            let mut events = BodyBuffer::new(Vec::new());
            let (endpoint, mut app) = server.parts();
            let status = endpoint.pull(id, &mut app, now, &mut events);
            let (events, over) = (events.storage, matches!(status, StreamStatus::End | StreamStatus::Stale));
            server.waits.wake_posts(id);
            if !events.is_empty() || over {
                return Poll::Ready((events.into(), over));
            }
            // Under the same lock as the pull: nothing can happen in between that the waker would miss.
            server.waits.wait(id, &waker, &self.keeper);
            match status {
                // It could not go on, since others have used the log: their turns wake it. What else makes it ready in this
                // turn wakes it at once.
                StreamStatus::Idle if server.endpoint.ready().any(|ready| ready == id) => server.idle = Some(id),
                StreamStatus::Idle => {}
                _ => server.waits.wake(id),
            }
            Poll::Pending
        });
        pulled.unwrap_or(Poll::Ready((Bytes::new(), true)))
    }

    fn leave(&self, id: StreamId) {
        self.submit(Box::new(move |server| {
            server.waits.forget(id);
            let now = server.now;
            let (endpoint, mut app) = server.parts();
            endpoint.detach(id, &mut app, now);
            server.waits.wake_posts(id);
        }));
    }
}

impl<S> Inner<S> {
    fn turn<T>(
        &mut self,
        shared: &Shared<S>,
        cx: Option<&mut Context<'_>>,
        act: impl FnOnce(&mut SharedServer<'_, S>) -> T,
    ) -> T {
        let Inner { endpoint, service, state, waits, late, tick, tick_at, closing, .. } = self;
        let now = shared.now();
        if endpoint.next_deadline().is_some_and(|at| at <= now) {
            endpoint.expire(&mut App::new(service, state), now);
        }
        let mut server = SharedServer {
            endpoint: &mut *endpoint,
            service,
            state: &mut *state,
            now,
            waits: &mut *waits,
            closing,
            idle: None,
        };
        for job in shared.take_jobs() {
            job(&mut server);
        }
        let done = act(&mut server);
        let idle = server.idle;
        shared.called.store(false, Ordering::SeqCst);
        if let Some(late) = late {
            late.give(endpoint, service, state);
            if late.poll_ready(&mut Context::from_waker(&shared.waker)).is_ready() {
                // Others get the lock before the rest.
                shared.called.store(true, Ordering::SeqCst);
            }
            if late.take_decided() {
                waits.wake_undecided();
            }
        }
        if let Some(tick) = tick {
            *tick_at = tick(&mut App::new(service, state), endpoint, now);
        }
        if waits.has_streams() {
            // A stream that was pulled in this turn and could not go on is ready for the turns of others.
            endpoint.ready().filter(|ready| Some(*ready) != idle).for_each(|ready| waits.wake(ready));
        }
        waits.choose_keeper(&shared.keeper);
        self.set_alarm(shared, cx.is_some(), now);
        done
    }

    /// Sets the timer of the runtime for the next deadline, or asks for a task of the runtime that may set it.
    fn set_alarm(&mut self, shared: &Shared<S>, is_task: bool, now: Millis) {
        let Inner { endpoint, waits, tick_at, alarm, .. } = self;
        let soonest = |at: Millis, pause: Millis| if at <= now { now.saturating_add(pause) } else { at };
        let deadline = endpoint.next_deadline().map(|at| soonest(at, OVERDUE));
        let due = deadline.into_iter().chain(tick_at.map(|at| soonest(at, 1))).min();
        let set = alarm.as_ref().map(|(at, _)| *at).filter(|_| !shared.keeper.has_fired());
        match (due, is_task) {
            (None, _) => *alarm = None,
            (Some(due), _) if set.is_some_and(|set| set <= due) => {}
            (Some(due), true) => {
                shared.keeper.begin();
                let mut sleep = (shared.timer)(Duration::from_millis(due.saturating_sub(now).min(DAY)));
                let waker = Waker::from(Arc::clone(&shared.keeper));
                if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    waker.wake();
                }
                *alarm = Some((due, sleep));
            }
            // Only a task of the runtime may set the timer.
            (Some(_), false) => waits.call(&shared.keeper),
        }
    }
}

/// The end of a turn. After a panic of a handler it wakes all waiters: they must see the poisoned server.
struct End<'s, S: 'static>(&'s Shared<S>);

impl<S> Drop for End<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut inner = self.0.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.waits.wake_all();
            let woken = inner.waits.take_woken();
            drop(inner);
            woken.into_iter().for_each(Waker::wake);
        }
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        // The future of `run` sees that the mount is gone.
        self.keeper.waker().into_iter().for_each(Waker::wake);
    }
}
