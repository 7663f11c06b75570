//! What embassy asks of a board: time, and a processor that sleeps while no task can run.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use cortex_m::interrupt::Mutex;
use embassy_executor::Spawner;
use embassy_executor::raw::Executor;
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

/// Time in milliseconds, by SysTick. 2^32 of them are 49 days, so that the rest is counted here.
struct Ticks {
    state: Mutex<RefCell<State>>,
}

struct State {
    queue: Queue,
    /// Milliseconds since the start.
    now: u64,
    /// When the next task is to be woken.
    next: u64,
}

impl Driver for Ticks {
    fn now(&self) -> u64 {
        cortex_m::interrupt::free(|cs| self.state.borrow(cs).try_borrow().map_or(0, |state| state.now))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        self.with(|state| {
            if state.queue.schedule_wake(at, waker) {
                state.next = state.queue.next_expiration(state.now);
            }
        });
    }
}

impl Ticks {
    fn with(&self, change: impl FnOnce(&mut State)) {
        cortex_m::interrupt::free(|cs| {
            // Nobody else has it: interrupts are off, and waking a task does not come back here.
            if let Ok(mut state) = self.state.borrow(cs).try_borrow_mut() {
                change(&mut state);
            }
        });
    }
}

embassy_time_driver::time_driver_impl!(static TICKS: Ticks = Ticks {
    state: Mutex::new(RefCell::new(State { queue: Queue::new(), now: 0, next: u64::MAX })),
});

/// A millisecond has passed.
pub(crate) fn tick() {
    TICKS.with(|state| {
        state.now += 1;
        if state.next <= state.now {
            state.next = state.queue.next_expiration(state.now);
        }
    });
}

static PENDING: AtomicBool = AtomicBool::new(false);

// The executor looks for this name: some task can run.
// SAFETY: no other function is called so.
#[unsafe(export_name = "__pender")]
fn pend(_: *mut ()) {
    PENDING.store(true, Ordering::Release);
}

/// Runs embassy's executor for ever, beginning with what `start` spawns.
///
/// It does what `embassy_executor::Executor` (features `platform-cortex-m`, `executor-thread`) does, and waits by WFI
/// where that one waits by WFE: to QEMU a WFE is no reason to sleep.
pub fn run(start: impl FnOnce(Spawner)) -> ! {
    let executor = Executor::new(core::ptr::null_mut());
    // SAFETY: this function does not return, so its frame lives for ever.
    let executor: &'static Executor = unsafe { &*core::ptr::from_ref(&executor) };
    start(executor.spawner());
    loop {
        // SAFETY: it was made here, and is polled here only, not from within a task.
        unsafe { executor.poll() };
        cortex_m::interrupt::free(|_| {
            if !PENDING.swap(false, Ordering::AcqRel) {
                cortex_m::asm::wfi();
            }
        });
    }
}
