//! Authorization of a client over HTTP: the steps of [`mcp_sansio_auth`] carried out on this machine.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcp_sansio_auth::challenge::challenges;
use mcp_sansio_auth::jose::Signer;
use mcp_sansio_auth::url::Reach;
use mcp_sansio_auth::{
    Authorization, AuthorizationConfig, AuthorizationError, CredentialStore, Environment, FetchFailure, FetchStep,
    Outcome, Rejection, Response, Step,
};
use mcp_sansio_http::client::{
    ChallengeAnswer, ChallengedRequest, FailureReason, FetchLimits, FetchRequest, HeaderWriter, OutgoingRequest, Url,
};

use super::loopback::{Loopback, Page};
use super::{NoTokens, TokenStore};
use crate::http::client::fetch::Allows;
use crate::http::{AuthorizationFlow, HttpOrigin};
use crate::{ClientError, FetchFailed, FetchedResponse, Fetcher, lock};

/// Options of authorization: who the client is, how a person visits a URL, where tokens stay.
///
/// ```
/// use mcp_sansio_host::{AuthorizationOptions, TokenFile};
///
/// let options = AuthorizationOptions::new("demo")
///     .visit(|url| eprintln!("Log in at {url}"))
///     .tokens(TokenFile::new("/home/me/.config/demo/tokens.json"));
/// # let _ = options;
/// ```
#[must_use]
pub struct AuthorizationOptions {
    config: AuthorizationConfig,
    port: u16,
    visit: Option<Visit>,
    goes_on: GoesOn,
    tokens: Box<dyn TokenStore>,
    not_saved: NotSaved,
    pub(crate) fetcher: Fetcher,
    keys: Keys,
}

type NotSaved = Box<dyn FnMut(&io::Error) + Send>;
type Visit = Box<dyn FnMut(&str) + Send>;
type GoesOn = Box<dyn FnMut() -> bool + Send>;
type Key = Box<dyn Signer + Send>;

#[derive(Default)]
struct Keys {
    client: Option<Key>,
    dpop: Option<Key>,
}

impl AuthorizationOptions {
    /// Returns the defaults for a client with this `client_name`: it registers itself where the authorization server
    /// allows that. See [`config`](AuthorizationOptions::config) for everything else.
    pub fn new(client_name: &str) -> Self {
        AuthorizationOptions::of(AuthorizationConfig::new(client_name, ""))
    }

    /// Returns the defaults for a client with this configuration. Its redirect URI is replaced by that of a listener on
    /// 127.0.0.1, which is open as long as the client exists.
    pub fn of(config: AuthorizationConfig) -> Self {
        AuthorizationOptions {
            config,
            port: 0,
            visit: None,
            goes_on: Box::new(|| true),
            tokens: Box::new(NoTokens),
            not_saved: Box::new(|_| {}),
            // Redirects of metadata are followed, or not, by the flow.
            fetcher: Fetcher::new(FetchLimits::DEFAULT.redirects(0)),
            keys: Keys::default(),
        }
    }

    /// Changes the configuration.
    pub fn config(self, change: impl FnOnce(AuthorizationConfig) -> AuthorizationConfig) -> Self {
        AuthorizationOptions { config: change(self.config), ..self }
    }

    mcp_sansio::setters! {
        /// Sets the port to listen on for the redirect; if it is taken, another one is used. Default: that of the registration
        /// among the [tokens](AuthorizationOptions::tokens), else any. With another port, the client registers again. An
        /// authorization server that hands out ids, and compares ports, needs the same port each time.
        port(port: u16) => port = port;
        /// Calls `visit` with each URL that a person must visit: show it, or open it in a browser. Without it,
        /// authorization that needs a person fails.
        visit(visit: impl FnMut(&str) + Send + 'static) => visit = Some(Box::new(visit));
        /// Asks `goes_on` five times a second whether to wait longer for the person. Default: it waits for the time of
        /// [`AuthorizationLimits`](mcp_sansio_auth::config::AuthorizationLimits), 10 minutes.
        wait_while(goes_on: impl FnMut() -> bool + Send + 'static) => goes_on = Box::new(goes_on);
        /// Sets the place for registrations and tokens. Default: none, so the next start asks again.
        tokens(tokens: impl TokenStore + 'static) => tokens = Box::new(tokens);
        /// Calls `not_saved` with the error each time that the [place for tokens](Self::tokens) cannot be written. The client
        /// continues with its token, and tries again at the end of the next login or refresh. A program that ends before has to
        /// log in again. Default: the error is ignored.
        not_saved(not_saved: impl FnMut(&io::Error) + Send + 'static) => not_saved = Box::new(not_saved);
    }

    /// Sets the key with which the client authenticates at the token endpoint (`private_key_jwt`).
    pub fn client_key(self, key: impl Signer + Send + 'static) -> Self {
        AuthorizationOptions { keys: Keys { client: Some(Box::new(key)), ..self.keys }, ..self }
    }

    /// Sets the key to which tokens are bound where the authorization server supports its algorithm
    /// ([DPoP](https://www.rfc-editor.org/rfc/rfc9449)).
    pub fn dpop_key(self, key: impl Signer + Send + 'static) -> Self {
        AuthorizationOptions { keys: Keys { dpop: Some(Box::new(key)), ..self.keys }, ..self }
    }

    /// Sets the limits for requests to the authorization server, their TLS configuration, and the
    /// [addresses](Fetcher::addresses) to which they may go. Default: at most 20 seconds each; the TLS configuration of the
    /// client; no address that is [nearer](Reach) than the server, so that a public server cannot send requests into a
    /// private network. For an authorization server in such a network use `Fetcher::addresses(|_| true)`.
    pub fn fetcher(self, fetcher: Fetcher) -> Self {
        AuthorizationOptions { fetcher, ..self }
    }

    /// Logs out of the server at `url`: forgets its token, and revokes it if the authorization server can do that
    /// ([RFC 7009](https://www.rfc-editor.org/rfc/rfc7009)). It blocks, at most for the time limit of one request. Without a
    /// token it does nothing. Registrations stay.
    ///
    /// # Errors
    /// [`ClientError::Url`] if tokens must not be sent to the URL, [`ClientError::Io`] if the tokens cannot be saved, or the authorization server
    /// did not revoke the token; it is forgotten all the same.
    pub fn log_out(self, url: &str) -> Result<(), ClientError> {
        let authorizer = Authorizer::new(url, self)?;
        let outcome = lock(&authorizer.0.state).with(|flow, environment| flow.log_out(environment));
        let error = match outcome {
            Outcome::Retry => None,
            Outcome::Wait if authorizer.carry_out() => None,
            Outcome::Wait => lock(&authorizer.0.state).failure.take().map(|failure| failure.0),
            Outcome::Refused(error) => Some(error),
        };
        // Again, if the first time has failed: the token must not stay there unnoticed.
        let saved = authorizer.save(&mut lock(&authorizer.0.work), true);
        error.map_or(saved, |error| Err(io::Error::other(error))).map_err(ClientError::Io)
    }
}

mcp_sansio::debug_fields!(impl for AuthorizationOptions { config });

/// The authorization of a client for one server. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Authorizer(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    work: Mutex<Work>,
}

/// The flow. It is never locked during a wait.
struct State {
    authorization: Authorization,
    keys: Keys,
    /// The reason why there is no token, and the description in its challenge, which may be empty.
    failure: Option<(AuthorizationError, String)>,
    /// A person has been asked to visit a URL.
    is_visiting: bool,
    /// The farthest network in which the server was reached.
    reach: Option<Reach>,
}

/// The parts that wait.
struct Work {
    options: AuthorizationOptions,
    loopback: Loopback,
    /// The last text could not be saved.
    is_unsaved: bool,
    /// The URL of the server.
    server: String,
}

/// A step that was taken out of the flow.
enum Next {
    Fetch(FetchStep),
    Visit(String),
    Done(Result<(), AuthorizationError>),
}

impl State {
    /// Calls the flow with time, randomness and keys.
    fn with<R>(&mut self, act: impl FnOnce(&mut Authorization, &mut Environment<'_>) -> R) -> R {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // It was tried at the start. A program without randomness must not go on with a `state` that can be guessed.
        let mut random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system has random numbers");
        let mut environment = Environment::new(now, &mut random);
        environment.client_key = self.keys.client.as_deref().map(|key| key as _);
        environment.dpop_key = self.keys.dpop.as_deref().map(|key| key as _);
        act(&mut self.authorization, &mut environment)
    }
}

impl Authorizer {
    /// Makes the authorization for the server at `url`, and opens the listener for the redirect.
    ///
    /// # Errors
    /// [`ClientError::Url`] if tokens must not be sent to the URL: it is neither `https` nor on this machine.
    /// [`ClientError::Io`] if the tokens cannot be read, or there is no port to listen on.
    pub(crate) fn new(url: &str, mut options: AuthorizationOptions) -> Result<Self, ClientError> {
        getrandom::fill(&mut [0; 1]).map_err(|error| ClientError::Io(error.into()))?;
        let store = match options.tokens.load().map_err(ClientError::Io)? {
            Some(text) => CredentialStore::from_json(text.as_bytes())
                .map_err(|error| ClientError::Io(io::Error::new(io::ErrorKind::InvalidData, error)))?,
            None => CredentialStore::new(),
        };
        // A registration holds for its redirect URI.
        let known = store.redirect_uri().and_then(|uri| Some(Url::parse(uri).ok()?.port()));
        let port = if options.port == 0 { known.unwrap_or(0) } else { options.port };
        let loopback = Loopback::open(port).map_err(ClientError::Io)?;
        let config = options.config.clone().redirect_uri(loopback.redirect_uri());
        let authorization = Authorization::new(config, url, store);
        let authorization = authorization.map_err(|error| ClientError::Url(error.to_string()))?;
        let keys = std::mem::take(&mut options.keys);
        Ok(Authorizer(Arc::new(Inner {
            state: Mutex::new(State { authorization, keys, failure: None, is_visiting: false, reach: None }),
            work: Mutex::new(Work { options, loopback, is_unsaved: false, server: url.to_owned() }),
        })))
    }

    fn next(&self) -> Next {
        match lock(&self.0.state).authorization.step() {
            Step::Fetch(fetch) => Next::Fetch(fetch.clone()),
            Step::Visit { url } => Next::Visit(url.to_owned()),
            Step::Refused(error) => Next::Done(Err(error)),
            // Another thread has carried out the steps if there are none.
            _ => Next::Done(Ok(())),
        }
    }

    /// Takes the token that another process has saved since this one has read or saved its own. Returns whether there is one.
    fn adopt(&self, work: &mut Work) -> bool {
        // What could not be saved is newer.
        if work.is_unsaved {
            return false;
        }
        let text = work.options.tokens.load().ok().flatten();
        let store = text.and_then(|text| CredentialStore::from_json(text.as_bytes()).ok());
        store.is_some_and(|store| lock(&self.0.state).authorization.adopt(store))
    }

    /// Saves the store if it has changed, or with `again` if that failed the last time.
    fn save(&self, work: &mut Work, again: bool) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        if !(state.authorization.store_changed() || again && work.is_unsaved) {
            return Ok(());
        }
        let text = state.authorization.store().to_json();
        drop(state);
        let saved = work.options.tokens.save(&text);
        work.is_unsaved = saved.is_err();
        saved
    }

    /// Returns the decision about addresses for a URL that a server has named.
    fn allowed(&self, work: &Work, url: &str) -> Allows {
        let is_secure = Url::parse(url).is_ok_and(|url| url.is_secure());
        let reached = lock(&self.0.state).reach;
        let nearest = reached.or_else(|| reach_by_name(&work.server)).unwrap_or(Reach::Public);
        Arc::new(move |address| {
            let reach = Reach::of_address(address);
            // A name like `x.localhost` may stand for any address, and only this machine may be spoken to without TLS.
            reach >= nearest && (is_secure || reach == Reach::Loopback)
        })
    }

    fn fetch(&self, work: &Work, fetch: &FetchStep) {
        let headers: Vec<_> = fetch.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let request = match fetch.method {
            "POST" => FetchRequest::post(&fetch.url, fetch.body.as_bytes()),
            _ => FetchRequest::get(&fetch.url),
        };
        let mut fetcher = work.options.fetcher.clone().body(fetch.limit);
        if !fetch.is_configured {
            fetcher.allows.get_or_insert_with(|| self.allowed(work, &fetch.url));
        }
        let fetched = fetcher.fetch(&request.headers(&headers));
        lock(&self.0.state).with(|flow, environment| match &fetched {
            Ok(answer) => flow.fetched(&response(answer), environment),
            Err(failed) => flow.fetch_failed(failure(failed), environment),
        });
    }

    /// Lets a person visit a URL and waits for the redirect.
    fn visit(&self, work: &mut Work, url: &str) {
        let Work { loopback, options: AuthorizationOptions { visit: Some(visit), goes_on, .. }, .. } = work else {
            return lock(&self.0.state).authorization.cancel();
        };
        lock(&self.0.state).is_visiting = true;
        loopback.drain();
        visit(url);
        // The flow ends after the time for a visit.
        let mut goes_on = || goes_on() && lock(&self.0.state).with(|flow, environment| flow.expire(environment.now));
        let mut take = |target: &str| {
            let taken = lock(&self.0.state).with(|flow, environment| flow.redirected(target, environment));
            match taken {
                Ok(()) => Page::Good,
                Err(AuthorizationError::State) => Page::Foreign,
                Err(_) => Page::Bad,
            }
        };
        let has_come = matches!(loopback.wait(&mut goes_on, &mut take), Ok(true));
        let mut state = lock(&self.0.state);
        state.is_visiting = false;
        if !has_come {
            state.authorization.cancel();
        }
    }
}

impl AuthorizationFlow for Authorizer {
    fn reached(&self, address: IpAddr) {
        let mut state = lock(&self.0.state);
        state.reach = state.reach.max(Some(Reach::of_address(address)));
    }

    fn prepare(&self) -> bool {
        lock(&self.0.state).with(|flow, environment| flow.prepare(environment)) == Outcome::Wait
    }

    fn sign(&self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        let mut state = lock(&self.0.state);
        if !request.dpop_nonce.is_empty() {
            state.authorization.answered(0, Some(request.dpop_nonce));
        }
        let url = request.url.to_string();
        let credentials = match state.with(|flow, environment| flow.credentials(request.method, &url, environment)) {
            Ok(credentials) => credentials,
            Err(error) => {
                state.failure = Some((error, String::new()));
                return 0;
            }
        };
        let pairs = [("Authorization", &credentials.authorization), ("DPoP", &credentials.dpop)];
        for (name, value) in pairs {
            // The flow gives no header that HTTP does not allow; without room for it the server refuses the request.
            let _ = value.as_ref().map(|value| headers.set(name, value));
        }
        credentials.generation
    }

    fn accepted(&self, credentials: u32) {
        lock(&self.0.state).authorization.answered(credentials, None);
    }

    fn challenged(&self, challenge: &ChallengedRequest<'_>) -> ChallengeAnswer {
        let values = [challenge.www_authenticate];
        let values = if challenge.www_authenticate.is_empty() { &[][..] } else { &values };
        let mut rejection =
            Rejection::new(challenge.status, values).generation(challenge.credentials).operation(challenge.operation);
        if !challenge.dpop_nonce.is_empty() {
            rejection = rejection.dpop_nonce(challenge.dpop_nonce);
        }
        let mut state = lock(&self.0.state);
        match state.with(|flow, environment| flow.rejected(&rejection, environment)) {
            Outcome::Retry => ChallengeAnswer::Retry,
            Outcome::Wait => ChallengeAnswer::Later,
            Outcome::Refused(error) => {
                let said = challenges(challenge.www_authenticate).flatten();
                let mut said = said.filter_map(|one| one.parameter("error_description").map(|text| text.to_string()));
                state.failure = Some((error, said.next().unwrap_or_default()));
                ChallengeAnswer::GiveUp
            }
        }
    }

    fn carry_out(&self) -> bool {
        let mut work = lock(&self.0.work);
        // Keeps other processes from a refresh, until its outcome is saved.
        let mut turn = None;
        loop {
            let next = self.next();
            // A store that cannot be written is no reason to fail: this client has its token.
            let is_over = matches!(next, Next::Done(_));
            if let Err(error) = self.save(&mut work, is_over) {
                (work.options.not_saved)(&error);
            }
            match next {
                Next::Done(Ok(())) => return true,
                Next::Done(Err(error)) => {
                    lock(&self.0.state).failure = Some((error, String::new()));
                    return false;
                }
                Next::Fetch(fetch) => {
                    if !lock(&self.0.state).authorization.is_refreshing() {
                        turn = None;
                    } else if turn.is_none() {
                        turn = work.options.tokens.lock().ok();
                        if self.adopt(&mut work) {
                            continue;
                        }
                    }
                    self.fetch(&work, &fetch);
                }
                Next::Visit(url) => {
                    turn = None;
                    self.visit(&mut work, &url);
                }
            }
        }
    }

    fn is_visiting(&self) -> bool {
        lock(&self.0.state).is_visiting
    }

    fn refusal(&self) -> Option<String> {
        let state = lock(&self.0.state);
        let (error, description) = state.failure.as_ref()?;
        Some(if description.is_empty() { error.to_string() } else { format!("{error} ({description})") })
    }
}

fn response(answer: &FetchedResponse) -> Response<'_> {
    let mut response = Response::new(answer.status, &answer.body);
    response.content_type = answer.content_type.as_deref();
    response.location = answer.location.as_deref();
    response.dpop_nonce = answer.dpop_nonce.as_deref();
    response
}

/// Returns the farthest network of the addresses that the name of the server has now.
fn reach_by_name(server: &str) -> Option<Reach> {
    let url = Url::parse(server).ok()?;
    let (addresses, _) = HttpOrigin::new(url.host(), url.port(), Duration::ZERO).addresses().ok()?;
    addresses.iter().map(|address| Reach::of_address(address.ip())).max()
}

fn failure(failed: &FetchFailed) -> FetchFailure {
    match failed {
        FetchFailed::Address(_) => FetchFailure::Private,
        FetchFailed::Exchange(FailureReason::TooLarge | FailureReason::NoRoom, _) => FetchFailure::TooLarge,
        FetchFailed::Exchange(FailureReason::TimedOut, _) => FetchFailure::Timeout,
        FetchFailed::Exchange(FailureReason::Redirect(_), _) => FetchFailure::Redirect,
        _ => FetchFailure::Unreachable,
    }
}

/// Shows no secrets.
impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("refusal", &self.refusal()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// A server whose name is local, but that was reached at a public address, must not send the client to this machine.
    #[test]
    fn public_servers_lead_nowhere_near() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://localhost:{}/mcp", listener.local_addr().unwrap().port());
        for (reached, is_near) in
            [(&[[93, 184, 216, 34]][..], true), (&[[127, 0, 0, 1], [10, 0, 0, 1]], true), (&[], false)]
        {
            let authorizer = Authorizer::new(&url, AuthorizationOptions::new("test")).unwrap();
            reached.iter().for_each(|address| authorizer.reached((*address).into()));
            let begun = lock(&authorizer.0.state).with(|flow, environment| {
                let limits = FetchLimits::DEFAULT.redirects(0).time(300);
                lock(&authorizer.0.work).options.fetcher = Fetcher::new(limits);
                flow.rejected(&Rejection::new(401, &["Bearer"]), environment)
            });
            assert_eq!(begun, Outcome::Wait);
            assert!(!authorizer.carry_out());
            let why = authorizer.refusal().unwrap();
            assert_eq!(why.contains("the URL leads into a private network"), is_near, "{why}");
            assert_eq!(listener.accept().is_err(), is_near, "{reached:?}");
            // A name that is nearer later changes nothing.
            authorizer.reached([127, 0, 0, 1].into());
            let allows = authorizer.allowed(&lock(&authorizer.0.work), "https://as.example/");
            assert_eq!(allows([127, 0, 0, 1].into()), !is_near);
            assert!(allows([93, 184, 216, 34].into()));
            // Without TLS, only this machine.
            let allows = authorizer.allowed(&lock(&authorizer.0.work), "http://x.localhost/");
            assert!(!allows([93, 184, 216, 34].into()) && !allows([10, 0, 0, 1].into()));
        }
    }

    #[test]
    fn reasons_of_fetches_that_failed() {
        let address = [10, 0, 0, 1].into();
        assert_eq!(failure(&FetchFailed::Address(address)), FetchFailure::Private);
        for (why, expected) in [
            (FailureReason::TooLarge, FetchFailure::TooLarge),
            (FailureReason::NoRoom, FetchFailure::TooLarge),
            (FailureReason::TimedOut, FetchFailure::Timeout),
            (FailureReason::Redirect(307), FetchFailure::Redirect),
            (FailureReason::Refused, FetchFailure::Unreachable),
            (FailureReason::NotHttp, FetchFailure::Unreachable),
        ] {
            assert_eq!(failure(&FetchFailed::Exchange(why, None)), expected, "{why}");
        }
    }

    const SERVER: &str = "http://127.0.0.1:9/mcp";

    /// A place for tokens that may fail, and that uses its authorizer.
    #[derive(Clone, Default)]
    struct CountingStore {
        loads: Option<&'static str>,
        authorizer: Arc<OnceLock<Authorizer>>,
        saved: Arc<AtomicUsize>,
        fails: Arc<AtomicBool>,
    }

    impl TokenStore for CountingStore {
        fn load(&mut self) -> io::Result<Option<String>> {
            match self.loads {
                Some("") => Err(io::Error::other("no disk")),
                loads => Ok(loads.map(str::to_owned)),
            }
        }

        fn save(&mut self, _: &str) -> io::Result<()> {
            assert_eq!(self.authorizer.get().and_then(Authorizer::refusal), None);
            self.saved.fetch_add(1, Ordering::SeqCst);
            if self.fails.load(Ordering::SeqCst) { Err(io::Error::other("no disk")) } else { Ok(()) }
        }
    }

    #[test]
    fn what_could_not_be_saved_is_saved_later() {
        let (done, is_done) = std::sync::mpsc::channel();
        // On a thread of its own: under the lock of the flow, a save would never end.
        std::thread::spawn(move || {
            let place = CountingStore::default();
            let authorizer = Authorizer::new(SERVER, AuthorizationOptions::new("test").tokens(place.clone())).unwrap();
            place.authorizer.set(authorizer.clone()).unwrap();
            let save = |again: bool| {
                let work = &mut *lock(&authorizer.0.work);
                let before = place.saved.load(Ordering::SeqCst);
                let saved = authorizer.save(work, again);
                (saved.is_ok(), place.saved.load(Ordering::SeqCst) - before, work.is_unsaved)
            };
            // Nothing has changed.
            assert_eq!([save(false), save(true)], [(true, 0, false); 2]);
            lock(&authorizer.0.work).is_unsaved = true;
            place.fails.store(true, Ordering::SeqCst);
            assert_eq!([save(false), save(true), save(false)], [(true, 0, true), (false, 1, true), (true, 0, true)]);
            place.fails.store(false, Ordering::SeqCst);
            assert_eq!([save(true), save(true)], [(true, 1, false), (true, 0, false)]);
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    #[test]
    fn a_client_begins_without_tokens() {
        let new = |url: &str, loads| {
            let options = AuthorizationOptions::new("test");
            Authorizer::new(url, options.tokens(CountingStore { loads, ..CountingStore::default() }))
        };
        let authorizer = new(SERVER, None).unwrap();
        assert_eq!((authorizer.prepare(), authorizer.is_visiting(), authorizer.refusal()), (false, false, None));
        // There is nothing to do.
        assert!(authorizer.carry_out());
        assert!(matches!(new("http://example.com/mcp", None), Err(ClientError::Url(_))));
        assert!(matches!(new(SERVER, Some("")), Err(ClientError::Io(error)) if error.to_string() == "no disk"));
        let broken = new(SERVER, Some("{"));
        assert!(matches!(broken, Err(ClientError::Io(error)) if error.kind() == io::ErrorKind::InvalidData));
        assert!(AuthorizationOptions::new("test").log_out(SERVER).is_ok());
        assert!(AuthorizationOptions::new("test").log_out("http://example.com/mcp").is_err());
    }

    #[test]
    fn a_person_is_waited_for_during_a_visit_only() {
        let (handle, seen) = (Arc::new(OnceLock::<Authorizer>::new()), Arc::new(Mutex::new(Vec::new())));
        let (in_visit, sees) = (Arc::clone(&handle), Arc::clone(&seen));
        let options = AuthorizationOptions::new("test").wait_while(|| false);
        let authorizer = Authorizer::new(
            SERVER,
            options
                .visit(move |url| sees.lock().unwrap().push((url.to_owned(), in_visit.get().unwrap().is_visiting()))),
        );
        let authorizer = authorizer.unwrap();
        handle.set(authorizer.clone()).unwrap();
        authorizer.visit(&mut lock(&authorizer.0.work), "https://as.example/login");
        assert_eq!(*seen.lock().unwrap(), [("https://as.example/login".to_owned(), true)]);
        assert!(!authorizer.is_visiting());
    }
}
