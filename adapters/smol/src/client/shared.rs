//! The lock between the handles of a client and its driver.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::Transport;
use super::state::{Handler, State};

/// The state of one client, behind a lock. The driver holds the lock for one turn.
pub(super) struct Shared {
    state: Mutex<State>,
    /// The number of the thread that holds the lock; 0 for no thread.
    holder: AtomicUsize,
}

impl Shared {
    pub(super) fn new(transport: Box<dyn Transport>, handler: Handler) -> Self {
        Shared { state: Mutex::new(State::new(transport, handler)), holder: AtomicUsize::new(0) }
    }

    /// Reads or changes the state. Wakes tasks after the lock is released.
    ///
    /// # Panics
    /// If it is called by the thread that holds the lock: a handler that uses its client would wait for ever.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let (done, wakes) = {
            let mut state = self.lock();
            let _held = Held::by_this_thread(&self.holder);
            let done = act(&mut state);
            (done, std::mem::take(&mut state.wakes))
        };
        wakes.wake();
        done
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => return state,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        // Relaxed is enough: if the value is this thread's number, this thread wrote it.
        let held = self.holder.load(Ordering::Relaxed) == this_thread();
        assert!(!held, "a client was used by its own handler: use the handle, or another task");
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the thread that holds the lock, until it is dropped.
struct Held<'h>(&'h AtomicUsize);

impl<'h> Held<'h> {
    fn by_this_thread(holder: &'h AtomicUsize) -> Self {
        holder.store(this_thread(), Ordering::Relaxed);
        Held(holder)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Returns a number that no other running thread has; never 0.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Ignore, StreamTransport};
    use mcp_sansio::client::ClientInfo;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    /// A thread that waits for the lock of another one must not find its own number there.
    #[test]
    fn the_holder_of_the_lock_is_known_while_it_is_held() {
        let stream = StreamTransport::new(futures_lite::io::empty(), futures_lite::io::sink(), &PROFILE);
        let shared = Shared::new(Box::new(stream), Box::new(Ignore));
        let holder = || shared.holder.load(Ordering::Relaxed);
        let held = shared.with(|_| holder());
        assert_eq!((held, holder()), (this_thread(), 0));
        assert!(held > 1);
        let other = std::thread::scope(|scope| scope.spawn(|| shared.with(|_| (holder(), this_thread()))).join());
        assert!(other.is_ok_and(|(held, own)| held == own && own != this_thread()));
    }
}
