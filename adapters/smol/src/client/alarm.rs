//! Wakes the driver, and remembers which source has something to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The waker of one source of a transport: a pipe, or the end of a process. The driver is polled for any of them, and for
/// each request; only a source that has woken it is polled, since each poll is a system call.
pub(super) struct Alarm {
    state: Arc<AlarmState>,
    waker: Waker,
}

struct AlarmState {
    woken: AtomicBool,
    driver: Mutex<Option<Waker>>,
}

impl Wake for AlarmState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl Alarm {
    /// Makes an alarm of a source that was not polled yet.
    pub(super) fn new() -> Self {
        let state = Arc::new(AlarmState { woken: AtomicBool::new(true), driver: Mutex::new(None) });
        Alarm { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Notes that the source is another one.
    pub(super) fn ring(&self) {
        self.state.woken.store(true, Ordering::Release);
    }

    /// Polls the source, if it has woken the driver since it was pending.
    pub(super) fn poll<T>(&self, cx: &Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let mut driver = self.state.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if !driver.as_ref().is_some_and(|driver| driver.will_wake(cx.waker())) {
            *driver = Some(cx.waker().clone());
        }
        drop(driver);
        if !self.state.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.ring();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_pending_source_is_polled_when_it_has_woken_the_driver() {
        let (count, alarm) = (Arc::new(Count(AtomicUsize::new(0))), Alarm::new());
        let driver = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&driver);
        let mut kept = None;
        assert!(alarm.poll(&cx, |_| Poll::Ready(())).is_ready(), "the first time");
        let pending = |cx: &mut Context<'_>| {
            kept = Some(cx.waker().clone());
            Poll::<()>::Pending
        };
        assert!(alarm.poll(&cx, pending).is_pending(), "again: it was ready");
        assert!(alarm.poll(&cx, |_| Poll::Ready(())).is_pending(), "it has not woken the driver");
        kept.unwrap().wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(alarm.poll(&cx, |_| Poll::Ready(())).is_ready());
    }

    /// Sources may wake the driver while they are polled, and the driver may move to another task.
    #[test]
    fn an_alarm_wakes_the_driver_that_polled_last() {
        let counts = [(); 2].map(|()| Arc::new(Count(AtomicUsize::new(0))));
        let drivers = [0, 1].map(|at: usize| Waker::from(Arc::clone(&counts[at])));
        let alarm = Alarm::new();
        let mut kept = None;
        let wakes_at_once = |cx: &mut Context<'_>| {
            kept = Some(cx.waker().clone());
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        };
        assert!(alarm.poll(&Context::from_waker(&drivers[0]), wakes_at_once).is_pending());
        let woken = || [0, 1].map(|at: usize| counts[at].0.swap(0, Ordering::Relaxed));
        assert_eq!(woken(), [1, 0]);
        let cx = Context::from_waker(&drivers[1]);
        assert!(alarm.poll(&cx, |_| Poll::<()>::Pending).is_pending(), "it was polled");
        kept.unwrap().wake_by_ref();
        assert_eq!(woken(), [0, 1]);
    }

    #[test]
    fn another_source_is_polled_at_once() {
        let alarm = Alarm::new();
        let cx = Context::from_waker(Waker::noop());
        assert!(alarm.poll(&cx, |_| Poll::<()>::Pending).is_pending());
        assert!(alarm.poll(&cx, |_| Poll::Ready(())).is_pending());
        alarm.ring();
        assert!(alarm.poll(&cx, |_| Poll::Ready(())).is_ready());
    }
}
