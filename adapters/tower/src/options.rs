//! Options of a mount, and the timer that its caller gives.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::request::Parts;
use mcp_sansio::server::Millis;
use mcp_sansio_host::{HttpServerOptions, LateReceiver};
use mcp_sansio_http::endpoint::{Access, App, Endpoint, MessageAccess, RequestHead};

/// A sleep of the runtime.
pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
pub(crate) type Timer = Box<dyn Fn(Duration) -> Sleep + Send + Sync>;
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
/// use mcp_sansio_tower::{EndpointConfig, HttpServerOptions, MountOptions};
/// let options: MountOptions<()> = MountOptions::new(async_io::Timer::after)
///     .options(HttpServerOptions::new().config(EndpointConfig::DEFAULT.hosts(&["notes.example.org"])));
/// ```
#[must_use]
pub struct MountOptions<S: 'static> {
    pub(crate) timer: Timer,
    pub(crate) options: HttpServerOptions,
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
    /// Returns the defaults, with the timer of a runtime: a function from a [`Duration`] to a future that is ready after it. It is
    /// called, and the future is polled, only while a future or a body of the mount is polled; so the runtime is there.
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
    pub fn new<T: Future + Send + 'static>(timer: impl Fn(Duration) -> T + Send + Sync + 'static) -> Self {
        MountOptions {
            timer: Box::new(move |time| {
                let sleep = timer(time);
                Box::pin(async move { drop(sleep.await) })
            }),
            options: HttpServerOptions::new(),
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
        /// Sets limits and security. The paths are those that clients use: see [`Mcp::nested`](crate::Mcp::nested).
        ///
        /// Bodies of requests that do not fit into [`input_total`](HttpServerOptions::input_total) get 503, and slow ones get 408 after
        /// `body_time` of the [`wire_limits`](HttpServerOptions::wire_limits), by default a minute. Beyond
        /// [`output_total`](HttpServerOptions::output_total) of unsent JSON answers each request gets 503 before its handler runs,
        /// until answers are sent or their bodies are dropped: the server around the mount must close connections whose clients read
        /// too slowly. Event streams have limits of their own, in [`EndpointLimits`](crate::EndpointLimits). Connections, heads and
        /// descriptors are those of the server around the mount: their options have no effect here. Session ids of several
        /// processes need the same [clock](MountOptions::clock).
        options(options: HttpServerOptions) => options = options;
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

mcp_sansio::debug_fields!(impl<S> for MountOptions<S> { options });
