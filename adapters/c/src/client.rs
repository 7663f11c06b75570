//! Clients: the functions of `mcp.h` that take a `mcp_client`.

use core::ffi::{c_char, c_void};

use mcp_sansio::client::{
    ChangeNotification, Client, ClientEvent, ClientHandle, ClientHandler, ClientInfo, LineClient, PendingId,
    PendingRequest, Request, RequestError, SendError, TransportError,
};
use mcp_sansio::frame::{LineBuffer, NextStep};
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::sink::{LineSink, SliceStorage};

use crate::Status;
use crate::border::{self, ABI, Block, Slice, optional, put, size_of_part, size_of_parts, text};

/// `mcp_client_config`
#[repr(C)]
pub(crate) struct ClientConfig {
    abi: u32,
    name: *const c_char,
    version: *const c_char,
    event: Option<unsafe extern "C" fn(*mut c_void, *const Event)>,
    state: *mut c_void,
    requests: usize,
    input: usize,
    output: usize,
    timeout: u64,
}

/// `mcp_event`
#[repr(C)]
pub(crate) struct Event {
    kind: Kind,
    id: u32,
    ok: bool,
    code: i32,
    json: Slice,
    text: Slice,
}

/// `mcp_event_kind`
#[repr(C)]
#[derive(Clone, Copy)]
enum Kind {
    Connected = 1,
    NotConnected = 2,
    Result = 3,
    Progress = 4,
    Log = 5,
    Changed = 6,
    Notification = 7,
}

/// `mcp_client`: it lies at the beginning of the block, and what it refers to behind it.
pub(crate) struct McpClient {
    inner: LineClient<'static, LineSink<SliceStorage<'static>>>,
    events: Events,
    /// An event handler runs: no function of the client may be called.
    running: bool,
}

/// Passes events to the program.
struct Events {
    event: Option<unsafe extern "C" fn(*mut c_void, *const Event)>,
    state: *mut c_void,
}

impl ClientHandler for Events {
    fn event(&mut self, event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {
        let (Some(tell), Some(event)) = (self.event, Event::of(event)) else { return };
        // SAFETY: a function of the program, with the state that it has given for it.
        unsafe { tell(self.state, &raw const event) };
    }
}

impl Event {
    const fn new(kind: Kind, id: u32, json: Slice, text: Slice) -> Event {
        Event { kind, id, ok: true, code: 0, json, text }
    }

    fn of(event: ClientEvent<'_>) -> Option<Event> {
        let none = Slice::from(&[] as &[u8]);
        let json = |raw: Option<Raw<'_>>| raw.map_or(none, |raw| Slice::from(raw.as_bytes()));
        let words = |text: Option<Text<'_>>| text.map_or(none, |text| Slice::from(text.raw()));
        Some(match event {
            ClientEvent::Connected(hello) => Event::new(Kind::Connected, 0, json(Some(hello.result)), none),
            ClientEvent::Unconnected(error) => Event::new(Kind::NotConnected, 0, none, none).failed(error),
            ClientEvent::Done { token, outcome: Ok(result), .. } => {
                Event::new(Kind::Result, token.to_bits(), json(Some(result)), none)
            }
            ClientEvent::Done { token, outcome: Err(error), .. } => {
                Event::new(Kind::Result, token.to_bits(), none, none).failed(error)
            }
            ClientEvent::Progress { token, done, message, .. } => {
                Event::new(Kind::Progress, token.to_bits(), json(Some(done)), words(message))
            }
            ClientEvent::Log { level, logger, data, .. } => {
                let code = level.map_or(0, |level| level as i32);
                Event { code, ..Event::new(Kind::Log, 0, json(Some(data)), words(logger)) }
            }
            ClientEvent::Changed { what, .. } => {
                let (code, uri) = match what {
                    ChangeNotification::Tools => (1, None),
                    ChangeNotification::Resources => (2, None),
                    ChangeNotification::Prompts => (3, None),
                    ChangeNotification::Resource(uri) => (0, Some(uri)),
                    _ => return None,
                };
                Event { code, ..Event::new(Kind::Changed, 0, none, words(uri)) }
            }
            ClientEvent::Notification { method, params } => {
                Event::new(Kind::Notification, 0, json(params), words(Some(method)))
            }
            _ => return None,
        })
    }

    fn failed(self, error: RequestError<'_>) -> Event {
        match error {
            RequestError::Error(error) => Event {
                ok: false,
                code: error.code,
                json: error.data.map_or(self.json, |data| Slice::from(data.as_bytes())),
                text: Slice::from(error.message.raw()),
                ..self
            },
            RequestError::Lost(lost) => Event { ok: false, text: Slice::from(words_of(lost).as_bytes()), ..self },
        }
    }
}

/// Says why there is no answer, without formatting.
const fn words_of(lost: TransportError) -> &'static str {
    match lost {
        TransportError::TimedOut => "the request took too long",
        TransportError::Closed => "the connection ended before the answer came",
        TransportError::TooLarge => "the answer is larger than the input",
        TransportError::Undeclared => "the server asked for input, which this client has not",
        TransportError::NoCommonRevision => "there is no revision that both sides speak",
        _ => "the answer is not a valid one",
    }
}

impl From<SendError> for Status {
    fn from(error: SendError) -> Status {
        match error {
            SendError::FullNow => Status::Full,
            SendError::FullNever | SendError::NoRoom => Status::TooLarge,
            SendError::Busy => Status::Busy,
            SendError::NotConnected => Status::NotConnected,
            SendError::NotOffered | SendError::NotInRevision => Status::NotOffered,
            _ => Status::Stale,
        }
    }
}

/// Returns the client, unless an event handler runs.
///
/// # Safety
/// `client` is one that `mcp_client_open` has made, or null.
unsafe fn idle<'s>(client: *mut McpClient) -> Result<&'s mut McpClient, Status> {
    // SAFETY: the caller's contract.
    unsafe { border::idle(client, |client| &raw const (*client).running) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_memory(config: *const ClientConfig) -> usize {
    // SAFETY: `config` points to a configuration, or is null.
    let Some(config) = (unsafe { config.as_ref() }).filter(|config| config.abi == ABI) else { return 0 };
    let parts = [
        size_of_part::<McpClient>(1),
        size_of_part::<ClientInfo<'static>>(1),
        size_of_part::<PendingRequest>(config.requests),
        size_of_part::<u8>(config.input),
        size_of_part::<u8>(config.output),
    ];
    size_of_parts(&parts)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_open(
    config: *const ClientConfig,
    memory: *mut u8,
    len: usize,
    client: *mut *mut McpClient,
) -> Status {
    // SAFETY: the contract of mcp.h: the configuration and the memory live as long as the client.
    unsafe {
        match open(config, memory, len) {
            Ok(made) => {
                put(client, made);
                Status::Ok
            }
            Err(status) => status,
        }
    }
}

/// # Safety
/// The contract of `mcp_client_open`.
unsafe fn open(config: *const ClientConfig, memory: *mut u8, len: usize) -> Result<*mut McpClient, Status> {
    // SAFETY: the caller's contract, here and below.
    let config = unsafe { config.as_ref() }.ok_or(Status::Invalid)?;
    if config.abi != ABI {
        return Err(Status::AbiMismatch);
    }
    if config.requests == 0 {
        return Err(Status::BadConfig);
    }
    if len < unsafe { mcp_client_memory(config) } {
        return Err(Status::NoMemory);
    }
    let mut block = unsafe { Block::new(memory, len) }.ok_or(Status::NoMemory)?;
    let no_memory = |_| Status::NoMemory;
    let place = block.part(1, |_| Ok::<_, Status>(core::mem::MaybeUninit::<McpClient>::uninit())).map_err(no_memory)?;
    let (name, version) = unsafe { (text(config.name)?, text(config.version)?) };
    let info = block.part(1, |_| Ok::<_, Status>(ClientInfo::new(name, version))).map_err(no_memory)?;
    let info: &'static ClientInfo<'static> = info.first().ok_or(Status::NoMemory)?;
    let slots = block.part(config.requests, |_| Ok::<_, Status>(PendingRequest::FREE)).map_err(no_memory)?;
    let (input, output) = (block.bytes(config.input)?, block.bytes(config.output)?);
    let mut client = Client::new(info, slots);
    if config.timeout > 0 {
        client = client.timeout(config.timeout);
    }
    client.connect();
    let inner = LineClient::new(LineBuffer::new(input), client, LineSink::new(SliceStorage::new(output)));
    let events = Events { event: config.event, state: config.state };
    Ok(place.first_mut().ok_or(Status::NoMemory)?.write(McpClient { inner, events, running: false }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_run(client: *mut McpClient, now: u64) -> u32 {
    // SAFETY: a client of `mcp_client_open`, here and below. The fields are borrowed one by one, so that `running` can be read.
    unsafe {
        let Ok(whole) = idle(client) else { return 0 };
        whole.running = true;
        let next = (*client).inner.run(now, &mut (*client).events);
        (*client).running = false;
        u32::from(next == NextStep::Write)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_space(client: *mut McpClient, room: *mut usize) -> *mut u8 {
    // SAFETY: as above; `room` points to a number, or is null.
    unsafe {
        let space = idle(client).map_or(&mut [] as &mut [u8], |client| client.inner.space());
        put(room, space.len());
        space.as_mut_ptr()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_filled(client: *mut McpClient, n: usize) {
    // SAFETY: as above.
    if let Ok(client) = unsafe { idle(client) } {
        let n = n.min(client.inner.space().len());
        client.inner.filled(n);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_pending(client: *mut McpClient, len: *mut usize) -> *const u8 {
    // SAFETY: as above; `len` points to a number, or is null.
    unsafe {
        let pending = idle(client).map_or(&[] as &[u8], |client| client.inner.out.pending());
        put(len, pending.len());
        pending.as_ptr()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_sent(client: *mut McpClient, n: usize) {
    // SAFETY: as above.
    if let Ok(client) = unsafe { idle(client) } {
        let n = n.min(client.inner.out.pending().len());
        client.inner.out.sent(n);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_end(client: *mut McpClient) {
    // SAFETY: as above.
    if let Ok(client) = unsafe { idle(client) } {
        client.inner.end_of_input();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_deadline(client: *mut McpClient) -> u64 {
    // SAFETY: as above.
    unsafe { idle(client) }.ok().and_then(|client| client.inner.client.next_deadline()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_list_tools(client: *mut McpClient, cursor: *const c_char, id: *mut u32) -> Status {
    // SAFETY: as above; `cursor` is null or a text with a 0 behind it, `id` is null or points to a number.
    let request = unsafe { optional(cursor) }
        .map(|cursor| cursor.map_or(Request::list_tools(), |cursor| Request::list_tools().after(cursor)));
    unsafe { send(client, request, id) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_call(
    client: *mut McpClient,
    tool: *const c_char,
    arguments: *const c_char,
    progress: bool,
    id: *mut u32,
) -> Status {
    // SAFETY: as above; texts with a 0 behind them, or null.
    let parts = unsafe { text(tool).and_then(|tool| Ok((tool, object(arguments)?))) };
    let (tool, arguments) = match parts {
        Ok(parts) => parts,
        Err(status) => return status,
    };
    let mut request = Request::call(tool);
    if let Some(arguments) = &arguments {
        request = request.arguments(arguments);
    }
    if progress {
        request = request.with_progress();
    }
    // SAFETY: as above.
    unsafe { send(client, Ok(request), id) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_read(client: *mut McpClient, uri: *const c_char, id: *mut u32) -> Status {
    // SAFETY: as above.
    unsafe { send(client, text(uri).map(Request::read), id) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_request(
    client: *mut McpClient,
    method: *const c_char,
    params: *const c_char,
    id: *mut u32,
) -> Status {
    // SAFETY: as above.
    unsafe { send(client, text(method).and_then(|method| Ok(Request::raw(method, object(params)?))), id) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_client_cancel(client: *mut McpClient, id: u32) -> Status {
    // SAFETY: as above.
    let cancelled =
        unsafe { idle(client) }.and_then(|client| Ok(client.inner.handle().cancel(PendingId::from_bits(id), None)?));
    Status::of(cancelled)
}

/// Reads a JSON object of the program, or null.
///
/// # Safety
/// A text with a 0 behind it, or null.
unsafe fn object<'a>(json: *const c_char) -> Result<Option<Raw<'a>>, Status> {
    // SAFETY: the caller's contract.
    unsafe { optional(json) }?.map(|json| Raw::parse(json.as_bytes()).map_err(|_| Status::Invalid)).transpose()
}

/// Sends a request.
///
/// # Safety
/// `client` as for [`idle`]; `id` is null or points to a number.
unsafe fn send(client: *mut McpClient, request: Result<Request<'_>, Status>, id: *mut u32) -> Status {
    let sent = || {
        // SAFETY: the caller's contract.
        unsafe { put(id, idle(client)?.inner.handle().send(&request?)?.to_bits()) };
        Ok(())
    };
    Status::of(sent())
}
