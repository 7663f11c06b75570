//! The Model Context Protocol for C and C++: `include/mcp.h` is the interface, with the contract of each function. This crate is
//! the border between it and [`mcp_sansio`]: pointers become slices and references here, and nothing else is `unsafe`.
//!
//! `build.sh` makes the archive: `libmcp.a` for one target, without unwinding and without the standard library.
#![no_std]
#![allow(clippy::missing_safety_doc, reason = "the contract of each function is in mcp.h, one line each")]

#[cfg(feature = "ask")]
mod ask;
mod border;
mod client;
mod config;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_server;
mod request;
mod server;

/// The status codes of `mcp.h`. Numbers are never reused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "mcp.h has their meanings")]
pub enum Status {
    Ok = 0,
    AbiMismatch = 1,
    NoMemory = 2,
    BadConfig = 3,
    Stale = 4,
    Full = 5,
    TooLarge = 6,
    WrongKind = 7,
    NotFound = 8,
    WrongType = 9,
    NotAsked = 10,
    Answered = 11,
    Invalid = 12,
    Busy = 13,
    NotConnected = 14,
    NotOffered = 15,
}

impl Status {
    /// Returns `Ok`, or the error of a result.
    fn of(result: Result<(), Status>) -> Status {
        result.err().unwrap_or(Status::Ok)
    }
}

impl From<mcp_sansio::server::RespondError> for Status {
    fn from(error: mcp_sansio::server::RespondError) -> Status {
        use mcp_sansio::server::RespondError;
        match error {
            RespondError::FullNow => Status::Full,
            RespondError::FullNever => Status::TooLarge,
            RespondError::WrongKind => Status::WrongKind,
            _ => Status::Stale,
        }
    }
}

impl From<mcp_sansio::server::NotifyStatus> for Status {
    fn from(status: mcp_sansio::server::NotifyStatus) -> Status {
        use mcp_sansio::server::NotifyStatus;
        match status {
            NotifyStatus::Sent => Status::Ok,
            NotifyStatus::NotAsked => Status::NotAsked,
            NotifyStatus::NoRoom => Status::Full,
            _ => Status::Stale,
        }
    }
}

/// Nothing here panics; `build.sh` checks that the archive has no call of this.
#[cfg(mcp_archive)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
