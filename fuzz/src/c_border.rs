//! Servers through the border to C, as a C program calls it.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use mcp as _;

#[repr(C)]
struct Tool {
    name: *const c_char,
    description: *const c_char,
    input_schema: *const c_char,
    call: Option<Handler>,
    title: *const c_char,
    output_schema: *const c_char,
    hints: u32,
    reserve: u32,
}

#[repr(C)]
struct Resource {
    uri: *const c_char,
    name: *const c_char,
    read: Option<Handler>,
    texts: [*const c_char; 3],
    reserve: u32,
    complete: Option<Handler>,
}

#[repr(C)]
struct Prompt {
    name: *const c_char,
    description: *const c_char,
    get: Option<Handler>,
    arguments: *const c_void,
    arguments_len: usize,
    title: *const c_char,
    complete: Option<Handler>,
}

#[repr(C)]
struct Config {
    abi: u32,
    name: *const c_char,
    version: *const c_char,
    instructions: *const c_char,
    tools: *const Tool,
    tools_len: usize,
    state: *mut c_void,
    cancelled: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    requests: usize,
    input: usize,
    output: usize,
    scratch: usize,
    resources: usize,
    prompts: usize,
    prompt_arguments: usize,
    subscriptions: usize,
    reopening: bool,
    questions: usize,
    ask_timeout: u64,
    seal_key: *const u8,
}

#[repr(C)]
struct Question {
    key: *const c_char,
    kind: u32,
    message: *const c_char,
    schema: *const c_char,
    texts: [*const c_char; 3],
    max_tokens: u32,
}

#[repr(C)]
struct HttpConfig {
    numbers: [usize; 4],
    path: *const c_char,
    hosts: *const c_void,
    hosts_len: usize,
    flags: [bool; 3],
    random: Option<unsafe extern "C" fn(*mut c_void, *mut u8, usize)>,
    allow: Option<unsafe extern "C" fn(*mut c_void, Slice) -> bool>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Slice {
    bytes: *const c_char,
    len: usize,
}

enum Server {}
enum Request {}
type Handler = unsafe extern "C" fn(*mut c_void, *mut Request);

// As in `mcp.h`.
unsafe extern "C" {
    fn mcp_memory(config: *const Config) -> usize;
    fn mcp_open(
        config: *const Config,
        memory: *mut u64,
        len: usize,
        server: *mut *mut Server,
        problem: *mut c_void,
    ) -> u32;
    fn mcp_offer_resources(server: *mut Server, table: *const Resource, len: usize, problem: *mut c_void) -> u32;
    fn mcp_offer_prompts(server: *mut Server, table: *const Prompt, len: usize, problem: *mut c_void) -> u32;
    fn mcp_offer_logging(server: *mut Server) -> u32;
    fn mcp_run(server: *mut Server) -> u32;
    fn mcp_space(server: *mut Server, room: *mut usize) -> *mut u8;
    fn mcp_filled(server: *mut Server, n: usize);
    fn mcp_pending(server: *mut Server, len: *mut usize) -> *const u8;
    fn mcp_sent(server: *mut Server, n: usize);
    fn mcp_end(server: *mut Server);
    fn mcp_done(server: *mut Server) -> bool;
    fn mcp_answer(server: *mut Server, token: u64, answer: Handler, state: *mut c_void) -> u32;
    fn mcp_arg_int(request: *const Request, name: *const c_char, value: *mut i64) -> u32;
    fn mcp_arg_text(
        request: *const Request,
        name: *const c_char,
        text: *mut c_char,
        room: usize,
        len: *mut usize,
    ) -> u32;
    fn mcp_arg_json(request: *const Request, name: *const c_char, json: *mut Slice) -> u32;
    fn mcp_name(request: *const Request, name: *mut Slice) -> u32;
    fn mcp_reply_text(request: *mut Request, text: *const c_char, len: usize) -> u32;
    fn mcp_reply_result(request: *mut Request, json: *const c_char, len: usize) -> u32;
    fn mcp_reply_values(request: *mut Request, values: *const *const c_char, len: usize) -> u32;
    fn mcp_later(request: *mut Request) -> u64;
    fn mcp_progress(request: *mut Request, done: u64, total: u64, message: *const c_char) -> u32;
    fn mcp_log(request: *mut Request, level: u32, logger: *const c_char, text: *const c_char, len: usize) -> u32;
    fn mcp_ask(
        request: *mut Request,
        questions: *const Question,
        len: usize,
        state: *const c_void,
        state_len: usize,
    ) -> u32;
    fn mcp_input_text(
        request: *mut Request,
        key: *const c_char,
        name: *const c_char,
        to: *mut c_char,
        room: usize,
        len: *mut usize,
    ) -> u32;
    fn mcp_http_memory(config: *const Config, http: *const HttpConfig) -> usize;
    fn mcp_http_open(
        config: *const Config,
        http: *const HttpConfig,
        memory: *mut u64,
        len: usize,
        server: *mut *mut Server,
        problem: *mut c_void,
    ) -> u32;
    fn mcp_http_run(server: *mut Server, connection: usize) -> u32;
    fn mcp_http_space(server: *mut Server, connection: usize, room: *mut usize) -> *mut u8;
    fn mcp_http_filled(server: *mut Server, connection: usize, n: usize);
    fn mcp_http_pending(server: *mut Server, connection: usize, len: *mut usize) -> *const u8;
    fn mcp_http_sent(server: *mut Server, connection: usize, n: usize);
    fn mcp_http_end(server: *mut Server, connection: usize);
    fn mcp_http_close(server: *mut Server, connection: usize);
}

/// The state of the handlers.
struct Program {
    server: *mut Server,
    later: Vec<u64>,
}

const OK: u32 = 0;
const ANSWERED: u32 = 11;
const BUSY: u32 = 13;

/// Answers with all that can be read of a request, in a text with an end of its own.
unsafe extern "C" fn tell(state: *mut c_void, request: *mut Request) {
    // SAFETY: the contracts of `mcp.h`, here and below.
    unsafe {
        let program = &mut *state.cast::<Program>();
        // From within a handler the server does nothing.
        assert_eq!(mcp_answer(program.server, 1, tell, state), BUSY);
        let mut told = String::new();
        for name in [c"x", c"a\"b", c"\xf0\x9f\x98\x80"] {
            let (mut number, mut text, mut len) = (0, [0; 16], 0);
            if mcp_arg_int(request, name.as_ptr(), &mut number) == OK {
                told += &number.to_string();
            }
            if mcp_arg_text(request, name.as_ptr(), text.as_mut_ptr(), text.len(), &mut len) == OK {
                assert!(len < text.len() && text[len] == 0);
                told += std::str::from_utf8(std::slice::from_raw_parts(text.as_ptr().cast(), len)).unwrap();
            }
        }
        let mut slice = Slice { bytes: null(), len: 0 };
        if mcp_name(request, &mut slice) == OK {
            told += std::str::from_utf8(std::slice::from_raw_parts(slice.bytes.cast(), slice.len)).unwrap();
        }
        mcp_progress(request, 1, 2, c"half".as_ptr());
        mcp_log(request, 2, null(), c"told".as_ptr(), 4);
        if mcp_reply_text(request, told.as_ptr().cast(), told.len()) != OK {
            let values = [c"one".as_ptr(), c"two".as_ptr()];
            assert_eq!(mcp_reply_values(request, values.as_ptr(), 2), OK);
        }
        assert_eq!(mcp_reply_text(request, c"twice".as_ptr(), 5), ANSWERED);
    }
}

/// Answers with the arguments as the whole result.
unsafe extern "C" fn result(_: *mut c_void, request: *mut Request) {
    unsafe {
        let mut slice = Slice { bytes: null(), len: 0 };
        if mcp_arg_json(request, null(), &mut slice) == OK {
            mcp_reply_result(request, slice.bytes, slice.len);
        }
    }
}

unsafe extern "C" fn later(state: *mut c_void, request: *mut Request) {
    unsafe { (*state.cast::<Program>()).later.push(mcp_later(request)) };
}

unsafe extern "C" fn ask(_: *mut c_void, request: *mut Request) {
    unsafe {
        let (mut text, mut len) = ([0; 8], 0);
        if mcp_input_text(request, c"k".as_ptr(), c"v".as_ptr(), text.as_mut_ptr(), 8, &mut len) == OK {
            mcp_reply_text(request, text.as_ptr(), len);
            return;
        }
        let schema = c"{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"string\"}}}".as_ptr();
        let form =
            Question { key: c"k".as_ptr(), kind: 1, message: c"?".as_ptr(), schema, texts: [null(); 3], max_tokens: 0 };
        let roots = Question {
            key: c"r".as_ptr(),
            kind: 4,
            message: null(),
            schema: null(),
            texts: [null(); 3],
            max_tokens: 0,
        };
        mcp_ask(request, [form, roots].as_ptr(), 2, c"state".as_ptr().cast(), 5);
    }
}

unsafe extern "C" fn cancelled(state: *mut c_void, token: u64) {
    unsafe { (*state.cast::<Program>()).later.retain(|late| *late != token) };
}

unsafe extern "C" fn random(_: *mut c_void, bytes: *mut u8, len: usize) {
    unsafe { bytes.write_bytes(7, len) };
}

fn tool(name: &'static CStr, call: Handler) -> Tool {
    let (description, none) = (c"A tool".as_ptr(), null());
    Tool {
        name: name.as_ptr(),
        description,
        input_schema: none,
        call: Some(call),
        title: none,
        output_schema: none,
        hints: 0,
        reserve: 64,
    }
}

fn resource(uri: &'static CStr) -> Resource {
    Resource {
        uri: uri.as_ptr(),
        name: c"r".as_ptr(),
        read: Some(tell),
        texts: [null(); 3],
        reserve: 0,
        complete: Some(tell),
    }
}

/// The body of the target.
pub(crate) fn run(data: &[u8]) {
    let Some((&[sizes, step], stream)) = data.split_first_chunk::<2>() else { return };
    let whole = serve(stream, usize::MAX, sizes);
    let cut = serve(stream, usize::from(step) + 1, sizes);
    assert!(kept(&whole).eq(kept(&cut)), "cut into steps of {}", usize::from(step) + 1);
    over_http(stream, usize::from(step) + 1, sizes);
}

/// Returns the messages but for logs and progress, which are left out where the output has no room.
fn kept(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    let may_be_dropped = |line: &&[u8]| line.windows(24).any(|bytes| bytes == b"\"method\":\"notifications/");
    output.split(|byte| *byte == b'\n').filter(move |line| !may_be_dropped(line))
}

/// Calls `act` with an open server.
fn with_server<T>(sizes: u8, http: Option<&HttpConfig>, act: impl FnOnce(*mut Server, &mut Program) -> T) -> T {
    let tools = [tool(c"tell", tell), tool(c"result", result), tool(c"later", later), tool(c"ask", ask)];
    let resources = [resource(c"r://one"), resource(c"r://{x}")];
    let prompt = Prompt {
        name: c"p".as_ptr(),
        description: c"P".as_ptr(),
        get: Some(tell),
        arguments: null(),
        arguments_len: 0,
        title: null(),
        complete: Some(tell),
    };
    let mut program = Box::new(Program { server: null_mut(), later: Vec::new() });
    let size = usize::from(sizes);
    let key = [7; 32];
    let config = Config {
        abi: 1,
        name: c"fuzz".as_ptr(),
        version: c"1".as_ptr(),
        instructions: null(),
        tools: tools.as_ptr(),
        tools_len: 4,
        state: (&raw mut *program).cast(),
        cancelled: Some(cancelled),
        requests: 2 + size % 3,
        input: 128 + size * 4,
        output: 512 + size * 4,
        scratch: size,
        resources: 2,
        prompts: 1,
        prompt_arguments: 0,
        subscriptions: size,
        reopening: size % 2 == 1,
        questions: size * 2,
        ask_timeout: 0,
        seal_key: key.as_ptr(),
    };
    // SAFETY: the contracts of `mcp.h`; all lives until the end of this function.
    unsafe {
        let needed = http.map_or_else(|| mcp_memory(&config), |http| mcp_http_memory(&config, http));
        let mut memory = vec![0_u64; needed.div_ceil(8)];
        let mut server = null_mut();
        let opened = match http {
            None => mcp_open(&config, memory.as_mut_ptr(), needed, &mut server, null_mut()),
            Some(http) => mcp_http_open(&config, http, memory.as_mut_ptr(), needed, &mut server, null_mut()),
        };
        assert_eq!(opened, OK);
        assert_eq!(mcp_offer_resources(server, resources.as_ptr(), 2, null_mut()), OK);
        assert_eq!(mcp_offer_prompts(server, &prompt, 1, null_mut()), OK);
        assert_eq!(mcp_offer_logging(server), OK);
        program.server = server;
        act(server, &mut program)
    }
}

/// Returns the output of a server of lines. What is answered later is answered at the end.
fn serve(mut stream: &[u8], step: usize, sizes: u8) -> Vec<u8> {
    with_server(sizes, None, |server, program| {
        let mut output = Vec::new();
        // SAFETY: the contracts of `mcp.h`.
        unsafe {
            loop {
                let next = mcp_run(server);
                let mut len = 0;
                let pending = mcp_pending(server, &mut len);
                output.extend_from_slice(std::slice::from_raw_parts(pending, len));
                mcp_sent(server, len);
                if next == 1 {
                    continue;
                }
                if mcp_done(server) {
                    return output;
                }
                let mut room = 0;
                let space = mcp_space(server, &mut room);
                let n = room.min(step).min(stream.len());
                if n == 0 {
                    for token in std::mem::take(&mut program.later) {
                        mcp_answer(server, token, tell_late, (&raw mut *program).cast());
                    }
                    mcp_end(server);
                    continue;
                }
                let (now, rest) = stream.split_at(n);
                space.copy_from_nonoverlapping(now.as_ptr(), n);
                mcp_filled(server, n);
                stream = rest;
            }
        }
    })
}

unsafe extern "C" fn tell_late(_: *mut c_void, request: *mut Request) {
    unsafe { mcp_reply_text(request, c"late".as_ptr(), 4) };
}

fn over_http(mut stream: &[u8], step: usize, sizes: u8) {
    let http = HttpConfig {
        numbers: [2, 2, 2, 0],
        path: null(),
        hosts: null(),
        hosts_len: 0,
        flags: [false, true, false],
        random: Some(random),
        allow: None,
    };
    with_server(sizes, Some(&http), |server, _| {
        // SAFETY: the contracts of `mcp.h`.
        unsafe {
            loop {
                let next = mcp_http_run(server, 1);
                let mut len = 0;
                mcp_http_pending(server, 1, &mut len);
                mcp_http_sent(server, 1, len);
                let mut room = 0;
                let space = mcp_http_space(server, 1, &mut room);
                let n = room.min(step).min(stream.len());
                if next == 3 || next != 1 && n == 0 {
                    break;
                }
                let (now, rest) = stream.split_at(n);
                space.copy_from_nonoverlapping(now.as_ptr(), n);
                mcp_http_filled(server, 1, n);
                stream = rest;
            }
            mcp_http_end(server, 1);
            mcp_http_run(server, 1);
            mcp_http_close(server, 1);
            // A place that is not there.
            assert_eq!(mcp_http_run(server, 2), 3);
        }
    });
}
