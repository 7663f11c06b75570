//! Pointers of C as slices and references. What a pointer must point to is in `mcp.h`.

use core::ffi::{CStr, c_char};
use core::slice;

use mcp_sansio::json;

use crate::Status;

/// `MCP_ABI`
pub(crate) const ABI: u32 = 1;

/// Bytes of Rust, lent to C.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    bytes: *const u8,
    len: usize,
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Slice {
        Slice { bytes: bytes.as_ptr(), len: bytes.len() }
    }
}

/// Returns a text with a 0 behind it; `None` if the pointer is null.
///
/// # Safety
/// The text lives for `'a`.
pub(crate) unsafe fn optional<'a>(text: *const c_char) -> Result<Option<&'a str>, Status> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's contract.
    checked(unsafe { CStr::from_ptr(text) }.to_bytes()).map(Some)
}

/// Returns bytes as a text.
#[inline(never)]
fn checked(bytes: &[u8]) -> Result<&str, Status> {
    // SAFETY: they are UTF-8.
    if json::is_utf8(bytes) { Ok(unsafe { str::from_utf8_unchecked(bytes) }) } else { Err(Status::Invalid) }
}

/// Returns texts with a 0 behind them; `None` for each pointer that is null.
///
/// # Safety
/// As [`optional`].
#[inline(never)]
pub(crate) unsafe fn texts(texts: &[*const c_char], read: &mut [Option<&str>]) -> Result<(), Status> {
    for (text, read) in texts.iter().zip(read) {
        // SAFETY: the caller's contract.
        *read = unsafe { optional(*text) }?;
    }
    Ok(())
}

/// Returns a text with a 0 behind it, which must be there.
///
/// # Safety
/// As [`optional`].
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Status> {
    // SAFETY: the caller's contract.
    unsafe { optional(text) }?.ok_or(Status::Invalid)
}

/// Returns the elements at a pointer, none if it is null and the length is 0.
///
/// # Safety
/// The elements live for `'a`.
pub(crate) unsafe fn elements<'a, T>(first: *const T, len: usize) -> Result<&'a [T], Status> {
    match (first.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Status::Invalid),
        // SAFETY: the caller's contract.
        _ => Ok(unsafe { slice::from_raw_parts(first, len) }),
    }
}

/// Returns UTF-8 of a length.
///
/// # Safety
/// As [`elements`].
pub(crate) unsafe fn utf8<'a>(text: *const c_char, len: usize) -> Result<&'a str, Status> {
    // SAFETY: the caller's contract.
    checked(unsafe { elements(text.cast(), len) }?)
}

/// Writes to where a pointer points, unless it is null.
///
/// # Safety
/// It points to a `T`, or is null.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's contract.
        unsafe { to.write(value) };
    }
}

/// Memory of the caller, cut into parts. It lives as long as what is made in it, which is the contract of `mcp_open`.
pub(crate) struct Block {
    at: *mut u8,
    left: usize,
}

/// The alignment of the block and of its parts, in bytes.
const ALIGNMENT: usize = 8;

/// Returns the bytes that `len` elements take of a block.
pub(crate) fn size_of_part<T>(len: usize) -> usize {
    const { assert!(align_of::<T>() <= ALIGNMENT) };
    rounded(len, size_of::<T>())
}

/// Not inlined: it is called for each part.
#[inline(never)]
fn rounded(len: usize, size: usize) -> usize {
    len.saturating_mul(size).saturating_add(ALIGNMENT - 1) & !(ALIGNMENT - 1)
}

/// Returns the bytes of all parts of a block; the largest number if it cannot be that large.
pub(crate) fn size_of_parts(parts: &[usize]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
}

/// Returns the server or client, unless a handler of its runs: then the reference would be a second one.
///
/// # Safety
/// `whole` is null or points to a `T`, and `running` returns its field that says whether a handler runs. While one runs, only
/// other fields are borrowed.
pub(crate) unsafe fn idle<'s, T>(
    whole: *mut T,
    running: unsafe fn(*mut T) -> *const bool,
) -> Result<&'s mut T, Status> {
    // SAFETY: the caller's contract.
    unsafe {
        match () {
            () if whole.is_null() => Err(Status::Invalid),
            () if running(whole).read() => Err(Status::Busy),
            () => Ok(&mut *whole),
        }
    }
}

impl Block {
    /// # Safety
    /// The memory is the caller's, and nothing else uses it as long as a part of it is used.
    pub(crate) unsafe fn new(memory: *mut u8, len: usize) -> Option<Block> {
        (!memory.is_null() && memory.addr().is_multiple_of(ALIGNMENT)).then_some(Block { at: memory, left: len })
    }

    /// Takes the room for `len` elements, which `make` makes; ends with the first error.
    pub(crate) fn part<T, E>(
        &mut self,
        len: usize,
        mut make: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<&'static mut [T], Result<E, Status>> {
        let first = self.split(size_of_part::<T>(len)).map_err(Err)?.at.cast::<T>();
        // SAFETY: that many bytes from here on are in the block, and are no part of anything else. They are aligned.
        unsafe {
            for index in 0..len {
                first.add(index).write(make(index).map_err(Ok)?);
            }
            Ok(slice::from_raw_parts_mut(first, len))
        }
    }

    /// Takes a block of `size` bytes, which is a [`size_of_part`].
    pub(crate) fn split(&mut self, size: usize) -> Result<Block, Status> {
        let at = self.at;
        self.left = self.left.checked_sub(size).ok_or(Status::NoMemory)?;
        // SAFETY: `size` bytes from here on are in the block.
        self.at = unsafe { at.add(size) };
        Ok(Block { at, left: size })
    }

    /// Takes bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'static mut [u8], Status> {
        self.part(len, |_| Ok::<u8, Status>(0)).map_err(|_| Status::NoMemory)
    }
}
