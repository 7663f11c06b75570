//! Options of a mount, and the timer that its caller gives.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::request::Parts;
use mcp_sansio::server::{MessageLimits, Millis, Seal};
use mcp_sansio_host::LateReceiver;
use mcp_sansio_http::endpoint::MessageAccess;
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead};

/// A future of [`Timer::sleep`].
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The timer of a runtime. Every function from a [`Duration`] to a future is one:
///
/// | runtime | timer |
/// |---|---|
/// | tokio | `tokio::time::sleep` |
/// | smol, async-io | `async_io::Timer::after` |
///
/// ```
/// use mcp_sansio_tower::MountOptions;
/// let options: MountOptions<()> = MountOptions::new(async_io::Timer::after);
/// ```
pub trait Timer: Send + Sync + 'static {
    /// Makes a future that is ready after `time`. It is called, and the future is polled, only while a future or a body of
    /// the mount is polled; so the runtime is there.
    fn sleep(&self, time: Duration) -> Sleep;
}

impl<F, T> Timer for F
where
    F: Fn(Duration) -> T + Send + Sync + 'static,
    T: Future + Send + 'static,
{
    fn sleep(&self, time: Duration) -> Sleep {
        let sleep = self(time);
        Box::pin(async move {
            sleep.await;
        })
    }
}

pub(crate) type Clock = Box<dyn Fn() -> Millis + Send + Sync>;
pub(crate) type Random = Box<dyn Fn(&mut [u8]) + Send + Sync>;
pub(crate) type Authorize = Box<dyn Fn(&Parts, &RequestHead<'_>) -> Access<'static> + Send + Sync>;
pub(crate) type Principal = Box<dyn Fn(&Parts) -> Option<String> + Send + Sync>;
pub(crate) type Permit = Box<dyn Fn(&MessageAccess<'_>) -> Access<'static> + Send + Sync>;
pub(crate) type Tick<S> = Box<dyn FnMut(&mut App<'_, S>, &mut Endpoint<'static>, Millis) -> Option<Millis> + Send>;

/// Limits, security and the timer of an [`Mcp`](crate::Mcp). By default it answers only requests whose `Host` is a name of
/// this machine (against [DNS
/// rebinding](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning)).
///
/// ```
/// use mcp_sansio_tower::{EndpointConfig, MountOptions};
/// let options: MountOptions<()> = MountOptions::new(async_io::Timer::after)
///     .config(EndpointConfig::DEFAULT.hosts(&["notes.example.org"]))
///     .input_total(64 << 20);
/// ```
#[must_use]
pub struct MountOptions<S: 'static> {
    pub(crate) timer: Box<dyn Timer>,
    pub(crate) config: EndpointConfig<'static>,
    pub(crate) limits: MessageLimits,
    pub(crate) endpoint_limits: EndpointLimits,
    pub(crate) input_total: usize,
    pub(crate) output_total: usize,
    pub(crate) body_time: Duration,
    pub(crate) seal: Option<&'static (dyn Seal + Sync)>,
    pub(crate) session_seal: Option<mcp_sansio_http::endpoint::SessionSeal<'static>>,
    pub(crate) fleet: Option<&'static mut dyn mcp_sansio_http::endpoint::Fleet>,
    pub(crate) clock: Option<Clock>,
    pub(crate) random: Random,
    pub(crate) authorize: Option<Authorize>,
    pub(crate) principal: Option<Principal>,
    pub(crate) permit: Option<Permit>,
    pub(crate) tick: Option<Tick<S>>,
    pub(crate) late: Option<LateReceiver<S>>,
}

impl<S> MountOptions<S> {
    /// Returns the defaults, with the timer of a runtime.
    pub fn new(timer: impl Timer) -> Self {
        MountOptions {
            timer: Box::new(timer),
            config: EndpointConfig::DEFAULT,
            limits: MessageLimits::default(),
            endpoint_limits: EndpointLimits::default(),
            input_total: 256 << 20,
            output_total: 256 << 20,
            body_time: Duration::from_secs(60),
            seal: None,
            session_seal: None,
            fleet: None,
            clock: None,
            // Never continues with a guessable session id.
            random: Box::new(|bytes| getrandom::fill(bytes).expect("the system has random bytes")),
            authorize: None,
            principal: None,
            permit: None,
            tick: None,
            late: None,
        }
    }

    mcp_sansio::setters! {
        /// Sets the channel of late answers, see [`channel`](crate::channel).
        ///
        /// ```
        /// use mcp_sansio::server::Progress;
        /// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
        /// use mcp_sansio_tower::{LateSender, Mcp, MountOptions, channel};
        ///
        /// struct Kitchen {
        ///     late: LateSender<Kitchen>,
        ///     cups: u32,
        /// }
        ///
        /// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
        ///     let (token, outcome) = call.later();
        ///     let late = kitchen.late.clone();
        ///     std::thread::spawn(move || { // or `tokio::spawn`
        ///         late.progress(token, Progress::new(1).of(2))?;
        ///         late.answer(token, |kitchen, call| {
        ///             kitchen.cups += 1;
        ///             call.text(format_args!("cup {}", kitchen.cups))
        ///         })
        ///     });
        ///     outcome
        /// }
        /// static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews coffee", brew)];
        ///
        /// let (late, receiver) = channel();
        /// let options = MountOptions::new(async_io::Timer::after).late(receiver);
        /// let mcp = Mcp::new(Service::new("kitchen", "1.0").tools(&TOOLS), Kitchen { late, cups: 0 }, options);
        /// # let _ = mcp;
        /// ```
        late(late: LateReceiver<S>) => late = Some(late);
        /// Sets paths, hosts and times. The paths are those that clients use: see [`Mcp::nested`](crate::Mcp::nested).
        config(config: EndpointConfig<'static>) => config = config;
        /// Sets limits of messages, of requests to the client and of subscriptions. The body of a request may have
        /// [`MessageLimits::message`] bytes, by default 16 MiB; a longer one gets 413.
        limits(limits: MessageLimits) => limits = limits;
        /// Sets limits of sessions and streams.
        endpoint_limits(limits: EndpointLimits) => endpoint_limits = limits;
        /// Sets how many bytes the bodies of all requests may take together while they are read. Default: 256 MiB. A request that
        /// does not fit gets 503.
        input_total(bytes: usize) => input_total = bytes;
        /// Sets how many bytes the unsent JSON answers may take together. Default: 256 MiB. Beyond the limit each request gets 503
        /// before its handler runs, until answers are sent or their bodies are dropped: the server around the mount must close
        /// connections whose clients read too slowly. Event streams have limits of their own, [`EndpointLimits::log`] and
        /// [`EndpointLimits::stream`].
        output_total(bytes: usize) => output_total = bytes;
        /// Sets the time for the body of a request. Default: a minute. A slower one gets 408.
        body_time(time: Duration) => body_time = time;
        /// Sets the protection of `requestState` (2026-07-28), which travels through the client: `HmacSeal` of `mcp-sansio-http`
        /// with its feature `seal`, or an implementation of your own.
        seal(seal: &'static (dyn Seal + Sync)) => seal = Some(seal);
        /// Makes session ids (up to 2025-11-25) that other processes with the same key know too. They need the same
        /// [clock](MountOptions::clock).
        session_seal(seal: mcp_sansio_http::endpoint::SessionSeal<'static>) => session_seal = Some(seal);
        /// Makes the mount one of several processes that serve the same clients: the `link()` of `mcp_sansio_fleet::RedisFleet`, which
        /// needs [`late`](MountOptions::late) too. See [`Endpoint::fleet`](mcp_sansio_http::endpoint::Endpoint::fleet).
        fleet(fleet: &'static mut dyn mcp_sansio_http::endpoint::Fleet) => fleet = Some(fleet);
        /// Sets the source of the time in milliseconds. It should not go back. Default: the milliseconds since 1970 at the start,
        /// and from then on a clock that runs evenly.
        clock(clock: impl Fn() -> Millis + Send + Sync + 'static) => clock = Some(Box::new(clock));
        /// Sets the source of secure random bytes, which fills its argument: ids of sessions are made of them. Default: that of
        /// the system.
        random(random: impl Fn(&mut [u8]) + Send + Sync + 'static) => random = Box::new(random);
        /// Sets the function that names the principal of a request: sessions, streams and states belong to it, and handlers see
        /// it. Use it where layers in front of the mount have authorized the request and left a name in its extensions. The name
        /// has at most [`PRINCIPAL_MAX`](mcp_sansio_http::endpoint::PRINCIPAL_MAX) bytes; give a digest of a longer one.
        ///
        /// ```
        /// use mcp_sansio_tower::MountOptions;
        ///
        /// #[derive(Clone)]
        /// struct User(String); // a layer inserts it
        /// let options: MountOptions<()> = MountOptions::new(async_io::Timer::after)
        ///     .principal(|head| head.extensions.get::<User>().map(|user| user.0.clone()));
        /// ```
        principal(principal: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) => principal = Some(Box::new(principal));
        /// Sets the function that decides about each request by its head, before its body is read
        /// ([authorization](https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization)). It must not block.
        /// It may answer `Access::Later`, and is asked again after
        /// [`LateSender::decided`](crate::LateSender::decided). If it names no principal, [`principal`](MountOptions::principal) does.
        authorize(authorize: impl Fn(&Parts, &RequestHead<'_>) -> Access<'static> + Send + Sync + 'static) => authorize = Some(Box::new(authorize));
        /// Sets the function that decides about each message of an admitted request, see [`App::permit`]. It must not block.
        permit(permit: impl Fn(&MessageAccess<'_>) -> Access<'static> + Send + Sync + 'static) => permit = Some(Box::new(permit));
        /// Sets a function that is called after each request, pull and answer, under the lock of the mount, and at the time that
        /// its last call returned. It may publish changes that handlers have noted in the state, answer and resume requests.
        tick(tick: impl FnMut(&mut App<'_, S>, &mut Endpoint<'static>, Millis) -> Option<Millis> + Send + 'static) => tick = Some(Box::new(tick));
    }
}

mcp_sansio::debug_fields!(impl<S> for MountOptions<S> { config, input_total, output_total });
