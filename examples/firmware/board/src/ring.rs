//! Bytes from one interrupt handler to the main program, without locks and
//! without `unsafe`: one side only pushes, the other only pops.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

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
        self.head.load(Ordering::Acquire).wrapping_sub(self.tail.load(Ordering::Acquire))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= N
    }

    /// Producer only. False when the ring is full.
    pub(crate) fn push(&self, byte: u8) -> bool {
        if self.is_full() {
            return false;
        }
        let head = self.head.load(Ordering::Relaxed);
        self.slot(head).store(byte, Ordering::Relaxed);
        self.head.store(head.wrapping_add(1), Ordering::Release);
        true
    }

    /// Consumer only: the byte that is `ahead` places behind the oldest.
    pub(crate) fn peek(&self, ahead: usize) -> Option<u8> {
        let tail = self.tail.load(Ordering::Relaxed);
        (ahead < self.len()).then(|| self.slot(tail.wrapping_add(ahead)).load(Ordering::Relaxed))
    }

    /// Consumer only: drops `count` bytes that `peek` has seen.
    pub(crate) fn skip(&self, count: usize) {
        let tail = self.tail.load(Ordering::Relaxed);
        self.tail.store(tail.wrapping_add(count), Ordering::Release);
    }
}
