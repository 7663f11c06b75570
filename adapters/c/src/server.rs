//! Servers: the functions of `mcp.h` that take a `mcp_server`.

use core::ffi::{c_char, c_void};

use mcp_sansio::frame::{LineBuffer, NextStep};
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MIN_ROOM, RequestSlot, RequestToken, Server, ServerChange};
use mcp_sansio::service::{self, HandlerResult, LateRequest, Service};
use mcp_sansio::sink::{LineSink, SliceStorage};
#[cfg(feature = "http")]
use mcp_sansio_http::endpoint::App;

use crate::Status;
#[cfg(feature = "ask")]
use crate::ask;
use crate::border::{self, ABI, Block, elements, put, size_of_part, size_of_parts, text, texts};
use crate::config::{Config, DUPLICATE, NO_ROOM, Problem, Prompt, Refusal, Resource, State, Tool, cancelled, refused};
#[cfg(feature = "http")]
use crate::http;
use crate::request::{Handler, answer, progress};

/// The reason of `Status::Busy` and of a null pointer.
const BUSY: &core::ffi::CStr = c"the server is null, or one of its handlers runs";

/// `mcp_server`: it lies at the beginning of the block, and what it refers to behind it.
pub(crate) struct McpServer {
    pub(crate) service: Service<'static, State>,
    pub(crate) state: State,
    pub(crate) wire: Wire,
    /// The room for resources, prompts and subscriptions.
    block: Block,
    /// The bytes for subscriptions.
    subscriptions: usize,
    /// A handler runs: no function but those of its request may be called.
    pub(crate) running: bool,
}

/// The transport of a server.
#[allow(
    clippy::large_enum_variant,
    reason = "it lies in the block of the caller, and a program with lines needs the large one"
)]
pub(crate) enum Wire {
    Lines(Lines),
    #[cfg(feature = "http")]
    Http(&'static mut http::Http),
}

impl Wire {
    /// Returns the server of lines.
    fn lines(&mut self) -> Result<&mut Lines, Status> {
        match self {
            Wire::Lines(lines) => Ok(lines),
            #[cfg(feature = "http")]
            Wire::Http(_) => Err(Status::WrongKind),
        }
    }
}

type Lines = LineServer<'static, LineSink<SliceStorage<'static>>>;

impl McpServer {
    fn publish(&mut self, change: ServerChange<'_>) {
        match &mut self.wire {
            Wire::Lines(lines) => lines.server.publish(change),
            #[cfg(feature = "http")]
            Wire::Http(http) => http.endpoint.publish(change),
        }
    }

    /// Sets more of the service. After an error it is as before.
    fn offer(
        &mut self,
        set: impl FnOnce(Service<'static, State>) -> Result<Service<'static, State>, service::DefinitionError>,
    ) -> Result<(), Refusal> {
        // SAFETY: a copy, which owns nothing and is not dropped: one of the two is forgotten, here or in `set`.
        let old = unsafe { core::ptr::read(&raw const self.service) };
        self.service = set(old).map_err(|_| DUPLICATE)?;
        Ok(())
    }
}

/// Returns the server, unless a handler runs.
///
/// # Safety
/// `server` is one that `mcp_open` has made, or null.
pub(crate) unsafe fn idle<'s>(server: *mut McpServer) -> Result<&'s mut McpServer, Status> {
    // SAFETY: the caller's contract.
    unsafe { border::idle(server, |server| &raw const (*server).running) }
}

/// Calls `act` with all of the server, while functions of it return `MCP_BUSY`.
///
/// # Safety
/// `server` is one of `mcp_http_open`, or null.
#[cfg(feature = "http")]
pub(crate) unsafe fn running<T>(
    server: *mut McpServer,
    act: impl FnOnce(&mut http::Http, &Service<'static, State>, &mut State) -> T,
) -> Option<T> {
    // SAFETY: the caller's contract. The fields are borrowed one by one, so that `running` can be read while handlers run.
    unsafe {
        idle(server).ok()?.running = true;
        let done = match &mut (*server).wire {
            Wire::Http(http) => Some(act(http, &(*server).service, &mut (*server).state)),
            Wire::Lines(_) => None,
        };
        (*server).running = false;
        done
    }
}

/// Sets more of a server, and reports why not.
///
/// # Safety
/// `server` as for [`idle`]; `problem` is null or points to a [`Problem`].
unsafe fn offering(
    server: *mut McpServer,
    problem: *mut Problem,
    offer: impl FnOnce(&mut McpServer) -> Result<(), Refusal>,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        match idle(server).map_err(|status| Refusal::new(status, BUSY)).and_then(offer) {
            Ok(()) => Status::Ok,
            Err(refusal) => refusal.report(problem),
        }
    }
}

/// Returns the server of lines, unless a handler runs.
///
/// # Safety
/// As for [`idle`].
unsafe fn lines<'s>(server: *mut McpServer) -> Result<&'s mut Lines, Status> {
    // SAFETY: the caller's contract.
    unsafe { idle(server) }.and_then(|server| server.wire.lines())
}

#[unsafe(no_mangle)]
extern "C" fn mcp_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_memory(config: *const Config) -> usize {
    // SAFETY: `config` points to a configuration, or is null.
    let Some(config) = (unsafe { config.as_ref() }).filter(|config| config.abi == ABI) else { return 0 };
    size_of_parts(&[size(config), size_of_part::<u8>(config.input), size_of_part::<u8>(config.output)])
}

/// Returns the bytes of memory that a server takes without its buffers.
pub(crate) fn size(config: &Config) -> usize {
    size_of_parts(&[
        size_of_part::<McpServer>(1),
        size_of_part::<RequestSlot>(config.requests),
        size_of_part::<service::Tool<State>>(config.tools_len),
        size_of_part::<u8>(config.scratch),
        // An entry is a resource or a template; each of the two tables is rounded up by itself.
        size_of_part::<service::ResourceTemplate<State>>(config.resources),
        if config.resources > 0 { 8 } else { 0 },
        size_of_part::<service::Prompt<State>>(config.prompts),
        size_of_part::<service::PromptArgument<'static>>(config.prompt_arguments),
        size_of_part::<u8>(config.subscriptions),
        #[cfg(feature = "ask")]
        ask::size(config),
    ])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_open(
    config: *const Config,
    memory: *mut u8,
    len: usize,
    server: *mut *mut McpServer,
    problem: *mut Problem,
) -> Status {
    // SAFETY: the contract of mcp.h: the configuration, its tables and the memory live as long as the server.
    unsafe {
        match open(config, memory, len) {
            Ok(made) => {
                put(server, made);
                Status::Ok
            }
            Err(refusal) => refusal.report(problem),
        }
    }
}

/// # Safety
/// The contract of `mcp_open`.
unsafe fn open(config: *const Config, memory: *mut u8, len: usize) -> Result<*mut McpServer, Refusal> {
    // SAFETY: the caller's contract.
    unsafe {
        let config = checked(config)?;
        if len < mcp_memory(config) {
            return Err(NO_ROOM);
        }
        build(config, memory, len, |block, server| {
            let server = if config.reopening { server.reopening() } else { server };
            let mut bytes = |len| block.bytes(len).map_err(|_| NO_ROOM);
            let (input, output) = (LineBuffer::new(bytes(config.input)?), SliceStorage::new(bytes(config.output)?));
            Ok(Wire::Lines(LineServer::new(input, server, LineSink::new(output))))
        })
    }
}

/// Returns the configuration, if its numbers are right.
///
/// # Safety
/// `config` points to a configuration, or is null.
pub(crate) unsafe fn checked<'c>(config: *const Config) -> Result<&'c Config, Refusal> {
    // SAFETY: the caller's contract.
    let config = unsafe { config.as_ref() }.ok_or(Refusal::new(Status::Invalid, c"the configuration is null"))?;
    if config.abi != ABI {
        return Err(Refusal::new(Status::AbiMismatch, c"the header is of another ABI"));
    }
    if config.requests == 0 || config.output < MIN_ROOM {
        return Err(Refusal::new(Status::BadConfig, c"requests is at least 1, output at least 252"));
    }
    Ok(config)
}

/// Makes a server, whose wire `make` makes of the rest of the block and the engine.
///
/// # Safety
/// The contract of `mcp_open`.
pub(crate) unsafe fn build(
    config: &Config,
    memory: *mut u8,
    len: usize,
    make: impl FnOnce(&mut Block, Server<'static>) -> Result<Wire, Refusal>,
) -> Result<*mut McpServer, Refusal> {
    const TEXT: Refusal = Refusal::new(Status::BadConfig, c"name, version or instructions: missing or not UTF-8");
    // SAFETY: the caller's contract, here and below.
    let mut block = unsafe { Block::new(memory, len) }
        .ok_or(Refusal::new(Status::NoMemory, c"the block is null or not aligned to 8 bytes"))?;
    let place = block.part(1, |_| Ok::<_, Refusal>(core::mem::MaybeUninit::<McpServer>::uninit())).map_err(refused)?;
    let slots = block.part(config.requests, |_| Ok::<_, Refusal>(RequestSlot::FREE)).map_err(refused)?;
    let table = unsafe { elements(config.tools, config.tools_len) }
        .map_err(|_| Refusal::new(Status::Invalid, c"the table of tools is null"))?;
    let entry = |index: usize| table.get(index).map_or(Err(NO_ROOM), |tool: &Tool| unsafe { tool.entry(index) });
    let tools = block.part(table.len(), entry).map_err(refused)?;
    let scratch = block.bytes(config.scratch).map_err(|_| NO_ROOM)?;

    let mut read = [None; 3];
    unsafe { texts(&[config.name, config.version, config.instructions], &mut read) }.map_err(|_| TEXT)?;
    let [Some(name), Some(version), instructions] = read else { return Err(TEXT) };
    let mut service = Service::new(name, version).on_cancel(cancelled);
    if let Some(instructions) = instructions {
        service = service.instructions(instructions);
    }
    if !table.is_empty() {
        service = service.checked_tools(tools).map_err(|_| DUPLICATE)?.feature(ServerCapability::ToolsChanged);
    }
    let engine = Server::new(slots).scratch(scratch);
    #[cfg(feature = "ask")]
    let engine = unsafe { ask::lend(config, &mut block, engine) }?;
    let wire = make(&mut block, engine)?;
    let state = State { state: config.state, cancelled: config.cancelled, tools: table, resources: &[], prompts: &[] };
    let place = place.first_mut().ok_or(NO_ROOM)?;
    Ok(place.write(McpServer { service, state, wire, block, subscriptions: config.subscriptions, running: false }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_offer_resources(
    server: *mut McpServer,
    table: *const Resource,
    len: usize,
    problem: *mut Problem,
) -> Status {
    // SAFETY: the table lives as long as the server.
    unsafe { offering(server, problem, |server| offer_resources(server, table, len)) }
}

/// # Safety
/// The contract of `mcp_offer_resources`.
unsafe fn offer_resources(server: &mut McpServer, table: *const Resource, len: usize) -> Result<(), Refusal> {
    // SAFETY: the caller's contract, here and below.
    let table = unsafe { elements(table, len) }.map_err(|_| Refusal::new(Status::Invalid, c"the table is null"))?;
    // Resources come before templates, as in the core, so that an index is enough to find an entry.
    let templates = table.iter().take_while(|entry| !unsafe { entry.is_template() }).count();
    if table.iter().skip(templates).any(|entry| !unsafe { entry.is_template() }) {
        return Err(Refusal::new(Status::BadConfig, c"templates come behind all resources"));
    }
    let entry = |index: usize| table.get(index).ok_or(NO_ROOM);
    let resources = server.block.part(templates, |index| unsafe { entry(index)?.entry(index) }).map_err(refused)?;
    let rest = server
        .block
        .part(table.len() - templates, |index| unsafe { entry(templates + index)?.template(templates + index) })
        .map_err(refused)?;
    server.offer(|service| {
        let service = service.checked_resources(resources)?.feature(ServerCapability::ResourcesChanged);
        if rest.is_empty() { Ok(service) } else { service.checked_templates(rest) }
    })?;
    server.state.resources = table;
    if server.subscriptions > 0 {
        server.offer(|service| Ok(service.feature(ServerCapability::Subscribe)))?;
        // An endpoint has its memory from the beginning; lines get it here, so that servers without resources are linked without.
        let Ok(lines) = server.wire.lines() else { return Ok(()) };
        let memory = server.block.bytes(server.subscriptions).map_err(|_| NO_ROOM)?;
        let engine: *mut Server<'static> = &mut lines.server;
        // SAFETY: the engine is moved out, and back with more memory; nothing in between panics.
        unsafe { engine.write(engine.read().subscriptions(memory)) };
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_offer_prompts(
    server: *mut McpServer,
    table: *const Prompt,
    len: usize,
    problem: *mut Problem,
) -> Status {
    // SAFETY: the table lives as long as the server.
    unsafe { offering(server, problem, |server| offer_prompts(server, table, len)) }
}

/// # Safety
/// The contract of `mcp_offer_prompts`.
unsafe fn offer_prompts(server: &mut McpServer, table: *const Prompt, len: usize) -> Result<(), Refusal> {
    // SAFETY: the caller's contract, here and below.
    let table = unsafe { elements(table, len) }.map_err(|_| Refusal::new(Status::Invalid, c"the table is null"))?;
    let arguments =
        |index: usize| table.get(index).map_or(Err(NO_ROOM), |prompt: &Prompt| unsafe { prompt.arguments(index) });
    let mut all = (0..table.len()).flat_map(|index| arguments(index).unwrap_or(&[]));
    let count = all.clone().count();
    let made = |_: usize| {
        let argument = all.next().ok_or(NO_ROOM)?;
        unsafe { argument.entry() }
            .map_err(|_| Refusal::new(Status::BadConfig, c"the name of an argument is missing or not UTF-8"))
    };
    let mut rest: &'static [_] = server.block.part(count, made).map_err(refused)?;
    let entry = |index: usize| {
        let (own, others) = rest.split_at_checked(arguments(index)?.len()).ok_or(NO_ROOM)?;
        rest = others;
        unsafe { table.get(index).ok_or(NO_ROOM)?.entry(own, index) }
    };
    let prompts = server.block.part(table.len(), entry).map_err(refused)?;
    server.offer(|service| Ok(service.checked_prompts(prompts)?.feature(ServerCapability::PromptsChanged)))?;
    server.state.prompts = table;
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_offer_logging(server: *mut McpServer) -> Status {
    // SAFETY: the contract of mcp.h, here and below: a server of `mcp_open`.
    Status::of(unsafe { idle(server) }.and_then(|server| {
        server.offer(|service| Ok(service.feature(ServerCapability::Logging))).map_err(|_| Status::BadConfig)
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_run(server: *mut McpServer) -> u32 {
    // SAFETY: as above. The fields are borrowed one by one, so that `running` can be read while handlers run.
    unsafe {
        let Ok(whole) = idle(server) else { return 0 };
        whole.running = true;
        let next = match &mut (*server).wire {
            Wire::Lines(lines) => lines.run(&(*server).service, &mut (*server).state),
            #[cfg(feature = "http")]
            Wire::Http(_) => NextStep::Read,
        };
        (*server).running = false;
        u32::from(next == NextStep::Write)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_space(server: *mut McpServer, room: *mut usize) -> *mut u8 {
    // SAFETY: as above; `room` points to a number, or is null.
    unsafe {
        let space = lines(server).map_or(&mut [] as &mut [u8], |lines| lines.space());
        put(room, space.len());
        space.as_mut_ptr()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_filled(server: *mut McpServer, n: usize) {
    // SAFETY: as above.
    if let Ok(lines) = unsafe { lines(server) } {
        let n = n.min(lines.space().len());
        lines.filled(n);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_pending(server: *mut McpServer, len: *mut usize) -> *const u8 {
    // SAFETY: as above; `len` points to a number, or is null.
    unsafe {
        let pending = lines(server).map_or(&[] as &[u8], |lines| lines.out.pending());
        put(len, pending.len());
        pending.as_ptr()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_sent(server: *mut McpServer, n: usize) {
    // SAFETY: as above.
    if let Ok(lines) = unsafe { lines(server) } {
        let n = n.min(lines.out.pending().len());
        lines.out.sent(n);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_end(server: *mut McpServer) {
    // SAFETY: as above.
    unsafe {
        match lines(server) {
            Ok(lines) => lines.end_of_input(),
            #[cfg(feature = "http")]
            Err(Status::WrongKind) => _ = running(server, |http, service, state| http.drain(service, state)),
            Err(_) => {}
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_done(server: *mut McpServer) -> bool {
    // SAFETY: as above.
    unsafe { idle(server) }.is_ok_and(|server| match &server.wire {
        Wire::Lines(lines) => lines.is_done(),
        #[cfg(feature = "http")]
        Wire::Http(http) => http.is_done(),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_set_now(server: *mut McpServer, millis: u64) {
    // SAFETY: as above.
    unsafe {
        match lines(server) {
            Ok(lines) => lines.server.expire(millis),
            #[cfg(feature = "http")]
            Err(Status::WrongKind) => _ = running(server, |http, service, state| http.expire(service, state, millis)),
            Err(_) => {}
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_new_peer(server: *mut McpServer) {
    // SAFETY: as above.
    if let Ok(lines) = unsafe { lines(server) } {
        lines.new_peer();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_changed(server: *mut McpServer, list: u32) -> Status {
    let change = match list {
        1 => ServerChange::Tools,
        2 => ServerChange::Resources,
        3 => ServerChange::Prompts,
        _ => return Status::Invalid,
    };
    // SAFETY: as above.
    Status::of(unsafe { idle(server) }.map(|server| server.publish(change)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_updated(server: *mut McpServer, uri: *const c_char) -> Status {
    // SAFETY: as above; a text with a 0 behind it, or null.
    let updated = unsafe { idle(server).and_then(|server| Ok((server, text(uri)?))) };
    Status::of(updated.map(|(server, uri)| server.publish(ServerChange::Resource(uri))))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_answer(
    server: *mut McpServer,
    token: u64,
    handler: Option<Handler>,
    state: *mut c_void,
) -> Status {
    let token = RequestToken::from_bits(token);
    // SAFETY: as above.
    unsafe { respond(server, token, |call| answer(state, handler, call)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_answer_read(
    server: *mut McpServer,
    token: u64,
    uri: *const c_char,
    handler: Option<Handler>,
    state: *mut c_void,
) -> Status {
    let token = RequestToken::from_bits(token);
    // SAFETY: as above; a text with a 0 behind it, or null.
    unsafe {
        text(uri).map_or_else(
            |status| status,
            |uri| respond(server, token.as_read(uri), |read| answer(state, handler, read)),
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_answer_prompt(
    server: *mut McpServer,
    token: u64,
    handler: Option<Handler>,
    state: *mut c_void,
) -> Status {
    let token = RequestToken::from_bits(token);
    // SAFETY: as above.
    unsafe { respond(server, token.as_prompt(), |get| answer(state, handler, get)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_answer_completion(
    server: *mut McpServer,
    token: u64,
    value: *const c_char,
    handler: Option<Handler>,
    state: *mut c_void,
) -> Status {
    let token = RequestToken::from_bits(token);
    // SAFETY: as above; a text with a 0 behind it, or null.
    unsafe {
        text(value).map_or_else(
            |status| status,
            |value| respond(server, token.as_completion(value), |complete| answer(state, handler, complete)),
        )
    }
}

/// Answers a request that was put off.
///
/// # Safety
/// As for [`idle`].
unsafe fn respond<R: LateRequest>(
    server: *mut McpServer,
    request: R,
    answer: impl FnOnce(&mut R::Context<'_>) -> HandlerResult,
) -> Status {
    // SAFETY: the caller's contract; the fields are borrowed one by one, as in `mcp_run`.
    unsafe {
        match idle(server) {
            Ok(whole) => whole.running = true,
            Err(status) => return status,
        }
        let (service, state) = (&(*server).service, &mut (*server).state);
        let answered = match &mut (*server).wire {
            Wire::Lines(lines) => lines.answer(service, state, request, |_, context| answer(context)),
            #[cfg(feature = "http")]
            Wire::Http(http) => {
                http.endpoint.answer(&mut App::new(service, state), request, |_, context| answer(context))
            }
        };
        (*server).running = false;
        answered.map_or_else(Status::from, |()| Status::Ok)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mcp_progress_of(
    server: *mut McpServer,
    token: u64,
    done: u64,
    total: u64,
    message: *const c_char,
) -> Status {
    let token = RequestToken::from_bits(token);
    // SAFETY: as above; a text with a 0 behind it, or null.
    let sent = || unsafe {
        let (server, progress) = (idle(server)?, progress(done, total, message)?);
        Ok(match &mut server.wire {
            Wire::Lines(lines) => lines.progress(token, progress),
            #[cfg(feature = "http")]
            Wire::Http(http) => http.endpoint.progress(token, progress),
        })
    };
    sent().map_or_else(|status: Status| status, Status::from)
}
