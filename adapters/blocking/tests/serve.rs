//! A server over a reader and a writer.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use mcp_sansio::server::{MessageLimits, Progress};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};

/// The bytes that were written so far, for the handlers.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn work(written: &mut Shared, call: &mut Call<'_>) -> HandlerResult {
    let seen = |part: &str| String::from_utf8_lossy(&written.0.borrow()).contains(part);
    for step in 1..=3_u64 {
        let _ = call.progress(Progress::new(step).of(3));
        if !seen(&format!("\"progress\":{step},")) {
            return call.error(format_args!("nobody has heard of step {step}"));
        }
    }
    call.text("done")
}

static TOOLS: [Tool<Shared>; 1] = [Tool::new("work", "Takes its time", work)];

/// The progress of a slow handler is written while it runs, not afterwards.
#[test]
fn progress_is_told_at_once() {
    let input = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":7,
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut input: Vec<u8> = input.iter().copied().filter(|byte| *byte != b'\n').collect();
    input.push(b'\n');
    let service = Service::new("worker", "1.0").tools(&TOOLS);
    let (mut state, written) = (Shared::default(), Shared::default());
    state.0 = Rc::clone(&written.0);
    mcp_sansio_blocking::serve(&input[..], written.clone(), &service, &mut state, MessageLimits::default()).unwrap();
    let text = String::from_utf8(written.0.take()).unwrap();
    assert!(text.contains(r#""text":"done""#), "{text}");
}

/// A question ends by its own deadline when the client does not answer it.
#[cfg(unix)]
// spec: B087 B088
#[test]
fn a_question_that_nobody_answers_ends_in_time() {
    use mcp_sansio::service::InputRequest;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;

    static ASKS: [Tool<()>; 1] = [Tool::new("ask", "Asks for the roots", |(), call| match call.answer("roots") {
        Some(answer) => call.text(format_args!("{answer:?}")),
        None => call.ask(&[InputRequest::roots("roots")], b""),
    })];
    let (near, far) = UnixStream::pair().unwrap();
    let serving = std::thread::spawn(move || {
        let service = Service::new("asker", "1.0").tools(&ASKS);
        let limits = MessageLimits { ask_timeout: 50, ..MessageLimits::default() };
        mcp_sansio_blocking::serve_fd(far.try_clone().unwrap(), far, &service, &mut (), limits)
    });
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"test","version":"1"}}}"#;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
    (&near).write_all(format!("{initialize}\n{ask}\n").as_bytes()).unwrap();
    near.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let mut lines = BufReader::new(&near).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("\"id\":0"));
    assert!(lines.next().unwrap().contains("roots/list"));
    assert!(lines.next().unwrap().contains("notifications/cancelled"));
    let answer = lines.next().unwrap();
    assert!(answer.contains("\"id\":1") && answer.contains("TimedOut"), "{answer}");
    near.shutdown(std::net::Shutdown::Write).unwrap();
    serving.join().unwrap().unwrap();
}

/// A client that has closed its side gets its answers and nothing else.
#[test]
fn nothing_but_answers_is_written_after_the_end_of_the_input() {
    static TELLS: [Tool<()>; 1] = [Tool::new("tell", "Tells and asks", |(), call| {
        let _ = call.progress(Progress::new(1));
        match call.answer("roots") {
            Some(_) => call.text("x".repeat(200_000)),
            None => call.ask(&[mcp_sansio::service::InputRequest::roots("roots")], b""),
        }
    })];
    let input = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell","_meta":{"progressToken":1}}}
"#;
    let service = Service::new("teller", "1.0").tools(&TELLS);
    let written = Shared::default();
    mcp_sansio_blocking::serve(input.as_bytes(), written.clone(), &service, &mut (), MessageLimits::default()).unwrap();
    let text = String::from_utf8(written.0.take()).unwrap();
    let methods: Vec<&str> =
        text.lines().map(|line| if line.contains("progress") { "progress" } else { &line[..40] }).collect();
    // The first run's progress and question came before the end; the second run's progress did not.
    assert_eq!(text.matches("notifications/progress").count(), 1, "{methods:?}");
    // The question was answered with the end, so that its handler could finish.
    let last = text.lines().last().unwrap();
    assert!(last.contains("\"id\":1") && last.contains("xxxx") && text.lines().count() == 4, "{methods:?}");
}

/// The last line of a file may have no newline.
#[test]
fn a_message_at_the_end_of_the_input_needs_no_newline() {
    let (service, written) = (Service::<()>::new("worker", "1.0"), Shared::default());
    let input = &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"[..];
    mcp_sansio_blocking::serve(input, written.clone(), &service, &mut (), MessageLimits::default()).unwrap();
    assert_eq!(written.0.take(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

/// A client that has closed its reading side and keeps the other open: the server does not wait for more of it.
#[test]
fn a_writer_that_fails_ends_it_at_once() {
    struct Once(bool);
    impl io::Read for Once {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            assert!(!std::mem::replace(&mut self.0, true), "it reads on although its answer could not be written");
            (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"[..]).read(space)
        }
    }
    struct Broken(io::ErrorKind);
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let service = Service::<()>::new("broken", "1.0");
    let serve = |kind| {
        mcp_sansio_blocking::serve(Once(false), Broken(kind), &service, &mut (), MessageLimits::default())
            .map_err(|error| error.kind())
    };
    assert_eq!(serve(io::ErrorKind::StorageFull), Err(io::ErrorKind::StorageFull));
    assert_eq!(serve(io::ErrorKind::BrokenPipe), Ok(()));
}

/// After a stop nothing is read: no call begins, and half a message is no message.
#[cfg(unix)]
#[test]
fn a_server_that_was_stopped_takes_no_requests() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use mcp_sansio_blocking::{LateSender, Serve, channel};

    struct State {
        late: LateSender<State>,
        stopper: mcp_sansio_blocking::Stopper,
    }
    static TOOLS: [Tool<State>; 1] =
        [Tool::new("stop", "Stops the server, and answers later", |state: &mut State, call| {
            let (token, outcome) = call.later();
            let (late, stopper) = (state.late.clone(), state.stopper.clone());
            std::thread::spawn(move || {
                stopper.stop();
                std::thread::sleep(Duration::from_millis(500));
                late.answer(token, |_, call| call.text("at last"))
            });
            outcome
        })];
    let call = |id: u8| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"stop","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ) + "\n"
    };
    let (mut client, server) = UnixStream::pair().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let serving = std::thread::spawn(move || {
        let service = Service::new("stopped", "1.0").tools(&TOOLS);
        let (late, receiver) = channel();
        let serve = Serve::new(&service).late(receiver).grace(Duration::from_secs(20));
        let mut state = State { late, stopper: serve.stopper() };
        serve.over(server.try_clone().unwrap(), server, &mut state)
    });
    client.write_all(call(1).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let second = call(2);
    let (half, rest) = second.split_at(40);
    client.write_all(half.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    client.write_all(rest.as_bytes()).unwrap();
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with('\n') && client.read(&mut byte).is_ok_and(|n| n == 1) {
        text.push(char::from(byte[0]));
    }
    assert!(text.contains("at last") && text.contains("\"id\":1"), "{text}");
    // The server ends, although the client has not closed its side.
    serving.join().unwrap().unwrap();
    drop(client);
}

/// A server without a client is stopped, and its waits end.
#[cfg(unix)]
#[test]
fn a_server_at_rest_is_stopped() {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    let (_client, server) = UnixStream::pair().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        let service = Service::<()>::new("stopped", "1.0");
        let serve = mcp_sansio_blocking::Serve::new(&service).grace(Duration::from_secs(20));
        tell.send(serve.stopper()).unwrap();
        serve.over(server.try_clone().unwrap(), server, &mut ())
    });
    let stopper = told.recv().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    stopper.stop();
    serving.join().unwrap().unwrap();
}

/// A server waits for its next input without looking for it again and again.
#[cfg(target_os = "linux")]
#[test]
fn a_server_at_rest_takes_no_processor_time() {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Returns the processor time of this thread, in hundredths of a second.
    fn used() -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
        fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
    let (client, server) = UnixStream::pair().unwrap();
    let serving = std::thread::spawn(move || {
        let service = Service::<()>::new("rests", "1.0");
        let before = used();
        mcp_sansio_blocking::Serve::new(&service).over(server.try_clone().unwrap(), server, &mut ()).unwrap();
        used() - before
    });
    std::thread::sleep(Duration::from_millis(800));
    drop(client);
    let used = serving.join().unwrap();
    assert!(used < 10, "{used} hundredths of a second");
}

#[test]
fn a_read_that_fails_ends_it_with_its_error() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let (service, written) = (Service::new("worker", "1.0").tools(&TOOLS), Shared::default());
    let state = &mut Shared::default();
    let served = mcp_sansio_blocking::serve(Broken, written, &service, state, MessageLimits::default());
    assert_eq!(served.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionReset));
}

/// A signal that interrupts a read is not the end of the input.
#[test]
fn a_read_that_is_interrupted_is_made_again() {
    struct Interrupted<'i>(&'i [u8], bool);
    impl io::Read for Interrupted<'_> {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(space) }
        }
    }
    let input = Interrupted(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", false);
    let (service, written) = (Service::new("worker", "1.0").tools(&TOOLS), Shared::default());
    let state = &mut Shared::default();
    mcp_sansio_blocking::serve(input, written.clone(), &service, state, MessageLimits::default()).unwrap();
    assert_eq!(written.0.take(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}
