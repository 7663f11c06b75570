//! Which connections there is something to do for: so that one of a thousand is served without asking the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// The slots whose sockets have woken, for the one future that serves them.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    slots: Vec<usize>,
    /// Wakes the future.
    waker: Option<Waker>,
}

impl Woken {
    /// The slots that have woken. From here on, others wake `cx`.
    pub(crate) fn take(&self, cx: &Context<'_>, slots: &mut Vec<usize>) {
        slots.clear();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        std::mem::swap(&mut inner.slots, slots);
    }

    fn push(&self, slot: usize) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.slots.push(slot);
        // Once is enough until the slots are taken.
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What a socket wakes.
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

    /// Before a turn: what rings from now on is heard.
    pub(crate) fn reset(&self) {
        self.rung.store(false, Ordering::Release);
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
