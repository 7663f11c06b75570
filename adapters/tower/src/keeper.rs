//! The wakers that the timer of the mount wakes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The task that sets the timer and does the work of the time: the one of `Mcp::run`, else one whose event stream waits.
///
/// It has a lock of its own: a timer that fires never waits for a handler.
#[derive(Debug, Default)]
pub(crate) struct Keeper(Mutex<Watch>);

#[derive(Debug, Default)]
struct Watch {
    /// The future of `Mcp::run`.
    run: Option<Waker>,
    /// The body of an event stream.
    body: Option<Waker>,
    /// The timer has fired and is not set again.
    fired: bool,
}

impl Keeper {
    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_run(&self, waker: Option<Waker>) {
        self.watch().run = waker;
    }

    pub(crate) fn set_body(&self, waker: Option<Waker>) {
        self.watch().body = waker;
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.watch().fired
    }

    pub(crate) fn begin(&self) {
        self.watch().fired = false;
    }

    /// Returns the waker of the task that can set the timer. It also stays here: it may be needed again before it was polled.
    pub(crate) fn waker(&self) -> Option<Waker> {
        let watch = self.watch();
        watch.run.clone().or_else(|| watch.body.clone())
    }
}

/// The waker of the timer.
impl Wake for Keeper {
    fn wake(self: Arc<Self>) {
        self.watch().fired = true;
        self.waker().into_iter().for_each(Waker::wake);
    }
}
