//! An allocator that counts, for the tests of `mcp-sansio`.
//!
//! A global allocator cannot be written without unsafe code, which the workspace forbids: hence a crate of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator of the system, with counters.
#[derive(Debug)]
pub struct Counting;

// One counter for each thread: the threads of the test harness allocate at any time. The counters are initialised by
// constants and have no destructors, so that using them allocates nothing.
thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Returns the number of allocations of this thread.
pub fn count() -> usize {
    COUNT.get()
}

/// Runs `work`. Returns the largest number of bytes that this thread had above its start.
pub fn peak(work: impl FnOnce()) -> usize {
    let live = LIVE.get();
    PEAK.set(live);
    work();
    usize::try_from(PEAK.get() - live).unwrap_or(0)
}

fn grown(by: usize) {
    COUNT.set(COUNT.get() + 1);
    let live = LIVE.get() + by as isize;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

fn shrunk(by: usize) {
    LIVE.set(LIVE.get() - by as isize);
}

// SAFETY: every call is passed on to the allocator of the system as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        shrunk(layout.size());
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both count: the old and the new block may exist at the same time.
        grown(size);
        let moved = unsafe { System.realloc(place, layout, size) };
        shrunk(layout.size());
        moved
    }
}
