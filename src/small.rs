//! For machines on which room counts more than time.

/// Whether this is for a machine on which room counts more than time: those of 32 bits have no vectors to gain from, and
/// are waited for by a wire. Not WebAssembly, which runs on large ones.
pub(crate) const SMALL: bool = cfg!(not(any(target_pointer_width = "64", target_family = "wasm")));

/// The first place of a byte.
#[inline]
pub(crate) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    if SMALL { find_either(byte, byte, bytes) } else { memchr::memchr(byte, bytes) }
}

/// The first place of one of two bytes.
#[inline]
pub(crate) fn find_of_two(one: u8, other: u8, bytes: &[u8]) -> Option<usize> {
    if SMALL { find_either(one, other, bytes) } else { memchr::memchr2(one, other, bytes) }
}

#[inline(never)]
fn find_either(one: u8, other: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == one || *byte == other)
}
