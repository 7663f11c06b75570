//! Bytes from one interrupt handler to the main program, without locks and
//! without `unsafe`: one side only pushes, the other only pops.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering, compiler_fence};

/// A ring of `N` bytes; `N` is a power of two.
pub(crate) struct Ring<const N: usize> {
    bytes: [AtomicU8; N],
    /// Bytes pushed so far, modulo 2^32. Written by the producer only.
    head: AtomicUsize,
    /// Bytes popped so far, modulo 2^32. Written by the consumer only.
    tail: AtomicUsize,
}

impl<const N: usize> Ring<N> {
    pub(crate) const fn new() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self { bytes: [const { AtomicU8::new(0) }; N], head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }

    fn slot(&self, count: usize) -> &AtomicU8 {
        // The mask keeps the index below `N`, which the compiler sees.
        &self.bytes[count & (N - 1)]
    }

    pub(crate) fn len(&self) -> usize {
        let length = self.head.load(Ordering::Relaxed).wrapping_sub(self.tail.load(Ordering::Relaxed));
        // Of the compiler only: a processor that has no other beside it sees what it did in the order in which it did it.
        compiler_fence(Ordering::Acquire);
        length
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= N
    }

    /// Producer only, who has seen that the ring is not full: else the oldest bytes are written over.
    pub(crate) fn push(&self, byte: u8) {
        let head = self.head.load(Ordering::Relaxed);
        self.slot(head).store(byte, Ordering::Relaxed);
        compiler_fence(Ordering::Release);
        self.head.store(head.wrapping_add(1), Ordering::Relaxed);
    }

    /// Consumer only: the byte that is `ahead` places behind the oldest, of `len` bytes.
    pub(crate) fn at(&self, ahead: usize) -> u8 {
        self.slot(self.tail.load(Ordering::Relaxed).wrapping_add(ahead)).load(Ordering::Relaxed)
    }

    /// Consumer only: drops `count` bytes.
    pub(crate) fn skip(&self, count: usize) {
        let tail = self.tail.load(Ordering::Relaxed);
        compiler_fence(Ordering::Release);
        self.tail.store(tail.wrapping_add(count), Ordering::Relaxed);
    }
}
