//! Loads stdio servers, one after the other in turns, and checks every answer.
//!
//! - `driver lines KIND N` prints a session, to feed a server from a file.
//! - `driver load [KIND/IN-FLIGHT...] NAME=PROGRAM...` prints rates and processor time, compared with the first server.
//! - `driver memory NAME=PROGRAM...` prints memory and the time to start.

use mcp_sansio_bench::{Kind, OPENING, id, text};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const WARM: Duration = Duration::from_millis(50);
const MEASURE: Duration = Duration::from_millis(200);

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it on processor `cpu` and opens the connection.
    fn start(program: &str, cpu: usize) -> Self {
        let spawn =
            |command: &mut Command| command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let words = || program.split(' ');
        let mut child = spawn(Command::new("taskset").args(["-c", &cpu.to_string()]).args(words()))
            .or_else(|_| spawn(Command::new(words().next().unwrap_or(program)).args(words().skip(1))))
            .expect("the server starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut server = Server { child, input, output: BufReader::with_capacity(256 << 10, output) };
        server.input.write_all(OPENING.as_bytes()).expect("it reads");
        let mut answer = String::new();
        server.output.read_line(&mut answer).expect("it answers");
        // Some servers know older revisions only, and the same messages are in all of them.
        assert!(answer.contains("\"protocolVersion\""), "{answer}");
        server
    }

    fn status(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// Returns its processor time in nanoseconds.
    fn processor_time(&self) -> u64 {
        mcp_sansio_bench::processor_time(self.child.id())
    }

    fn stop(mut self) {
        drop(self.input);
        let mut rest = Vec::new();
        let _ = self.output.read_to_end(&mut rest);
        let _ = self.child.wait();
        assert!(rest.is_empty(), "a bad end");
    }
}

/// The expected answers of a kind: the first one was read as JSON, the others differ only in the two numbers.
struct Answers {
    kind: Kind,
    template: Vec<u8>,
    id_at: usize,
    text_at: Option<usize>,
    /// The numbers of the requests without an answer. Some servers answer in another order.
    waiting: VecDeque<u64>,
}

impl Answers {
    fn learn(kind: Kind, answer: &[u8]) -> Self {
        let json: serde_json::Value = serde_json::from_slice(answer).expect("an answer is JSON");
        assert_eq!(json["id"], id(0));
        let said = text(kind, 0);
        let text_at = (!said.is_empty()).then(|| {
            let decoded: String = serde_json::from_str(&format!("\"{said}\"")).expect("text is JSON");
            assert_eq!(json["result"]["content"][0]["text"], decoded);
            memchr::memmem::find(answer, said.as_bytes()).expect("the text as it stands")
        });
        assert!(json["result"].is_object());
        let id_at = memchr::memmem::find(answer, id(0).to_string().as_bytes()).expect("the id");
        Answers { kind, template: answer.to_vec(), id_at, text_at, waiting: VecDeque::new() }
    }

    fn check(&mut self, answer: &[u8]) {
        let digits = answer.get(self.id_at..).and_then(|rest| rest.get(..10)).unwrap_or_default();
        let found = digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit.wrapping_sub(b'0')));
        let at = self.waiting.iter().position(|n| id(*n) == found).unwrap_or(0);
        let n = self.waiting.remove(at).expect("one was asked");
        self.template[self.id_at..][..10].copy_from_slice(id(n).to_string().as_bytes());
        if let Some(at) = self.text_at {
            self.template[at..][..10].copy_from_slice(format!("{n:010}").as_bytes());
        }
        assert!(self.template == answer, "{:?} {n}: {}", self.kind, String::from_utf8_lossy(answer));
    }
}

/// Returns requests per second, and microseconds of processor time for each.
fn load(program: &str, kind: Kind, width: u64, cpu: usize) -> (f64, f64) {
    let mut server = Server::start(program, cpu);
    let (mut line, mut request) = (Vec::new(), kind.line(0).into_bytes());
    let id_in = memchr::memmem::find(&request, id(0).to_string().as_bytes()).expect("the id");
    let text_in = memchr::memmem::find(&request, b"0000000000");
    server.input.write_all(&request).expect("it reads");
    server.output.read_until(b'\n', &mut line).expect("it answers");
    let mut answers = Answers::learn(kind, &line);
    let (mut sent, mut received, mut batch) = (1, 1, Vec::new());
    let (mut began, mut from, mut time) = (Instant::now(), None, 0);
    loop {
        batch.clear();
        while sent < received + width {
            request[id_in..][..10].copy_from_slice(id(sent).to_string().as_bytes());
            if let Some(at) = text_in {
                request[at..][..10].copy_from_slice(format!("{sent:010}").as_bytes());
            }
            batch.extend_from_slice(&request);
            answers.waiting.push_back(sent);
            sent += 1;
        }
        server.input.write_all(&batch).expect("it reads");
        // At least one answer, and all that arrived with it.
        loop {
            line.clear();
            server.output.read_until(b'\n', &mut line).expect("it answers");
            answers.check(&line);
            received += 1;
            if server.output.buffer().is_empty() {
                break;
            }
        }
        match from {
            None if began.elapsed() > WARM => {
                (from, time, began) = (Some(received), server.processor_time(), Instant::now());
            }
            Some(from) if began.elapsed() > MEASURE => {
                let (count, elapsed) = ((received - from) as f64, began.elapsed().as_secs_f64());
                let spent = (server.processor_time() - time) as f64;
                while received < sent {
                    line.clear();
                    server.output.read_until(b'\n', &mut line).expect("it answers");
                    answers.check(&line);
                    received += 1;
                }
                server.stop();
                return (count / elapsed, spent / count / 1e3);
            }
            _ => {}
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const CASES: [(Kind, u64); 8] = [
    (Kind::Ping, 1),
    (Kind::Echo32, 1),
    (Kind::Echo32, 64),
    (Kind::Modern32, 1),
    (Kind::Modern32, 64),
    (Kind::List, 64),
    (Kind::Plain64k, 1),
    (Kind::Escaped64k, 1),
];

fn loads(cases: &[(Kind, u64)], servers: &[(&str, &str)]) {
    println!("| load | in flight | server | requests/s | of {0} | cpu us each | of {0} |", servers[0].0);
    println!("|---|---|---|---|---|---|---|");
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    for &(kind, width) in cases {
        // With one request at a time, client and server never run together, and waking another processor costs
        // more than most answers.
        let cpu = if width == 1 { 0 } else { 1 % cpus };
        let mut measured = vec![Vec::new(); servers.len()];
        for _ in 0..ROUNDS {
            for (place, (_, program)) in measured.iter_mut().zip(servers) {
                place.push(load(program, kind, width, cpu));
            }
        }
        for (results, (name, _)) in measured.iter().zip(servers) {
            // Compares within a round, because rounds differ more than servers.
            let ratio = |of: fn(&(f64, f64)) -> f64| {
                median(results.iter().zip(&measured[0]).map(|(a, b)| of(a) / of(b)).collect())
            };
            println!(
                "| {} | {width} | {name} | {:.0} | {:.2} | {:.2} | {:.2} |",
                kind.name(),
                median(results.iter().map(|r| r.0).collect()),
                ratio(|r| r.0),
                median(results.iter().map(|r| r.1).collect()),
                ratio(|r| r.1)
            );
        }
    }
}

fn memory(servers: &[(&str, &str)]) {
    println!("| server | start to first answer, ms | idle, KiB | peak with one message of 1 MiB, KiB |");
    println!("|---|---|---|---|");
    for (name, program) in servers {
        let mut starts = Vec::new();
        let (mut idle, mut peak) = (0, 0);
        for turn in 0..15 {
            let began = Instant::now();
            let mut server = Server::start(program, 0);
            starts.push(began.elapsed().as_secs_f64() * 1e3);
            if turn == 0 {
                idle = server.status("VmRSS");
                let line = Kind::Plain1m.line(0);
                // The server reads all of it before it answers, so the pipe cannot block.
                server.input.write_all(line.as_bytes()).expect("it reads");
                let mut answer = Vec::new();
                server.output.read_until(b'\n', &mut answer).expect("it answers");
                drop(Answers::learn(Kind::Plain1m, &answer));
                peak = server.status("VmHWM");
            }
            server.stop();
        }
        println!("| {name} | {:.2} | {idle} | {peak} |", median(starts));
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let servers = || args[1..].iter().filter_map(|word| word.split_once('=')).collect::<Vec<_>>();
    let cases = || {
        let cases = args[1..].iter().filter(|word| !word.contains('=')).filter_map(|word| word.split_once('/'));
        cases.map(|(kind, width)| (Kind::named(kind), width.parse().expect("a number"))).collect::<Vec<_>>()
    };
    match args.first().map(String::as_str) {
        Some("lines") if args.len() == 3 => {
            let (kind, n): (_, u64) = (Kind::named(&args[1]), args[2].parse().expect("a number"));
            let mut out = io::BufWriter::new(io::stdout().lock());
            out.write_all(OPENING.as_bytes())?;
            (0..n).try_for_each(|i| out.write_all(kind.line(i).as_bytes()))?;
            out.flush()?;
        }
        Some("load") if args.len() > 1 => match cases() {
            cases if cases.is_empty() => loads(&CASES, &servers()),
            cases => loads(&cases, &servers()),
        },
        Some("memory") if args.len() > 1 => memory(&servers()),
        _ => {
            eprintln!("usage: driver lines KIND N | load [KIND/IN-FLIGHT...] NAME=PROGRAM... | memory NAME=PROGRAM...")
        }
    }
    Ok(())
}
