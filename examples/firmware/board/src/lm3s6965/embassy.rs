//! The board's part of embassy: the time driver, and an executor that sleeps while no task can run.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use cortex_m::interrupt::Mutex;
use embassy_executor::Spawner;
use embassy_executor::raw::Executor;
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

/// The time in milliseconds, counted by SysTick. SysTick's 32 bits last 49 days; this type extends them to 64.
struct Ticks {
    state: Mutex<RefCell<State>>,
}

struct State {
    queue: Queue,
    /// Milliseconds since the start.
    now: u64,
    /// The time to wake the next task.
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
            // The borrow succeeds: interrupts are off, and waking a task does not call this again.
            if let Ok(mut state) = self.state.borrow(cs).try_borrow_mut() {
                change(&mut state);
            }
        });
    }
}

embassy_time_driver::time_driver_impl!(static TICKS: Ticks = Ticks {
    state: Mutex::new(RefCell::new(State { queue: Queue::new(), now: 0, next: u64::MAX })),
});

/// Counts a millisecond. The interrupt handler calls this.
pub(crate) fn tick() {
    TICKS.with(|state| {
        state.now += 1;
        if state.next <= state.now {
            state.next = state.queue.next_expiration(state.now);
        }
    });
}

static PENDING: AtomicBool = AtomicBool::new(false);

// The executor calls this name when a task can run.
// SAFETY: no other function has this name.
#[unsafe(export_name = "__pender")]
fn pend(_: *mut ()) {
    PENDING.store(true, Ordering::Release);
}

/// Runs embassy's executor for ever. `start` spawns the first tasks.
///
/// It works like `embassy_executor::Executor` (features `platform-cortex-m`, `executor-thread`), but waits by WFI
/// instead of WFE: QEMU does not sleep at a WFE.
pub fn run(start: impl FnOnce(Spawner)) -> ! {
    let executor = Executor::new(core::ptr::null_mut());
    // SAFETY: this function does not return, so its frame lives for ever.
    let executor: &'static Executor = unsafe { &*core::ptr::from_ref(&executor) };
    start(executor.spawner());
    loop {
        // SAFETY: the executor was created here, and is polled only here, never inside a task.
        unsafe { executor.poll() };
        cortex_m::interrupt::free(|_| {
            if !PENDING.swap(false, Ordering::AcqRel) {
                cortex_m::asm::wfi();
            }
        });
    }
}
