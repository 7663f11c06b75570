use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

use mcp_sansio::service::Service;
use mcp_sansio_http::host::{Broken, Interest};

use super::*;

/// A socket whose client has sent some bytes, and reads all that it gets.
struct Canned(&'static [u8]);

const STREAM: Canned = Canned(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
const SILENT: Canned = Canned(b"");

impl HttpSocket for Canned {
    fn is_readable(&mut self) -> bool {
        !self.0.is_empty()
    }
    fn waiting(&self) -> usize {
        self.0.len()
    }
    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let (now, later) = self.0.split_at(self.0.len().min(space.len()));
        space[..now.len()].copy_from_slice(now);
        self.0 = later;
        Poll::Ready(Ok(now.len()))
    }
    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn shut(&mut self) -> Result<(), Broken> {
        Ok(())
    }
    fn wait_for(&mut self, _: Interest, _: bool) -> Result<(), Broken> {
        Ok(())
    }
}

fn with(setup: HttpSetup<()>, test: impl FnOnce(&mut HttpServing<(), Canned>, &mut App<'_, ()>)) {
    let (service, mut state) = (Service::new("test", "1"), ());
    let mut app = App::new(&service, &mut state);
    test(&mut setup.serve(false, &mut app, |bytes| bytes.fill(7)), &mut app);
}

fn turn(serving: &mut HttpServing<(), Canned>, app: &mut App<'_, ()>) -> Option<Millis> {
    serving.turn(app, &mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_wait_lasts_until_the_first_time_at_which_something_is_due() {
    with(HttpSetup::new(), |serving, _| {
        let now = serving.now;
        assert_eq!(serving.next(None), None);
        assert_eq!(serving.next(Some(now + 1234)), Some(now + 1234));
        serving.look_at = Some(now + 300);
        assert_eq!((serving.next(None), serving.next(Some(now + 299))), (Some(now + 300), Some(now + 299)));
        serving.accept_at = Some(now + 200);
        assert_eq!((serving.next(None), serving.accepts()), (Some(now + 200), false));
        // It is over, and connections are accepted again.
        serving.accept_at = Some(now);
        assert_eq!((serving.next(None), serving.accepts()), (Some(now + 300), true));
    });
    with(HttpSetup::new(), |serving, app| {
        serving.enter(SILENT, false, app);
        assert!(serving.next(None).is_some_and(|at| at > serving.now), "buffers of idle connections are released");
    });
}

#[test]
fn a_wait_lasts_until_the_end_of_the_grace() {
    let mut setup = HttpSetup::new();
    setup.grace = Duration::from_secs(20);
    with(setup, |serving, _| {
        assert_eq!(serving.shutdown.step(1, false, Instant::now()), Some(ShutdownStep::Drain));
        let end = serving.shutdown.deadline().unwrap();
        let left = Duration::from_millis(serving.next(None).unwrap() - serving.now);
        assert!(Instant::now() + left > end && left <= Duration::from_millis(20_001), "{left:?}");
    });
}

#[test]
fn only_an_error_of_one_connection_is_no_reason_to_rest() {
    with(HttpSetup::new(), |serving, _| {
        for (kind, goes_on, rests) in [
            (ErrorKind::WouldBlock, false, false),
            (ErrorKind::Interrupted, true, false),
            (ErrorKind::ConnectionAborted, true, false),
            (ErrorKind::OutOfMemory, false, true),
            (ErrorKind::Other, false, true),
        ] {
            serving.accept_at = None;
            assert_eq!(serving.accept_failed(kind), goes_on, "{kind}");
            assert_eq!(serving.accept_at, rests.then_some(serving.now + ACCEPT_PAUSE), "{kind}");
        }
    });
}

#[test]
fn no_connection_comes_while_there_is_no_room() {
    with(HttpSetup::new(), |serving, app| {
        serving.enter(SILENT, false, app);
        assert!(serving.accepts());
        serving.enter(SILENT, true, app);
        assert!(!serving.accepts());
        serving.host.close(0, app, serving.now);
        assert!(serving.accepts());
    });
}

#[test]
fn a_watch_looks_each_period_while_a_stream_is_open() {
    static LOOKS: AtomicUsize = AtomicUsize::new(0);
    let looks = || LOOKS.load(Relaxed);
    let mut setup = HttpSetup::new();
    let look = |(): &mut (), _: &mut HttpEndpoint| _ = LOOKS.fetch_add(1, Relaxed);
    setup.watch = Some((Duration::from_millis(50), look));
    with(setup, |serving, app| {
        serving.look(app);
        assert_eq!((serving.look_at, looks()), (None, 0));
        serving.enter(STREAM, false, app);
        let now = serving.now;
        for (passed, at, seen) in [(0, 50, 0), (49, 50, 0), (50, 100, 1), (99, 100, 1), (110, 160, 2)] {
            serving.now = now + passed;
            serving.look(app);
            assert_eq!((serving.look_at, looks()), (Some(now + at), seen), "after {passed} ms");
        }
        serving.host.close(0, app, now);
        serving.host.endpoint.expire(app, now + 10_000_000);
        serving.look(app);
        assert_eq!((serving.look_at, looks()), (None, 2));
    });
}

/// The time after the handlers of a turn decides.
#[test]
fn a_tick_comes_after_each_turn_with_the_time() {
    let mut setup = HttpSetup::new();
    let mut last = 0;
    setup.tick = Some(Box::new(move |_, _, now| {
        assert!(now >= last);
        last = now;
        Some(now + 77)
    }));
    with(setup, |serving, app| {
        // The last look at the clock was long ago.
        serving.now = 0;
        let wake = turn(serving, app).unwrap();
        assert!(serving.now >= serving.epoch && wake >= serving.now + 77);
        std::thread::sleep(Duration::from_millis(2));
        assert!(turn(serving, app).unwrap() >= wake + 2);
    });
}

#[test]
fn the_only_client_of_a_server_may_be_idle_and_ends_it() {
    let (service, mut state) = (Service::new("test", "1"), ());
    let mut app = App::new(&service, &mut state);
    let mut serving: HttpServing<(), Canned> = HttpSetup::new().serve(true, &mut app, |_| {});
    serving.enter(SILENT, false, &mut app);
    serving.host.expire(&mut app, serving.now + 3_600_000);
    assert!(!serving.has_ended(&mut app, Waker::noop(), &mut Some(())));
    serving.host.close(0, &mut app, serving.now);
    assert!(serving.has_ended(&mut app, Waker::noop(), &mut Some(())));
}

#[test]
fn a_stop_ends_the_server_when_its_streams_have_ended() {
    with(HttpSetup::new(), |serving, app| {
        serving.enter(STREAM, false, app);
        let mut listener = Some(());
        assert!(!serving.has_ended(app, Waker::noop(), &mut listener) && listener.is_some());
        serving.setup.stopper.stop();
        assert!(serving.has_ended(app, Waker::noop(), &mut listener), "no request is in flight");
        assert!(listener.is_none() && !serving.accepts());
    });
}
