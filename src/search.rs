//! Byte searches, and the constant [`SMALL`] for machines with little memory.

/// True on machines where memory counts more than time: those of 32 bits, which have no vector instructions to
/// gain from and mostly wait for a wire. WebAssembly is not one of them, because it runs on large machines.
pub(crate) const SMALL: bool = cfg!(not(any(target_pointer_width = "64", target_family = "wasm")));

// Fork: 620 bytes of flash (uart, tools only), with the searches in `json/run.rs`.

// Fork: 7 % of a tools/call (engine, echo32: 3,012 instructions, 3,228 without), taken together: the functions with
// `cfg_attr(target_pointer_width = "64", inline(always))`. With a plain `inline` in its place the gain is 4 %.

/// Returns the first position of a byte.
#[inline]
pub(crate) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    if SMALL { find_either(byte, byte, bytes) } else { memchr::memchr(byte, bytes) }
}

/// Returns the first position of one of two bytes. Most pieces of arguments are shorter than a vector: without a call of memchr for
/// those, a call by the client takes 3 % less.
#[inline]
pub(crate) fn find_of_two(one: u8, other: u8, bytes: &[u8]) -> Option<usize> {
    if SMALL || bytes.len() < 16 { find_either(one, other, bytes) } else { memchr::memchr2(one, other, bytes) }
}

#[inline(never)]
fn find_either(one: u8, other: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == one || *byte == other)
}

/// Compares two texts from the end: different names often begin alike.
#[allow(clippy::indexing_slicing, reason = "bounded by the length; a const fn has no iterators")]
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut left = if a.len() == b.len() { a.len() } else { return false };
    while left > 0 && a[left - 1] == b[left - 1] {
        left -= 1;
    }
    left == 0
}
