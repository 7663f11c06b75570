//! An allocator that counts, for the tests of `mcp-sansio`.
//!
//! A global allocator cannot be written without unsafe code, which the workspace forbids: hence a crate of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The allocator of the system, counted.
#[derive(Debug)]
pub struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// How often memory was asked for.
pub fn count() -> usize {
    COUNT.load(Relaxed)
}

/// Runs `work`; how many bytes more than before there were at once.
pub fn peak(work: impl FnOnce()) -> usize {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    work();
    PEAK.load(Relaxed) - live
}

fn grown(by: usize) {
    COUNT.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(by, Relaxed) + by;
    PEAK.fetch_max(live, Relaxed);
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
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new are counted both: they may be there at once while it is moved.
        grown(size);
        let moved = unsafe { System.realloc(place, layout, size) };
        LIVE.fetch_sub(layout.size(), Relaxed);
        moved
    }
}
