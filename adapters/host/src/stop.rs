//! The end of a server, asked for from any task or thread.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use crate::lock;

/// Ends a server in order, from any task or thread: it takes no further requests, ends listens and event streams, and
/// requests in flight may finish in the time of its `grace`; those that are left then get an error. A second
/// [`stop`](Stopper::stop) ends the time at once. Clones stop the same server.
#[derive(Clone, Default)]
pub struct Stopper(Arc<Mutex<Stops>>);

#[derive(Default)]
struct Stops {
    count: u32,
    server: Option<Waker>,
}

impl Stopper {
    /// Makes a stopper, for a server that [counts](Stopper::count) its calls.
    #[must_use]
    pub fn new() -> Self {
        Stopper::default()
    }

    /// Stops the server. Does nothing if it has ended already.
    pub fn stop(&self) {
        let waker = {
            let mut stops = lock(&self.0);
            stops.count = stops.count.saturating_add(1);
            stops.server.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns how often [`stop`](Stopper::stop) was called. The next call wakes the task.
    pub fn count(&self, cx: &Context<'_>) -> u32 {
        let mut stops = lock(&self.0);
        match &mut stops.server {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        stops.count
    }
}

mcp_sansio::debug_fields!(impl for Stopper {});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_wakes_the_server_that_counts() {
        use std::sync::atomic::{AtomicU32, Ordering};
        #[derive(Default)]
        struct Woken(AtomicU32);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let (stopper, tasks) = (Stopper::new(), [(); 2].map(|()| Arc::new(Woken::default())));
        let wakers = tasks.clone().map(Waker::from);
        let woken = || tasks.each_ref().map(|task| task.0.load(Ordering::SeqCst));
        for waker in &wakers {
            assert_eq!(stopper.count(&Context::from_waker(waker)), 0);
        }
        let clone = stopper.clone();
        clone.stop();
        clone.stop();
        // The task that has asked last, once.
        assert_eq!((woken(), stopper.count(&Context::from_waker(&wakers[0]))), ([0, 1], 2));
        stopper.stop();
        assert_eq!((woken(), stopper.count(&Context::from_waker(Waker::noop()))), ([1, 1], 3));
    }
}
