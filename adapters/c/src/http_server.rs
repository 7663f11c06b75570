//! Servers over HTTP: the functions of `mcp.h` that begin with `mcp_http`.

use crate::Status;
use crate::border::{ABI, put};
use crate::config::{Config, NO_ROOM, Problem, Refusal};
use crate::http::{HttpConfig, Next, Place};
use crate::server::{self, McpServer, Wire, idle, running};

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_memory(config: *const Config, http: *const HttpConfig) -> usize {
    // SAFETY: both point to configurations, or are null.
    match unsafe { (config.as_ref().filter(|config| config.abi == ABI), http.as_ref()) } {
        (Some(config), Some(http)) => size(config, http),
        _ => 0,
    }
}

/// Returns the bytes of memory that a server takes.
fn size(config: &Config, http: &HttpConfig) -> usize {
    server::size(config).saturating_add(http.size(config))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_open(
    config: *const Config,
    http: *const HttpConfig,
    memory: *mut u8,
    len: usize,
    server: *mut *mut McpServer,
    problem: *mut Problem,
) -> Status {
    // SAFETY: the contract of mcp.h: the configurations, their tables and the memory live as long as the server.
    unsafe {
        match open(config, http, memory, len) {
            Ok(made) => {
                put(server, made);
                Status::Ok
            }
            Err(refusal) => refusal.report(problem),
        }
    }
}

/// # Safety
/// The contract of `mcp_http_open`.
unsafe fn open(
    config: *const Config,
    http: *const HttpConfig,
    memory: *mut u8,
    len: usize,
) -> Result<*mut McpServer, Refusal> {
    const COUNTS: Refusal = Refusal::new(
        Status::BadConfig,
        c"connections and streams are at least 1, requests at least 2; random is not null",
    );
    // SAFETY: the caller's contract, here and below.
    let config = unsafe { server::checked(config) }?;
    let http = unsafe { http.as_ref() }.ok_or(Refusal::new(Status::Invalid, c"the configuration of HTTP is null"))?;
    let random = http.random.ok_or(COUNTS)?;
    if http.connections == 0 || http.streams == 0 || config.requests < 2 {
        return Err(COUNTS);
    }
    if len < size(config, http) {
        return Err(NO_ROOM);
    }
    unsafe {
        server::build(config, memory, len, |block, engine| Ok(Wire::Http(http.make(config, block, engine, random)?)))
    }
}

/// Calls `act` with the place of a connection, if no handler runs; else, and for another number, returns the default.
///
/// # Safety
/// `server` is one of `mcp_http_open`, or null.
unsafe fn at<'s, T: Default>(server: *mut McpServer, connection: usize, act: impl FnOnce(&'s mut Place) -> T) -> T {
    // SAFETY: the caller's contract.
    let Ok(McpServer { wire: Wire::Http(http), .. }) = (unsafe { idle(server) }) else { return T::default() };
    http.places.get_mut(connection).map_or_else(T::default, act)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_run(server: *mut McpServer, connection: usize) -> u32 {
    // SAFETY: the contract of mcp.h, here and below: a server of `mcp_http_open`.
    unsafe { running(server, |http, service, state| http.run(connection, service, state)) }.unwrap_or(Next::Close)
        as u32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_space(server: *mut McpServer, connection: usize, room: *mut usize) -> *mut u8 {
    // SAFETY: as above; `room` points to a number, or is null.
    unsafe {
        let space: &mut [u8] = at(server, connection, |place| place.http.connection.space());
        put(room, space.len());
        space.as_mut_ptr()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_filled(server: *mut McpServer, connection: usize, n: usize) {
    // SAFETY: as above.
    unsafe {
        at(server, connection, |place| {
            let n = n.min(place.http.connection.space().len());
            place.http.connection.filled(n);
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_pending(server: *mut McpServer, connection: usize, len: *mut usize) -> *const u8 {
    // SAFETY: as above; `len` points to a number, or is null.
    unsafe {
        let pending: &[u8] =
            at(server, connection, |place| if place.is_over { &[] as &[u8] } else { place.http.connection.pending() });
        put(len, pending.len());
        pending.as_ptr()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_sent(server: *mut McpServer, connection: usize, n: usize) {
    // SAFETY: as above.
    unsafe {
        at(server, connection, |place| {
            let n = n.min(place.http.connection.pending().len());
            place.http.connection.sent(n);
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_end(server: *mut McpServer, connection: usize) {
    // SAFETY: as above.
    unsafe { at(server, connection, |place| place.http.connection.ended = true) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_close(server: *mut McpServer, connection: usize) {
    // SAFETY: as above.
    unsafe {
        running(server, |http, service, state| {
            http.with(service, state, |places, host| {
                if let Some(place) = places.get_mut(connection) {
                    place.http.leave(host);
                    place.http.reset();
                    place.is_over = false;
                }
            });
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_http_deadline(server: *mut McpServer) -> u64 {
    // SAFETY: as above.
    let Ok(McpServer { wire: Wire::Http(http), .. }) = (unsafe { idle(server) }) else { return u64::MAX };
    http.deadline().unwrap_or(u64::MAX)
}
