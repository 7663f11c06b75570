//! Requests: the functions of `mcp.h` that take a `mcp_request`, within a handler.

use core::ffi::{c_char, c_void};
use core::ptr;

use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, Complete, GetPrompt, HandlerResult, ReadResource, RequestContext};

use crate::Status;
use crate::border::{Slice, elements, optional, put, text, utf8};

/// `mcp_request`: a request, and the answer of its handler so far.
pub(crate) struct Request<'r, 'c> {
    requested: &'r mut dyn Requested<'c>,
    answer: Option<HandlerResult>,
}

/// The pointer of C to a request; `None` if it is null.
pub(crate) type RequestPointer<'p, 'r, 'c> = Option<&'p mut Request<'r, 'c>>;

/// `mcp_handler`
pub(crate) type Handler = unsafe extern "C" fn(*mut c_void, *mut Request<'_, '_>);

/// A request by its method. A trait: what a program does not offer is linked by its table of functions alone, so not at all.
pub(crate) trait Requested<'c> {
    fn context(&mut self) -> &mut RequestContext<'c>;
    fn reply_result(&mut self, result: Raw<'_>) -> HandlerResult;
    /// Replies with a text. Completions have none.
    fn reply_text(&mut self, _: &str) -> Option<HandlerResult> {
        None
    }
    /// Returns the name or the URI, with the escapes of JSON.
    fn target(&self) -> &'c [u8];
    /// Returns the object with the arguments.
    fn members(&self) -> Option<Raw<'c>> {
        None
    }
    /// Returns a variable of a template, or what was typed so far.
    fn variable(&self, _: &str) -> Option<&'c str> {
        None
    }
    fn as_call(&mut self) -> Option<&mut Call<'c>> {
        None
    }
    fn as_read(&mut self) -> Option<&mut ReadResource<'c>> {
        None
    }
    fn as_completion(&mut self) -> Option<&mut Complete<'c>> {
        None
    }
}

/// Implements [`Requested`] for a context. The arguments are what differs between contexts.
macro_rules! requested {
    ($context:ident: $($own:item)*) => {
        impl<'c> Requested<'c> for $context<'c> {
            fn context(&mut self) -> &mut RequestContext<'c> {
                self
            }
            fn reply_result(&mut self, result: Raw<'_>) -> HandlerResult {
                self.result(result)
            }
            $($own)*
        }
    };
}
requested! { Call:
    fn reply_text(&mut self, text: &str) -> Option<HandlerResult> {
        Some(self.text(text))
    }
    fn target(&self) -> &'c [u8] {
        self.name().raw()
    }
    fn members(&self) -> Option<Raw<'c>> {
        Some(self.arguments())
    }
    fn as_call(&mut self) -> Option<&mut Call<'c>> {
        Some(self)
    }
}
requested! { ReadResource:
    fn reply_text(&mut self, text: &str) -> Option<HandlerResult> {
        Some(self.text(text))
    }
    fn target(&self) -> &'c [u8] {
        self.uri.as_bytes()
    }
    fn variable(&self, name: &str) -> Option<&'c str> {
        self.var(name)
    }
    fn as_read(&mut self) -> Option<&mut ReadResource<'c>> {
        Some(self)
    }
}
requested! { GetPrompt:
    fn reply_text(&mut self, text: &str) -> Option<HandlerResult> {
        Some(self.user(text))
    }
    fn target(&self) -> &'c [u8] {
        self.name().raw()
    }
    fn members(&self) -> Option<Raw<'c>> {
        self.params()?.get("arguments")
    }
}
requested! { Complete:
    fn target(&self) -> &'c [u8] {
        self.argument.raw()
    }
    fn members(&self) -> Option<Raw<'c>> {
        self.params()?.get("context")?.get("arguments")
    }
    fn variable(&self, name: &str) -> Option<&'c str> {
        self.argument.eq_str(name).then_some(self.value)
    }
    fn as_completion(&mut self) -> Option<&mut Complete<'c>> {
        Some(self)
    }
}

/// Returns the context of a request, unless the pointer is null.
pub(crate) fn context<'p, 'c>(request: RequestPointer<'p, '_, 'c>) -> Result<&'p mut RequestContext<'c>, Status> {
    Ok(request.ok_or(Status::Invalid)?.requested.context())
}

/// Answers a request, once.
pub(crate) fn reply<'c>(
    request: RequestPointer<'_, '_, 'c>,
    answer: impl FnOnce(&mut dyn Requested<'c>) -> Result<HandlerResult, Status>,
) -> Status {
    Status::of(match request {
        None => Err(Status::Invalid),
        Some(Request { answer: Some(_), .. }) => Err(Status::Answered),
        Some(request) => answer(request.requested).map(|answer| request.answer = Some(answer)),
    })
}

/// Returns an argument as JSON.
fn argument<'c>(request: Option<&Request<'_, 'c>>, name: &str) -> Result<Raw<'c>, Status> {
    let members = request.ok_or(Status::Invalid)?.requested.members();
    members.and_then(|all| all.get(name)).ok_or(Status::NotFound)
}

/// Runs a function of C, and returns its answer.
pub(crate) fn answer(state: *mut c_void, handler: Option<Handler>, requested: &mut dyn Requested<'_>) -> HandlerResult {
    let mut request = Request { requested, answer: None };
    if let Some(handler) = handler {
        // SAFETY: a function of the program, with the state that it has given for it.
        unsafe { handler(state, &raw mut request) };
    }
    let Request { requested, answer } = request;
    answer.unwrap_or_else(|| requested.context().fail_with(-32603, "The handler gave no answer"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_arg_int(request: Option<&Request<'_, '_>>, name: *const c_char, value: *mut i64) -> Status {
    // SAFETY: `name` is a text, `value` points to a number; or they are null.
    unsafe { read_value(text(name).and_then(|name| argument(request, name)), |found| found.i64(), value) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_arg_bool(request: Option<&Request<'_, '_>>, name: *const c_char, value: *mut bool) -> Status {
    // SAFETY: as above.
    unsafe { read_value(text(name).and_then(|name| argument(request, name)), |found| found.bool(), value) }
}

/// Reads a value that was found.
///
/// # Safety
/// `value` is null or points to a `T`.
pub(crate) unsafe fn read_value<'c, T>(
    found: Result<Raw<'c>, Status>,
    read: impl FnOnce(Raw<'c>) -> Option<T>,
    value: *mut T,
) -> Status {
    match found.and_then(|found| read(found).ok_or(Status::WrongType)) {
        Ok(found) => {
            // SAFETY: the caller's contract.
            unsafe { put(value, found) };
            Status::Ok
        }
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_arg_json(request: Option<&Request<'_, '_>>, name: *const c_char, json: *mut Slice) -> Status {
    let found = || {
        // SAFETY: `name` is null or a text, `json` is null or points to a slice.
        let found = match unsafe { optional(name) }? {
            Some(name) => argument(request, name)?,
            None => request.ok_or(Status::Invalid)?.requested.members().ok_or(Status::NotFound)?,
        };
        unsafe { put(json, Slice::from(found.as_bytes())) };
        Ok(())
    };
    Status::of(found())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_arg_text(
    request: Option<&Request<'_, '_>>,
    name: *const c_char,
    to: *mut u8,
    room: usize,
    len: *mut usize,
) -> Status {
    let found = || {
        // SAFETY: `name` is null or a text.
        let name = unsafe { text(name) }?;
        let found = match request.and_then(|request| request.requested.variable(name)) {
            Some(variable) => Err(variable),
            None => Ok(argument(request, name)?.text().ok_or(Status::WrongType)?),
        };
        // SAFETY: `room` bytes at `to`, a place for the length, or null.
        unsafe { put_text(found, to, room, len) }
    };
    Status::of(found())
}

/// Writes a text, decoded or as it is, and a 0 behind it.
///
/// # Safety
/// `room` bytes at `to` are the caller's to write to; `len` points to a number. Or they are null.
pub(crate) unsafe fn put_text(
    found: Result<Text<'_>, &str>,
    to: *mut u8,
    room: usize,
    len: *mut usize,
) -> Result<(), Status> {
    if to.is_null() || room == 0 {
        return Err(Status::TooLarge);
    }
    // SAFETY: the caller's contract, here and below. The bytes are set before they are read.
    let space = unsafe {
        ptr::write_bytes(to, 0, room);
        core::slice::from_raw_parts_mut(to, room)
    };
    let without_end = space.split_last_mut().map_or(&mut [] as &mut [u8], |(_, space)| space);
    let written = match found {
        Ok(text) => decode(text, without_end),
        Err(variable) => copy(variable, without_end),
    }?;
    if let Some(end) = space.get_mut(written) {
        *end = 0;
    }
    unsafe { put(len, written) };
    Ok(())
}

/// Writes a text without its escapes, and returns its length.
fn decode(text: Text<'_>, space: &mut [u8]) -> Result<usize, Status> {
    match text.plain() {
        Some(plain) => copy(plain, space),
        None => text.decode(space).map(str::len).map_err(|_| Status::TooLarge),
    }
}

fn copy(text: &str, space: &mut [u8]) -> Result<usize, Status> {
    space.get_mut(..text.len()).ok_or(Status::TooLarge)?.copy_from_slice(text.as_bytes());
    Ok(text.len())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_name(request: Option<&Request<'_, '_>>, name: *mut Slice) -> Status {
    let target = request.map(|request| request.requested.target()).ok_or(Status::Invalid);
    let plain = target.and_then(|target| if target.contains(&b'\\') { Err(Status::WrongType) } else { Ok(target) });
    // SAFETY: `name` is null or points to a slice.
    Status::of(plain.map(|target| unsafe { put(name, Slice::from(target)) }))
}

#[unsafe(no_mangle)]
extern "C" fn mcp_now(request: RequestPointer<'_, '_, '_>) -> u64 {
    context(request).map_or(0, |context| context.now())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_text(request: RequestPointer<'_, '_, '_>, text: *const c_char, len: usize) -> Status {
    reply(request, |requested| {
        // SAFETY: `len` bytes at `text`, here and in the functions below.
        requested.reply_text(unsafe { utf8(text, len) }?).ok_or(Status::WrongKind)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_error(request: RequestPointer<'_, '_, '_>, text: *const c_char, len: usize) -> Status {
    // SAFETY: as above.
    reply(request, |it| Ok(it.as_call().ok_or(Status::WrongKind)?.error(unsafe { utf8(text, len) }?)))
}

/// Reads JSON of the program.
///
/// # Safety
/// `len` bytes at `json`.
unsafe fn parse<'a>(json: *const c_char, len: usize) -> Result<Raw<'a>, Status> {
    // SAFETY: the caller's contract.
    Raw::parse(unsafe { elements(json.cast(), len) }?).map_err(|_| Status::Invalid)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_json(request: RequestPointer<'_, '_, '_>, json: *const c_char, len: usize) -> Status {
    // SAFETY: as above.
    reply(request, |it| Ok(it.as_call().ok_or(Status::WrongKind)?.json_raw(unsafe { parse(json, len) }?)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_blob(request: RequestPointer<'_, '_, '_>, bytes: *const u8, len: usize) -> Status {
    // SAFETY: as above.
    reply(request, |it| Ok(it.as_read().ok_or(Status::WrongKind)?.blob(unsafe { elements(bytes, len) }?)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_result(request: RequestPointer<'_, '_, '_>, json: *const c_char, len: usize) -> Status {
    // SAFETY: as above.
    reply(request, |requested| {
        let result = unsafe { parse(json, len) }?;
        let is_object = result.kind() == JsonKind::Object;
        if is_object { Ok(requested.reply_result(result)) } else { Err(Status::Invalid) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_fail(
    request: RequestPointer<'_, '_, '_>,
    code: i32,
    text: *const c_char,
    len: usize,
) -> Status {
    // SAFETY: as above.
    reply(request, |requested| Ok(requested.context().fail_with(code, unsafe { utf8(text, len) }?)))
}

#[unsafe(no_mangle)]
extern "C" fn mcp_reply_not_found(request: RequestPointer<'_, '_, '_>) -> Status {
    reply(request, |requested| Ok(requested.as_read().ok_or(Status::WrongKind)?.not_found()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_reply_values(
    request: RequestPointer<'_, '_, '_>,
    values: *const *const c_char,
    len: usize,
) -> Status {
    reply(request, |requested| {
        // SAFETY: `len` texts with a 0 behind each. Those that are not UTF-8 are left out.
        let values = unsafe { elements(values, len) }?.iter().filter_map(|value| unsafe { text(*value) }.ok());
        Ok(requested.as_completion().ok_or(Status::WrongKind)?.matching(values))
    })
}

/// Lets the connection go, over HTTP: the client comes back for the answer.
#[cfg(feature = "http")]
#[unsafe(no_mangle)]
extern "C" fn mcp_release(request: RequestPointer<'_, '_, '_>) {
    let _ = context(request).map(RequestContext::release);
}

#[unsafe(no_mangle)]
extern "C" fn mcp_later(request: RequestPointer<'_, '_, '_>) -> u64 {
    let mut bits = 0;
    reply(request, |requested| {
        let (token, later) = requested.context().later();
        bits = token.to_bits();
        Ok(later)
    });
    bits
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_progress(
    request: RequestPointer<'_, '_, '_>,
    done: u64,
    total: u64,
    message: *const c_char,
) -> Status {
    // SAFETY: a text with a 0 behind it, or null.
    match (unsafe { progress(done, total, message) }, context(request)) {
        (Ok(progress), Ok(context)) => context.progress(progress).into(),
        _ => Status::Invalid,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_log(
    request: RequestPointer<'_, '_, '_>,
    level: u32,
    logger: *const c_char,
    text: *const c_char,
    len: usize,
) -> Status {
    let level = match level {
        1 => LoggingLevel::Debug,
        2 => LoggingLevel::Info,
        3 => LoggingLevel::Notice,
        4 => LoggingLevel::Warning,
        5 => LoggingLevel::Error,
        6 => LoggingLevel::Critical,
        7 => LoggingLevel::Alert,
        8 => LoggingLevel::Emergency,
        _ => return Status::Invalid,
    };
    // SAFETY: `logger` is null or a text with a 0 behind it; `len` bytes at `text`.
    match unsafe { (optional(logger), utf8(text, len), context(request)) } {
        (Ok(logger), Ok(text), Ok(context)) => context.log_as(logger, level, &text).into(),
        _ => Status::Invalid,
    }
}

/// Makes the members of a progress notification.
///
/// # Safety
/// `message` is null, or a text with a 0 behind it that lives for `'a`.
pub(crate) unsafe fn progress<'a>(done: u64, total: u64, message: *const c_char) -> Result<Progress<'a>, Status> {
    let mut progress = Progress::new(done);
    if total > 0 {
        progress = progress.of(total);
    }
    // SAFETY: the caller's contract.
    Ok(unsafe { optional(message) }?.map_or(progress, |message| progress.message(message)))
}
