//! The connections that have work: with a thousand connections, only these are served in a turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// The slots whose sockets have woken, for the future that serves them.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    inner: Mutex<Inner>,
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

    /// Wakes the future that serves: something has come that is no socket's.
    #[cfg(feature = "fleet")]
    pub(crate) fn wake(&self) {
        let waker = self.inner.lock().unwrap_or_else(PoisonError::into_inner).waker.take();
        waker.into_iter().for_each(Waker::wake);
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
pub(crate) struct Bell {
    slot: usize,
    rung: AtomicBool,
    woken: Arc<Woken>,
}

impl Bell {
    pub(crate) fn new(slot: usize, woken: Arc<Woken>) -> Arc<Self> {
        Arc::new(Bell { slot, rung: AtomicBool::new(false), woken })
    }

    /// Allows the next wake, and returns whether there was one. Called before a turn, so that wakes during the turn are
    /// kept.
    pub(crate) fn reset(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.woken.push(self.slot);
        }
    }
}
