//! A ring that carries bytes from one interrupt handler to the main program, without locks and without `unsafe`:
//! one side only pushes, the other only pops.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering, compiler_fence};

/// A ring of `N` bytes; `N` is a power of two.
pub(crate) struct Ring<const N: usize> {
    bytes: [AtomicU8; N],
    /// The bytes pushed so far, modulo 2^32. Only the producer writes it.
    head: AtomicUsize,
    /// The bytes popped so far, modulo 2^32. Only the consumer writes it.
    tail: AtomicUsize,
}

impl<const N: usize> Ring<N> {
    pub(crate) const fn new() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self { bytes: [const { AtomicU8::new(0) }; N], head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }

    fn slot(&self, count: usize) -> &AtomicU8 {
        // The mask keeps the index below `N`. The compiler sees that, and leaves out the check.
        &self.bytes[count & (N - 1)]
    }

    pub(crate) fn len(&self) -> usize {
        let length = self.head.load(Ordering::Relaxed).wrapping_sub(self.tail.load(Ordering::Relaxed));
        // A compiler fence is enough: on a single processor both sides see memory operations in program order.
        compiler_fence(Ordering::Acquire);
        length
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= N
    }

    /// Pushes a byte. For the producer, which must have checked that the ring is not full: otherwise the oldest
    /// byte is lost.
    pub(crate) fn push(&self, byte: u8) {
        let head = self.head.load(Ordering::Relaxed);
        self.slot(head).store(byte, Ordering::Relaxed);
        compiler_fence(Ordering::Release);
        self.head.store(head.wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the byte `ahead` places after the oldest one, in a ring that holds `len` bytes. For the consumer.
    pub(crate) fn at(&self, ahead: usize) -> u8 {
        self.slot(self.tail.load(Ordering::Relaxed).wrapping_add(ahead)).load(Ordering::Relaxed)
    }

    /// Drops `count` bytes. For the consumer.
    pub(crate) fn skip(&self, count: usize) {
        let tail = self.tail.load(Ordering::Relaxed);
        compiler_fence(Ordering::Release);
        self.tail.store(tail.wrapping_add(count), Ordering::Relaxed);
    }
}
