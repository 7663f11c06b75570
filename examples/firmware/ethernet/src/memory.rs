//! All buffers in one place, with their purpose and size.

use board::Static;
use mcp_sansio::server::{Millis, RequestSlot, Server};
use mcp_sansio::sink::SliceStorage;
use mcp_sansio_http::endpoint::{EndpointConfig, Session, Stream, StreamPolicy};
use mcp_sansio_http::http1::ConnectionLimits;
use mcp_sansio_http::seal::HmacSeal;
use smoltcp::iface::{SocketSet, SocketStorage};
use smoltcp::socket::tcp;

use crate::connection::Connection;
use crate::net::{FRAME, Net, Port, QUEUE, Queue};
use crate::{Body, Endpoint, IN_FLIGHT};

/// The most connections at a time. The fixture keeps tasks in the memory of one of them.
const SOCKETS: usize = if cfg!(feature = "fixture") { 6 } else { 7 };
/// Received bytes of a connection that are not read yet.
const RECEIVED: usize = 512;
/// Sent bytes of a connection that are not acknowledged yet.
const SENT: usize = 512;
/// The longest request, head and body together.
const INPUT: usize = 2048;
/// The output of a connection, head and body together; an event stream passes through in windows.
const OUTPUT: usize = 1152;
/// The longest answer that is not an event stream. Longer lists and contents go out as event streams, in windows.
pub(crate) const BODY: usize = 960;
/// The most clients of the revisions with sessions.
const SESSIONS: usize = 16;
/// The most event streams, including those whose clients may come back.
const STREAMS: usize = 10;
/// The log of events: not sent yet, or kept for clients that may come back.
const LOG: usize = 5 * 1024 - 480;
/// The share of one event stream in the log: the window of longer output.
const SHARE: usize = 968;
/// The questions to clients, with their contents.
const ASKS: usize = 1024;
/// The URIs of subscriptions, and the ids of their requests.
const SUBSCRIPTIONS: usize = 512;
/// For arguments with escapes.
const SCRATCH: usize = 512;

static SOCKET_STORAGE: Static<[SocketStorage<'static>; SOCKETS + 1]> = Static::new([SocketStorage::EMPTY; SOCKETS + 1]);
static SOCKET_BYTES: Static<[([u8; RECEIVED], [u8; SENT]); SOCKETS]> =
    Static::new([([0; RECEIVED], [0; SENT]); SOCKETS]);
static CONNECTION_BYTES: Static<[([u8; INPUT], [u8; OUTPUT]); SOCKETS]> =
    Static::new([([0; INPUT], [0; OUTPUT]); SOCKETS]);
static CONNECTIONS: Static<[Option<Connection>; SOCKETS]> = Static::new([const { None }; SOCKETS]);
static FRAMES: Static<([u8; FRAME], [u8; FRAME])> = Static::new(([0; FRAME], [0; FRAME]));
static OPENINGS: Static<Queue> = Static::new([None; QUEUE]);
static NET: Static<Option<Net>> = Static::new(None);
static ENDPOINT: Static<Option<Endpoint>> = Static::new(None);
static BODY_BYTES: Static<[u8; BODY]> = Static::new([0; BODY]);
static THE_BODY: Static<Option<Body>> = Static::new(None);
static SESSION_SLOTS: Static<[Session; SESSIONS]> = Static::new([Session::FREE; SESSIONS]);
static STREAM_SLOTS: Static<[Stream; STREAMS]> = Static::new([Stream::FREE; STREAMS]);
static LOG_BYTES: Static<[u8; LOG]> = Static::new([0; LOG]);
static REQUEST_SLOTS: Static<[RequestSlot; IN_FLIGHT]> = Static::new([RequestSlot::FREE; IN_FLIGHT]);
static ASK_BYTES: Static<[u8; ASKS]> = Static::new([0; ASKS]);
static SUBSCRIPTION_BYTES: Static<[u8; SUBSCRIPTIONS]> = Static::new([0; SUBSCRIPTIONS]);
static SCRATCH_BYTES: Static<[u8; SCRATCH]> = Static::new([0; SCRATCH]);
static SEAL: Static<Option<HmacSeal>> = Static::new(None);

/// The names that requests may be for, besides localhost, which QEMU forwards. Any IP address is accepted too: with
/// DHCP a board learns its own at run time.
const CONFIG: EndpointConfig<'static> = EndpointConfig::DEFAULT
    .hosts(&["board.local"])
    .ip_hosts(true)
    .streams(StreamPolicy::Preferred)
    .session_idle(600_000)
    .session_rest(100);

const LIMITS: ConnectionLimits = ConnectionLimits::DEFAULT
    .line(256)
    .head(1536)
    .body(INPUT)
    .drain(16 * 1024)
    .head_time(5_000)
    .body_time(10_000)
    .idle_time(30_000)
    .write_time(20_000);

/// All connections, one in each place.
pub(crate) type Connections = &'static mut [Option<Connection>; SOCKETS];

/// The values that the main loop works with.
pub(crate) struct Memory {
    pub(crate) net: &'static mut Net,
    pub(crate) endpoint: &'static mut Endpoint,
    pub(crate) connections: Connections,
    pub(crate) body: &'static mut Body,
}

impl Memory {
    /// Takes all memory. Works once. Not inlined: otherwise its temporaries would stay in the frame of `main`. The
    /// parts are not inlined either: each gives its stack back before the next one runs.
    #[inline(never)]
    pub(crate) fn take(port: board::EthernetPort, now: Millis) -> Option<Self> {
        let mut port = take_port(port)?;
        let seal = take_seal(&mut port)?;
        let endpoint = take_endpoint(seal)?;
        let (net, connections) = take_net(port, now)?;
        let body = THE_BODY.take()?.insert(Body::new(SliceStorage::new(BODY_BYTES.take()?)));
        Some(Memory { net, endpoint, connections, body })
    }
}

#[inline(never)]
fn take_port(port: board::EthernetPort) -> Option<Port> {
    let (received, sent) = FRAMES.take()?;
    Some(Port::new(port, received, sent, OPENINGS.take()?))
}

#[inline(never)]
fn take_seal(port: &mut Port) -> Option<&'static HmacSeal> {
    let mut key = [0; 32];
    port.random.fill(&mut key);
    Some(SEAL.take()?.insert(HmacSeal::new(&key)))
}

#[inline(never)]
fn take_endpoint(seal: &'static HmacSeal) -> Option<&'static mut Endpoint> {
    let (asks, subscriptions, scratch) = (ASK_BYTES.take()?, SUBSCRIPTION_BYTES.take()?, SCRATCH_BYTES.take()?);
    let server = Server::new(REQUEST_SLOTS.take()?).seal(seal).asks(asks);
    let endpoint = place_endpoint(server.subscriptions(subscriptions).scratch(scratch))?;
    endpoint.set_share(SHARE);
    Some(endpoint)
}

/// Not inlined, to keep copies of large values off the stack.
#[inline(never)]
fn place_endpoint(server: Server<'static>) -> Option<&'static mut Endpoint> {
    let (sessions, streams, log) = (SESSION_SLOTS.take()?, STREAM_SLOTS.take()?, LOG_BYTES.take()?);
    let place = ENDPOINT.take()?;
    *place = Some(Endpoint::new(CONFIG, server.ask_timeout(60_000), sessions, streams, log));
    place.as_mut()
}

#[inline(never)]
fn take_net(port: Port, now: Millis) -> Option<(&'static mut Net, Connections)> {
    let mut sockets = SocketSet::new(&mut SOCKET_STORAGE.take()?[..]);
    let connections = CONNECTIONS.take()?;
    let bytes = SOCKET_BYTES.take()?.iter_mut().zip(CONNECTION_BYTES.take()?);
    for (place, (socket, connection)) in connections.iter_mut().zip(bytes) {
        add_connection(place, &mut sockets, socket, connection);
    }
    Some((NET.take()?.insert(Net::new(port, sockets, now)), connections))
}

#[inline(never)]
fn add_connection(
    place: &mut Option<Connection>,
    sockets: &mut SocketSet<'static>,
    (received, sent): &'static mut ([u8; RECEIVED], [u8; SENT]),
    (input, output): &'static mut ([u8; INPUT], [u8; OUTPUT]),
) {
    let socket = tcp::Socket::new(tcp::SocketBuffer::new(&mut received[..]), tcp::SocketBuffer::new(&mut sent[..]));
    *place = Some(Connection::new(sockets.add(socket), input, output, LIMITS));
}
