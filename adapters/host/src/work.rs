//! Work that takes time: a thread or a future for a call, with progress and cancellation.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Display};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread;

use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{Progress, RequestToken, RpcError};
use mcp_sansio::service::{Call, HandlerError, HandlerResult, RequestContext};

use crate::late::Unpark;
use crate::{LateSender, LogMessage, lock};

const BUSY: &str = "The server works on too many calls; try again later";
const NOT_STARTED: &str = "The server could not begin to work on the call; try again later";
const ENDED: RpcError<'static> = RpcError::internal("The work on the request has ended without a result");

/// A future that [`Work`] has made, for the spawner of a runtime.
pub type WorkFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

type Spawn = Arc<dyn Fn(WorkFuture) + Send + Sync>;

/// Runs the work of calls that take time: each in a thread, or as a future in the runtime of the caller. Other requests are
/// served meanwhile, in every adapter. It is a part of the state of the handlers.
///
/// Work that was cancelled by the client ends if the service says so:
/// `.on_cancel(|state, token| state.work.cancel(token))`. A future is dropped; a thread sees it in
/// [`Job::is_cancelled`]. The same happens to all work when this value is dropped.
///
/// ```
/// use mcp_sansio::server::Progress;
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// use mcp_sansio_host::{Work, channel};
///
/// struct Kitchen {
///     work: Work<Kitchen>,
/// }
///
/// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
///     let brewing = kitchen.work.thread(|job| {
///         for cup in 1..=2 {
///             // What takes long is done here.
///             job.progress(Progress::new(cup).of(2).message("brewing"));
///         }
///         Ok::<_, std::io::Error>("Two cups are ready") // an error is a result with `isError`
///     });
///     brewing.answer(call)
/// }
/// static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews two cups of coffee", brew)];
///
/// let service =
///     Service::new("kitchen", "1.0").tools(&TOOLS).on_cancel(|kitchen: &mut Kitchen, token| kitchen.work.cancel(token));
/// let (late, receiver) = channel();
/// let kitchen = Kitchen { work: Work::new(late, 8) };
/// // `receiver` goes to the `late` of the server.
/// # drop((service, kitchen, receiver));
/// ```
#[non_exhaustive]
pub struct Work<S: 'static> {
    /// The sender that work uses.
    pub late: LateSender<S>,
    spawn: Option<Spawn>,
    shared: Arc<Shared>,
}

impl<S: 'static> Work<S> {
    /// Makes a place for at most `most` pieces of work at once, at least 1. A call beyond that gets a result with `isError`.
    #[must_use]
    pub fn new(late: LateSender<S>, most: usize) -> Self {
        let table = Table { running: HashMap::new(), results: VecDeque::new() };
        Work { late, spawn: None, shared: Arc::new(Shared { table: Mutex::new(table), most: most.max(1) }) }
    }

    /// Sets how futures are spawned: `|future| smol::spawn(future).detach()`, `|future| drop(tokio::spawn(future))`.
    /// Default: each has a thread of its own.
    #[must_use]
    pub fn spawner(mut self, spawn: impl Fn(WorkFuture) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Makes work of a function for a thread. It begins with a method of [`NewWork`].
    pub fn thread<T, F>(&self, run: F) -> NewWork<'_, S, T>
    where
        T: Send + 'static,
        F: FnOnce(&Job<S>) -> T + Send + 'static,
    {
        let start = move |job: Job<S>, _: Option<Spawn>, end: End<T>| {
            start_thread(move || {
                let result = run(&job);
                end(result);
                drop(job);
            })
        };
        NewWork { work: self, start: Box::new(start) }
    }

    /// Makes work of a future. It begins with a method of [`NewWork`].
    ///
    /// ```
    /// use mcp_sansio::service::{Call, HandlerResult};
    /// use mcp_sansio_host::Work;
    ///
    /// struct State {
    ///     work: Work<State>, // `Work::new(late, 100).spawner(|future| smol::spawn(future).detach())`
    /// }
    ///
    /// fn fetch(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    ///     let fetching = state.work.future(|_| async move {
    ///         std::future::ready(Ok::<_, std::io::Error>("a page")).await
    ///     });
    ///     fetching.answer(call)
    /// }
    /// # let _: fn(&mut State, &mut Call<'_>) -> HandlerResult = fetch;
    /// ```
    pub fn future<T, F, U>(&self, make: F) -> NewWork<'_, S, T>
    where
        T: Send + 'static,
        F: FnOnce(Job<S>) -> U,
        F: Send + 'static,
        U: Future<Output = T> + Send + 'static,
    {
        let start = move |job: Job<S>, spawn: Option<Spawn>, end: End<T>| {
            let (flag, keep) = (Arc::clone(&job.entry.flag), job.clone());
            let future = make(job);
            let future: WorkFuture = Box::pin(async move {
                if let Some(result) = unless_cancelled(future, &flag).await {
                    end(result);
                }
                drop(keep);
            });
            match spawn {
                Some(spawn) => {
                    spawn(future);
                    Ok(())
                }
                None => start_thread(move || block_on(future)),
            }
        };
        NewWork { work: self, start: Box::new(start) }
    }

    /// Takes the result of work that has [resumed](NewWork::resume) the handler of this request; `None` in its first run.
    pub fn take<T: 'static>(&self, request: &RequestContext<'_>) -> Option<T> {
        let (mut table, token) = (self.shared.lock(), request.token());
        let at = table.results.iter().position(|(of, result)| *of == token && result.is::<T>())?;
        let (_, result) = table.results.remove(at)?;
        result.downcast().ok().map(|result| *result)
    }

    /// Ends the work of a request that was cancelled. Without such work it does nothing.
    pub fn cancel(&self, token: RequestToken) {
        let mut table = self.shared.lock();
        // Not dropped under the lock: they are the application's.
        let (gone, kept): (VecDeque<_>, _) =
            std::mem::take(&mut table.results).into_iter().partition(|(of, _)| *of == token);
        table.results = kept;
        let flag = table.running.get(&token).cloned();
        drop(table);
        drop(gone);
        flag.into_iter().for_each(|flag| flag.set());
    }

    /// Returns how many pieces of work there are.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.lock().running.len()
    }
}

impl<S> Drop for Work<S> {
    fn drop(&mut self) {
        let flags: Vec<_> = self.shared.lock().running.values().cloned().collect();
        flags.iter().for_each(|flag| flag.set());
    }
}

/// The function that takes the result of work.
type End<T> = Box<dyn FnOnce(T) + Send>;
type Start<S, T> = Box<dyn FnOnce(Job<S>, Option<Spawn>, End<T>) -> Result<(), HandlerError>>;

/// Work that has not begun: say what becomes of its result.
#[must_use = "it begins with `answer`, `then` or `resume`"]
pub struct NewWork<'w, S: 'static, T> {
    work: &'w Work<S>,
    start: Start<S, T>,
}

impl<S: 'static, T: Send + 'static> NewWork<'_, S, T> {
    /// Begins, and answers the call with a function that sees the result and the state. It does not run if the call was
    /// cancelled meanwhile.
    ///
    /// # Errors
    /// Those of writing the result that says that too much work runs.
    pub fn then(
        self,
        call: &mut Call<'_>,
        answer: impl FnOnce(&mut S, &mut Call<'_>, T) -> HandlerResult + Send + 'static,
    ) -> HandlerResult {
        let Some(job) = self.work.begin(call.token()) else { return call.error(BUSY) };
        let (late, token) = (self.work.late.clone(), call.token());
        let end = move |result| {
            let _ = late.answer(token, move |state, call| answer(state, call, result));
        };
        // A start that fails drops its job, which must not answer.
        let kept = job.clone();
        match (self.start)(job, self.work.spawn.clone(), kept.entry.ending(end)) {
            Ok(()) => call.later().1,
            Err(_) => {
                kept.entry.settle();
                call.error(NOT_STARTED)
            }
        }
    }

    /// Begins, and runs the handler again when there is a result, which [`Work::take`] gives. The handler may ask the client
    /// then. See [`suspend`](RequestContext::suspend) for what it keeps.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio::service::{Call, HandlerResult, InputRequest};
    /// use mcp_sansio_host::Work;
    ///
    /// struct Shop {
    ///     work: Work<Shop>,
    /// }
    /// const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
    ///
    /// fn order(shop: &mut Shop, call: &mut Call<'_>) -> HandlerResult {
    ///     if let Some(answer) = call.answer("sure") {
    ///         return call.text(if answer.accepted() { "ordered" } else { "not ordered" });
    ///     }
    ///     match shop.work.take::<u32>(call) {
    ///         Some(price) => call.ask(&[InputRequest::elicit("sure", &format!("Pay {price}?"), SURE)], b""),
    ///         None => shop.work.thread(|_| 12_u32 /* as some other server says */).resume(call, b""),
    ///     }
    /// }
    /// # let _: fn(&mut Shop, &mut Call<'_>) -> HandlerResult = order;
    /// ```
    ///
    /// # Errors
    /// Those of [`suspend`](RequestContext::suspend), and error -32603 if too much work runs.
    pub fn resume(self, request: &mut RequestContext<'_>, state: &[u8]) -> HandlerResult {
        let busy = RpcError::internal(BUSY);
        let job = self.work.begin(request.token()).ok_or(HandlerError::from(busy))?;
        let kept = job.clone();
        let (token, receipt) = request.suspend(state).inspect_err(|_| kept.entry.settle())?;
        let (late, shared) = (self.work.late.clone(), Arc::clone(&self.work.shared));
        let end = move |result: T| {
            let _ = late.resume(token, move |_| shared.keep(token, Box::new(result)));
        };
        match (self.start)(job, self.work.spawn.clone(), kept.entry.ending(end)) {
            Ok(()) => Ok(receipt),
            Err(_) => {
                kept.entry.settle();
                let _ = self.work.late.fail(token, &RpcError::internal(NOT_STARTED));
                Ok(receipt)
            }
        }
    }
}

impl<S: 'static, T: Display + Send + 'static, E: Display + Send + 'static> NewWork<'_, S, Result<T, E>> {
    /// Begins, and answers the call with the text of the result. An error is a result with `isError`.
    ///
    /// # Errors
    /// Those of [`then`](NewWork::then).
    pub fn answer(self, call: &mut Call<'_>) -> HandlerResult {
        self.then(call, |_, call, result| match result {
            Ok(text) => call.text(format_args!("{text}")),
            Err(error) => call.error(format_args!("{error}")),
        })
    }
}

/// A request that is worked on, as its work sees it.
pub struct Job<S: 'static> {
    entry: Arc<Entry<S>>,
    /// The sender, for what the methods do not cover.
    pub late: LateSender<S>,
}

impl<S: 'static> Job<S> {
    /// Returns the token of the request.
    #[must_use]
    pub fn token(&self) -> RequestToken {
        self.entry.token
    }

    /// Returns whether the client has cancelled the request, or the server has ended: nothing that is sent for it is of use.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.entry.flag.is_set()
    }

    /// Sends `notifications/progress`, see [`LateSender::progress`]. Dropped while the channel is full.
    pub fn progress(&self, progress: Progress<'_>) {
        let _ = self.late.progress(self.token(), progress);
    }

    /// Sends `notifications/message`, see [`LateSender::log`]. Dropped while the channel is full.
    pub fn log(&self, level: LoggingLevel, message: impl Into<LogMessage>) {
        let _ = self.late.log(self.token(), level, message);
    }
}

/// The results that may wait for their handlers, beside one for each place. Those of requests in flight that wait for room.
const UNTAKEN: usize = 1024;

struct Shared {
    table: Mutex<Table>,
    most: usize,
}

struct Table {
    running: HashMap<RequestToken, Arc<Flag>>,
    /// Results that the handlers of their requests have not taken.
    results: VecDeque<(RequestToken, Box<dyn Any + Send>)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    fn keep(&self, token: RequestToken, result: Box<dyn Any + Send>) {
        let mut table = self.lock();
        // A handler that never takes its result must not fill the memory. Those that will are fewer.
        let oldest = if table.results.len() >= self.most + UNTAKEN { table.results.pop_front() } else { None };
        table.results.push_back((token, result));
        drop(table);
        drop(oldest);
    }
}

impl<S: 'static> Work<S> {
    /// Takes a place, if there is one.
    fn begin(&self, token: RequestToken) -> Option<Job<S>> {
        let mut table = self.shared.lock();
        if table.running.len() >= self.shared.most || table.running.contains_key(&token) {
            return None;
        }
        let flag = Arc::<Flag>::default();
        table.running.insert(token, Arc::clone(&flag));
        let (settled, shared, late) = (AtomicBool::new(false), Arc::clone(&self.shared), self.late.clone());
        Some(Job { entry: Arc::new(Entry { token, flag, settled, shared, late }), late: self.late.clone() })
    }
}

/// A piece of work, until its thread or future has ended.
struct Entry<S: 'static> {
    token: RequestToken,
    flag: Arc<Flag>,
    /// There is a result, or nothing has begun.
    settled: AtomicBool,
    shared: Arc<Shared>,
    late: LateSender<S>,
}

impl<S> Entry<S> {
    fn settle(&self) {
        self.settled.store(true, Ordering::SeqCst);
    }

    /// Returns the end of the work: its place is free before its result is seen.
    fn ending<T: 'static>(self: &Arc<Self>, end: impl FnOnce(T) + Send + 'static) -> End<T> {
        let entry = Arc::clone(self);
        Box::new(move |result| {
            entry.settle();
            entry.free();
            end(result);
        })
    }

    fn free(&self) {
        let mut table = self.shared.lock();
        if table.running.get(&self.token).is_some_and(|flag| Arc::ptr_eq(flag, &self.flag)) {
            table.running.remove(&self.token);
        }
    }
}

impl<S> Drop for Entry<S> {
    fn drop(&mut self) {
        self.free();
        // It has panicked, or its runtime has dropped it: its client must not wait for ever.
        if !self.settled.load(Ordering::SeqCst) && !self.flag.is_set() {
            let _ = self.late.fail(self.token, &ENDED);
        }
    }
}

/// The sign of a cancellation.
#[derive(Default)]
struct Flag {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Flag {
    fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns whether it is set; else it wakes the task when it is.
    fn poll(&self, cx: &Context<'_>) -> bool {
        *lock(&self.waker) = Some(cx.waker().clone());
        self.is_set()
    }
}

/// Polls a future until it is ready; `None` after a cancellation.
async fn unless_cancelled<U: Future>(future: U, flag: &Flag) -> Option<U::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| if flag.poll(cx) { Poll::Ready(None) } else { future.as_mut().poll(cx).map(Some) }).await
}

fn start_thread(run: impl FnOnce() + Send + 'static) -> Result<(), HandlerError> {
    let started = thread::Builder::new().name("mcp-work".into()).spawn(run);
    started.map(drop).map_err(|_| RpcError::internal(NOT_STARTED).into())
}

fn block_on(mut future: WorkFuture) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
}

impl<S> Clone for Job<S> {
    fn clone(&self) -> Self {
        Job { entry: Arc::clone(&self.entry), late: self.late.clone() }
    }
}

impl<S> fmt::Debug for Work<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("running", &self.running()).finish_non_exhaustive()
    }
}

mcp_sansio::debug_fields!(impl<S, T> for NewWork<'_, S, T> {});

impl<S> fmt::Debug for Job<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("token", &self.entry.token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Conversation;
    use crate::{LateReceiver, channel};
    use mcp_sansio::revision::Revision;
    use mcp_sansio::server::ServerChange;
    use mcp_sansio::service::{Service, Tool};
    use serde_json::json;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    struct State {
        work: Work<State>,
        tokens: Vec<RequestToken>,
    }

    fn later(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
        let (token, outcome) = call.later();
        state.tokens.push(token);
        outcome
    }

    fn unstarted<T>(work: &Work<State>) -> NewWork<'_, State, T> {
        NewWork { work, start: Box::new(|_, _, _| Err(RpcError::internal(NOT_STARTED).into())) }
    }

    static TOOLS: [Tool<State>; 3] = [
        Tool::new("later", "Waits", later),
        Tool::new("unstarted", "Has no thread", |state, call| {
            unstarted(&state.work).then(call, |_, call, ()| call.text("not reached"))
        }),
        Tool::new("unresumed", "Has no thread", |state, call| unstarted::<()>(&state.work).resume(call, b"")),
    ];

    fn run(test: impl FnOnce(&mut Conversation<'_, State>, LateReceiver<State>)) {
        let (late, receiver) = channel();
        let service = Service::new("work", "1").tools(&TOOLS);
        let work = Work::new(late, 3).spawner(std::mem::forget);
        let mut talk = Conversation::new(&service, State { work, tokens: Vec::new() });
        talk.open(Revision::V2025_11_25);
        for _ in 0..2 {
            assert!(talk.call("later", &json!({})).is_pending());
        }
        test(&mut talk, receiver);
    }

    #[test]
    fn only_work_without_an_end_fails_its_request() {
        run(|talk, receiver| {
            let State { work, tokens } = talk.state();
            let job = work.begin(tokens[0]).unwrap();
            assert!(work.begin(tokens[0]).is_none(), "one request has one piece of work");
            assert_eq!((work.running(), job.is_cancelled(), job.token()), (1, false, tokens[0]));
            // A job that is settled counts until its last copy is dropped.
            job.entry.settle();
            drop(job.clone());
            assert_eq!(work.running(), 1);
            drop(job);
            assert!(receiver.is_empty() && work.running() == 0);
            // Its client does not wait any more.
            let (job, other) = (work.begin(tokens[0]).unwrap(), work.begin(tokens[1]).unwrap());
            work.cancel(tokens[0]);
            assert!(job.is_cancelled() && !other.is_cancelled());
            drop(job);
            assert!(receiver.is_empty() && work.running() == 1);
            drop(other);
            assert!(!receiver.is_empty() && work.running() == 0);
        });
    }

    #[test]
    fn a_job_sends_what_its_sender_sends() {
        run(|talk, mut receiver| {
            let State { work, tokens } = talk.state();
            let job = work.begin(tokens[0]).unwrap();
            let sends: [&dyn Fn(); 3] =
                [&|| job.progress(Progress::new(1)), &|| job.log(LoggingLevel::Error, "it boils over"), &|| {
                    job.late.publish(ServerChange::Tools).unwrap()
                }];
            for send in sends {
                assert!(receiver.is_empty());
                send();
                assert!(!receiver.is_empty());
                talk.hear(&mut receiver, Duration::ZERO);
            }
        });
    }

    #[test]
    fn work_that_does_not_begin_is_an_answer() {
        run(|talk, mut receiver| {
            let answer = talk.call("unstarted", &json!({}));
            assert!(answer.is_error() && answer.to_string().contains(NOT_STARTED), "{answer}");
            assert!(receiver.is_empty());
            assert!(talk.call("unresumed", &json!({})).is_pending());
            assert_eq!(receiver.waiting(), 1, "it is answered once");
            let lines = talk.hear(&mut receiver, Duration::ZERO);
            assert!(matches!(&lines[..], [line] if line.contains(NOT_STARTED)), "{lines:?}");
            assert!(receiver.is_empty());
            assert_eq!(talk.state().work.running(), 0);
        });
    }

    /// Counts its drops. It uses the table then: a drop under the lock would never end.
    struct Counted(Arc<AtomicUsize>, Arc<Shared>);

    impl Drop for Counted {
        fn drop(&mut self) {
            drop(self.1.lock());
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn results_that_are_not_taken_are_limited() {
        let (done, is_done) = std::sync::mpsc::channel();
        thread::spawn(move || {
            run(|talk, _receiver| {
                let State { work, tokens } = talk.state();
                let dropped = Arc::<AtomicUsize>::default();
                let count = || dropped.load(Ordering::SeqCst);
                let keep = |token| {
                    work.shared.keep(token, Box::new(Counted(Arc::clone(&dropped), Arc::clone(&work.shared))));
                };
                keep(tokens[0]);
                (1..UNTAKEN + 3).for_each(|_| keep(tokens[1]));
                assert_eq!(count(), 0);
                keep(tokens[1]);
                assert_eq!(count(), 1);
                // The oldest has gone.
                work.cancel(tokens[0]);
                assert_eq!((count(), work.shared.lock().results.len()), (1, UNTAKEN + 3));
                keep(tokens[0]);
                assert_eq!(count(), 2);
                work.cancel(tokens[1]);
                assert_eq!((count(), work.shared.lock().results.len()), (UNTAKEN + 4, 1));
            });
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
