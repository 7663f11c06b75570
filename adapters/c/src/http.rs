//! The connections of a server over HTTP. Sockets are the program's.

use core::ffi::{c_char, c_void};

use mcp_sansio::server::{Millis, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::SliceStorage;
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointConfig, RequestHead, Session, Stream, StreamPolicy};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::{ConnectionLimits, ConnectionStep, ExpireStatus};

use crate::Status;
use crate::border::{Block, Slice, elements, optional, size_of_part, size_of_parts, text};
use crate::config::{Config, NO_ROOM, Refusal, State, refused};

/// `mcp_http_config`
#[repr(C)]
pub(crate) struct HttpConfig {
    pub(crate) connections: usize,
    sessions: usize,
    pub(crate) streams: usize,
    head: usize,
    path: *const c_char,
    hosts: *const *const c_char,
    hosts_len: usize,
    ip_hosts: bool,
    any_host: bool,
    prefer_streams: bool,
    pub(crate) random: Option<Random>,
    allow: Option<Allow>,
}

pub(crate) type Random = unsafe extern "C" fn(*mut c_void, *mut u8, usize);
type Allow = unsafe extern "C" fn(*mut c_void, Slice) -> bool;

/// The default limit of the head of a request, and the room for that of an answer, in bytes.
const HEAD: usize = 2048;
const ANSWER_HEAD: usize = 512;
/// The time to wait before an overdue deadline of the endpoint is looked at again: it waits for something else.
const OVERDUE: Millis = 500;

impl HttpConfig {
    const fn head(&self) -> usize {
        if self.head == 0 { HEAD } else { self.head }
    }

    /// Returns the bytes for events: each stream has room for one answer.
    const fn log(&self, output: usize) -> usize {
        self.streams.saturating_mul(output.saturating_add(ANSWER_HEAD))
    }

    /// Returns the bytes of memory that a server takes besides those that it has in common with one of lines.
    pub(crate) fn size(&self, config: &Config) -> usize {
        size_of_parts(&[
            size_of_part::<Http>(1),
            size_of_part::<&str>(self.hosts_len),
            size_of_part::<Session>(self.sessions),
            size_of_part::<Stream>(self.streams),
            size_of_part::<u8>(self.log(config.output)),
            size_of_part::<u8>(config.output),
            size_of_part::<Place>(self.connections),
            self.buffers(config),
        ])
    }

    /// Returns the bytes for requests of a connection, and those for answers.
    const fn buffer(&self, config: &Config) -> (usize, usize) {
        (config.input.saturating_add(self.head()), config.output.saturating_add(ANSWER_HEAD))
    }

    /// Returns the bytes of the buffers of all connections.
    fn buffers(&self, config: &Config) -> usize {
        let (input, output) = self.buffer(config);
        size_of_part::<u8>(input).saturating_add(size_of_part::<u8>(output)).saturating_mul(self.connections)
    }

    /// Returns what the endpoint has to know.
    ///
    /// # Safety
    /// The texts live as long as the server.
    unsafe fn endpoint(&self, block: &mut Block) -> Result<EndpointConfig<'static>, Refusal> {
        const TEXT: Refusal = Refusal::new(Status::BadConfig, c"the path or a host is not UTF-8, or hosts is null");
        // SAFETY: the caller's contract, here and below.
        let hosts = unsafe { elements(self.hosts, self.hosts_len) }.map_err(|_| TEXT)?;
        let host = |index: usize| hosts.get(index).map_or(Err(TEXT), |host| unsafe { text(*host) }.map_err(|_| TEXT));
        let hosts = block.part(hosts.len(), host).map_err(refused)?;
        let path = unsafe { optional(self.path) }.map_err(|_| TEXT)?;
        let config = EndpointConfig::DEFAULT.hosts(hosts).ip_hosts(self.ip_hosts).any_host(self.any_host);
        let streams = if self.prefer_streams { StreamPolicy::Preferred } else { StreamPolicy::Needed };
        Ok(config.path(path.unwrap_or(EndpointConfig::DEFAULT.path)).streams(streams))
    }

    /// Makes the part of a server that is not there for lines.
    ///
    /// # Safety
    /// The contract of `mcp_http_open`.
    pub(crate) unsafe fn make(
        &self,
        config: &Config,
        block: &mut Block,
        engine: Server<'static>,
        random: Random,
    ) -> Result<&'static mut Http, Refusal> {
        let limits = ConnectionLimits::DEFAULT.line(self.head()).head(self.head()).body(config.input);
        // SAFETY: the caller's contract.
        let endpoint = unsafe { self.endpoint(block) }?;
        let sessions = block.part(self.sessions, |_| Ok(Session::FREE)).map_err(refused)?;
        let streams = block.part(self.streams, |_| Ok(Stream::FREE)).map_err(refused)?;
        let log = block.bytes(self.log(config.output)).map_err(|_| NO_ROOM)?;
        let engine = match config.subscriptions {
            0 => engine,
            len => engine.subscriptions(block.bytes(len).map_err(|_| NO_ROOM)?),
        };
        let endpoint = Endpoint::new(endpoint, engine, sessions, streams, log);
        let body = BodyBuffer::new(SliceStorage::new(block.bytes(config.output).map_err(|_| NO_ROOM)?));
        let (input, output) = self.buffer(config);
        let mut buffers = block.split(self.buffers(config)).map_err(|_| NO_ROOM)?;
        let mut bytes = |len| buffers.bytes(len).map_err(|_| NO_ROOM);
        let places = block.part(self.connections, |_| {
            let http = HttpConnection::new(bytes(input)?, bytes(output)?, limits);
            Ok(Place { http, is_over: false })
        });
        let places = places.map_err(refused)?;
        let made = Http { endpoint, body, places, now: 0, random, allow: self.allow };
        let place = block.part(1, |_| Ok(core::mem::MaybeUninit::<Http>::uninit())).map_err(refused)?;
        Ok(place.first_mut().ok_or(NO_ROOM)?.write(made))
    }
}

/// A place for a connection.
pub(crate) struct Place {
    pub(crate) http: HttpConnection<'static>,
    /// A deadline has passed: close it, even with pending bytes.
    pub(crate) is_over: bool,
}

/// The part of a server that is not there for lines.
pub(crate) struct Http {
    pub(crate) endpoint: Endpoint<'static>,
    body: BodyBuffer<SliceStorage<'static>>,
    pub(crate) places: &'static mut [Place],
    now: Millis,
    random: Random,
    allow: Option<Allow>,
}

impl Http {
    /// Calls `act` with the places, and with what serves one.
    pub(crate) fn with<T>(
        &mut self,
        service: &Service<'static, State>,
        state: &mut State,
        act: impl FnOnce(&mut [Place], &mut ServeContext<'_, 'static, '_, State, SliceStorage<'static>>) -> T,
    ) -> T {
        let (allow, program) = (self.allow, state.state);
        let authorize = move |head: &RequestHead<'_>| match (allow, head.bearer()) {
            (None, _) => Access::Granted { principal: None },
            // SAFETY: a function of the program, with the state that it has given for it.
            (Some(allow), Some(token)) if unsafe { allow(program, Slice::from(token.as_bytes())) } => {
                Access::Granted { principal: None }
            }
            _ => Access::Denied { status: 401, challenge: Some("Bearer") },
        };
        let mut app = App::new(service, state).authorize(&authorize);
        let Http { endpoint, body, places, now, .. } = self;
        act(places, &mut ServeContext { endpoint, app: &mut app, body, now: *now })
    }

    /// Serves a connection.
    pub(crate) fn run(&mut self, at: usize, service: &Service<'static, State>, state: &mut State) -> Next {
        let (random, program) = (self.random, state.state);
        self.with(service, state, |places, host| {
            let Some(place) = places.get_mut(at).filter(|place| !place.is_over) else { return Next::Close };
            if must_wait(&mut place.http, host) {
                return Next::Read;
            }
            // SAFETY: a function of the program, with its state; the bytes are there.
            let mut random = |bytes: &mut [u8]| unsafe { random(program, bytes.as_mut_ptr(), bytes.len()) };
            match place.http.serve(host, &mut random) {
                WaitFor::Read => Next::Read,
                WaitFor::Shut => Next::Shut,
                WaitFor::Close => Next::Close,
                _ => Next::Write,
            }
        })
    }

    /// Sets the time, and ends what takes too long.
    pub(crate) fn expire(&mut self, service: &Service<'static, State>, state: &mut State, now: Millis) {
        self.now = now;
        self.with(service, state, |places, host| {
            if host.endpoint.next_deadline().is_some_and(|deadline| deadline <= now) {
                host.endpoint.expire(host.app, now);
            }
            for place in places {
                let is_due = place.http.connection.next_deadline().is_some_and(|deadline| deadline <= now);
                place.is_over |= is_due && place.http.connection.expire(now) == ExpireStatus::Close;
            }
        });
    }

    /// Begins the end: the requests that are there are answered.
    pub(crate) fn drain(&mut self, service: &Service<'static, State>, state: &mut State) {
        self.with(service, state, |places, host| {
            host.endpoint.drain(host.app);
            places.iter_mut().for_each(|place| place.http.connection.close());
        });
    }

    /// Returns whether nothing is left to send after [`drain`](Http::drain).
    pub(crate) fn is_done(&self) -> bool {
        let is_idle =
            |place: &Place| place.is_over || !place.http.connection.has_pending() && place.http.stream().is_none();
        self.endpoint.is_draining() && self.places.iter().all(is_idle)
    }

    /// Returns the time of the next call of [`expire`](Http::expire).
    pub(crate) fn deadline(&self) -> Option<Millis> {
        let endpoint = self.endpoint.next_deadline();
        let endpoint = endpoint.map(|at| if at <= self.now { self.now.saturating_add(OVERDUE) } else { at });
        let places = self.places.iter().filter(|place| !place.is_over);
        places.filter_map(|place| place.http.connection.next_deadline()).chain(endpoint).min()
    }
}

/// Returns whether a request must wait: it would be refused now, but not when the stream of its session was read.
fn must_wait(http: &mut HttpConnection<'_>, host: &ServeContext<'_, '_, '_, State, SliceStorage<'static>>) -> bool {
    let connection = &mut http.connection;
    if connection.step(host.now) != ConnectionStep::Request {
        return false;
    }
    let request = connection.exchange().map(|(request, _)| request);
    request.is_some_and(|request| host.endpoint.must_wait_for(&request.head.request_head()).is_some())
}

/// `mcp_http_next`
#[repr(C)]
pub(crate) enum Next {
    Read = 0,
    Write = 1,
    Shut = 2,
    Close = 3,
}
