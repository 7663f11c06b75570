//! The connections that have work: with a thousand connections, only these are served in a turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// The slots whose sockets have woken, for the future that serves them.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    inner: Mutex<Inner>,
    /// There are connections whose bytes are not read.
    unread: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    slots: Vec<usize>,
    /// Wakes that future.
    waker: Option<Waker>,
}

impl Woken {
    /// Takes the slots that have woken. Later ones wake `cx`.
    pub(crate) fn take(&self, cx: &Context<'_>, slots: &mut Vec<usize>) {
        slots.clear();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        std::mem::swap(&mut inner.slots, slots);
    }

    /// Returns whether a connection has [noted](ConnectionWaker::note_unread) that its bytes are not read.
    pub(crate) fn take_unread(&self) -> bool {
        self.unread.swap(false, Ordering::Relaxed)
    }

    fn push(&self, slot: usize) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.slots.push(slot);
        // One wake is enough until the slots are taken.
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The waker of one socket.
#[derive(Debug)]
pub(crate) struct ConnectionWaker {
    slot: usize,
    is_awake: AtomicBool,
    woken: Arc<Woken>,
}

impl ConnectionWaker {
    pub(crate) fn new(slot: usize, woken: Arc<Woken>) -> Arc<Self> {
        Arc::new(ConnectionWaker { slot, is_awake: AtomicBool::new(false), woken })
    }

    /// Notes that the bytes of the connection are not read.
    pub(crate) fn note_unread(&self) {
        self.woken.unread.store(true, Ordering::Relaxed);
    }

    /// Allows the next wake, and returns whether there was one. Called before a turn, so that wakes during the turn are
    /// kept.
    pub(crate) fn reset(&self) -> bool {
        self.is_awake.swap(false, Ordering::AcqRel)
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            self.woken.push(self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts its wakes, and takes the slots in each as an executor does that polls at once.
    #[derive(Default)]
    struct Executor {
        woken: Arc<Woken>,
        taken: Mutex<Vec<Vec<usize>>>,
    }

    impl Wake for Executor {
        fn wake(self: Arc<Self>) {
            let mut slots = Vec::new();
            self.woken.take(&Context::from_waker(&Arc::clone(&self).into()), &mut slots);
            self.taken.lock().unwrap().push(slots);
        }
    }

    /// Takes the slots with an executor that does nothing.
    fn take(woken: &Woken, slots: &mut Vec<usize>) -> Vec<usize> {
        woken.take(&Context::from_waker(Waker::noop()), slots);
        slots.clone()
    }

    #[test]
    fn a_slot_that_has_woken_is_taken_once() {
        let woken = Arc::<Woken>::default();
        let [one, other] = [3, 5].map(|slot| ConnectionWaker::new(slot, Arc::clone(&woken)));
        let mut slots = vec![9];
        assert_eq!(take(&woken, &mut slots), [0; 0]);
        for waker in [&one, &one, &other] {
            waker.wake_by_ref();
        }
        assert_eq!(take(&woken, &mut slots), [3, 5]);
        // It rings again when its turn has begun.
        one.wake_by_ref();
        assert_eq!(take(&woken, &mut slots), [0; 0]);
        assert!(one.reset() && !one.reset());
        Arc::clone(&one).wake();
        assert_eq!(take(&woken, &mut slots), [3]);
        assert_eq!(take(&woken, &mut slots), [0; 0]);
    }

    /// Also an executor that polls within the wake.
    #[test]
    fn the_future_is_woken_once_until_it_has_taken_the_slots() {
        let executor = Arc::new(Executor::default());
        let woken = &executor.woken;
        woken.take(&Context::from_waker(&Arc::clone(&executor).into()), &mut Vec::new());
        for slot in [1, 2] {
            ConnectionWaker::new(slot, Arc::clone(woken)).wake_by_ref();
        }
        assert_eq!(*executor.taken.lock().unwrap(), [[1], [2]]);
        take(woken, &mut Vec::new());
        ConnectionWaker::new(3, Arc::clone(woken)).wake_by_ref();
        assert_eq!(executor.taken.lock().unwrap().len(), 2, "another one polls it now");
    }
}
