//! Answers of handlers: errors of the application by `?`, texts of all types, progress with fractions.
use crate::common;

use std::borrow::Cow;

use common::*;
use mcp_sansio::json::{Decimal, Raw};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{NotifyStatus, Progress, RequestToken, RpcError};
use mcp_sansio::service::{
    Call, Complete, CustomRequest, GetPrompt, HandlerError, HandlerResult, Prompt, PromptArgument, ReadResource,
    Resource, ResourceTemplate, Service, TextValue, Tool,
};
use mcp_sansio_host::testing::{Conversation, Reply};

/// What goes wrong in the handlers.
#[derive(Default)]
struct State {
    token: Option<RequestToken>,
    seen: Vec<NotifyStatus>,
}

/// An error without a way into a handler's but its text.
fn parse_number(text: &str) -> Result<i32, std::num::ParseIntError> {
    text.parse()
}

const WORDS: &str = "invalid digit found in string";

fn by_ok(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let seven = call.ok(parse_number("7"))?;
    let wrong = call.ok(parse_number("x"))?;
    call.text(seven + wrong)
}

fn by_failed(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let wrong = parse_number("x").map_err(|error| call.failed(format_args!("x: {error}")))?;
    call.text(wrong)
}

fn by_words(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let none: Option<i32> = call.arguments().get("n").map(|_| 1);
    call.text(none.ok_or("there is no n")?)
}

/// Goes on after its answer: the first answer counts.
fn careless(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let wrong = call.ok(parse_number("x")).unwrap_or(3);
    let _: HandlerError = call.failed("again");
    call.text(wrong)
}

fn coded(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.fail_with(-31001, format_args!("upstream has {} \"jobs\"", 12))
}

fn later(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    state.token = Some(token);
    outcome
}

fn progress(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let steps = [
        Progress::new(0.25).of(1.0),
        Progress::new(0.25),
        Progress::new(0.1),
        Progress::new(f64::NAN),
        Progress::new(f64::INFINITY),
        Progress::new(-1.0),
        Progress::new(-1),
        Progress::new(0.5f32).of(f64::NAN),
        Progress::new(0.75).of(-1),
        Progress::new(1u8).of(2usize),
        Progress::new(1.0),
        Progress::new(1.5),
        Progress::new(2),
        Progress::new(1u64 << 53),
        Progress::new(u64::MAX).of(u64::MAX),
        Progress::new(1e300),
    ];
    state.seen.extend(steps.map(|step| call.progress(step)));
    call.text("done")
}

/// From a zero without sign on.
fn zeros(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.seen.extend([-0.0, 0.0, f64::MIN_POSITIVE].map(|done| call.progress(Progress::new(done))));
    call.text("done")
}

static TOOLS: [Tool<State>; 8] = [
    Tool::new("by_ok", "Fails by ok", by_ok),
    Tool::new("by_failed", "Fails by failed", by_failed),
    Tool::new("by_words", "Fails by a constant text", by_words),
    Tool::new("careless", "Goes on", careless),
    Tool::new("coded", "Fails with a code", coded),
    Tool::new("later", "Answers later", later),
    Tool::new("progress", "Says how far it is", progress),
    Tool::new("zeros", "Says that it is at the beginning", zeros),
];

fn read(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    let wrong = read.ok(parse_number(read.uri))?;
    read.text(wrong)
}

/// Answers, and then fails in each way there is.
fn read_and_fail(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("the answer")?;
    let _: HandlerError = read.failed("a failure behind it");
    let _ = read.fail(&RpcError::new(-31002, "a second one"));
    let _ = read.result(Raw::constant(r#"{"contents":[]}"#));
    read.fail_with(-31001, "and a third one")
}

fn get(_: &mut State, get: &mut GetPrompt<'_>) -> HandlerResult {
    let wrong = get.ok(parse_number("x"))?;
    get.user(wrong)
}

fn complete(_: &mut State, complete: &mut Complete<'_>) -> HandlerResult {
    let wrong = complete.ok(parse_number(complete.value))?;
    complete.offer([wrong.to_string()])
}

fn other(_: &mut State, other: &mut CustomRequest<'_>) -> HandlerResult {
    if other.params().is_some_and(|params| params.get("constant").is_some()) {
        return Err("there is no x".into());
    }
    other.ok(parse_number("x"))?;
    other.result(Raw::constant("{}"))
}

static RESOURCES: [Resource<State>; 2] =
    [Resource::new("test://x", "x", read), Resource::new("test://answered", "answered", read_and_fail)];
static TEMPLATES: [ResourceTemplate<State>; 1] = [ResourceTemplate::new("test://t/{x}", "t", read).complete(complete)];
static PROMPTS: [Prompt<State>; 1] =
    [Prompt::new("p", "A prompt", get).arguments(&[PromptArgument::optional("a")]).complete(complete)];

const SERVICE: Service<'static, State> = Service::new("errors", "1.0")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .templates(&TEMPLATES)
    .prompts(&PROMPTS)
    .other(other);

fn open<'s>(service: &'s Service<'static, State>, revision: Revision) -> Conversation<'s, State> {
    let mut conversation = Conversation::new(service, State::default());
    conversation.open(revision);
    conversation
}

#[track_caller]
fn assert_error(reply: &Reply, code: i32, message: &str) {
    let error = reply.error().expect("an error");
    assert_eq!((error.code, &*error.message), (code, message));
}

#[test]
fn the_error_of_a_tool_goes_to_the_model() {
    for revision in Revision::ALL {
        let mut conversation = open(&SERVICE, revision);
        for (tool, words) in [
            ("by_ok", WORDS),
            ("by_failed", "x: invalid digit found in string"),
            ("by_words", "there is no n"),
            ("careless", WORDS),
        ] {
            let reply = conversation.call(tool, &());
            assert!(reply.is_error(), "{tool}");
            assert_eq!(reply.text(), words);
        }
        assert_error(&conversation.call("coded", &()), -31001, "upstream has 12 \"jobs\"");
        assert_eq!(conversation.call("by_words", &json!({"n": 1})).text(), "1");
        assert!(conversation.finish().is_empty());
    }
}

#[test]
fn the_error_of_another_request_is_one_of_json_rpc() {
    for revision in Revision::ALL {
        let mut conversation = open(&SERVICE, revision);
        assert_error(&conversation.read("test://x"), -32603, WORDS);
        assert_error(&conversation.read("test://t/1"), -32603, WORDS);
        assert_error(&conversation.prompt("p", &()), -32603, WORDS);
        let asked = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "x"}});
        assert_error(&conversation.request("completion/complete", &asked), -32603, WORDS);
        assert_error(&conversation.request("demo/x", &json!({})), -32603, WORDS);
        assert_error(&conversation.request("demo/x", &json!({"constant": 1})), -32603, "there is no x");
    }
}

#[test]
fn nothing_is_written_behind_an_answer() {
    for revision in Revision::ALL {
        let mut conversation = open(&SERVICE, revision);
        let lines = conversation.say(&request(revision.date(), 9, "resources/read", json!({"uri": "test://answered"})));
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(parse(line)["result"]["contents"][0]["text"], "the answer", "{line}");
        assert!(conversation.finish().is_empty());
    }
}

#[test]
fn a_late_answer_fails_in_the_same_ways() {
    for revision in Revision::ALL {
        let mut conversation = open(&SERVICE, revision);
        let mut late = |answer: fn(&mut State, &mut Call<'_>) -> HandlerResult| {
            assert!(conversation.say(&call(revision.date(), 100, "later", json!({}))).is_empty());
            let token = conversation.state().token.take().unwrap();
            Reply::of(conversation.answer(token, answer).unwrap())
        };
        assert_eq!(late(by_ok).text(), WORDS);
        assert_eq!(late(by_failed).text(), "x: invalid digit found in string");
        assert_eq!(late(by_words).text(), "there is no n");
        assert_error(&late(coded), -31001, "upstream has 12 \"jobs\"");
        assert_error(&late(|_, call| call.fail(&RpcError::new(-1, &7.to_string()))), -1, "7");
    }
}

/// Answers with each type of text there is.
#[allow(clippy::needless_borrows_for_generic_args, reason = "borrowed texts are types too")]
fn any_text(at: &mut usize, call: &mut Call<'_>) -> HandlerResult {
    *at += 1;
    let owned = String::from("a \"text\"");
    match *at {
        1 => call.text(owned),
        2 => call.text(&owned),
        3 => call.text(owned.as_str()),
        4 => call.text(owned.into_boxed_str()),
        5 => call.text(Cow::Borrowed("borrowed")),
        6 => call.text(&Cow::from(owned)),
        7 => call.text(42),
        8 => call.text(u64::MAX),
        9 => call.text(i64::MIN),
        10 => call.text(u8::MAX),
        11 => call.text(usize::MAX),
        12 => call.text(-1isize),
        13 => call.text(1.5),
        14 => call.text(0.1f32),
        15 => call.text(2.0),
        16 => call.text(f64::NAN),
        17 => call.text(-f64::INFINITY),
        18 => call.text(true),
        19 => call.text('"'),
        20 => call.text('ä'),
        21 => call.text(Decimal::new(-215, 1)),
        22 => call.text(format_args!("{:?}", Some(1))),
        23 => call.text(&["a".into(), 1.into(), TextValue::from(0.5)]),
        _ => call.text(TextValue::from("last")),
    }
}

#[test]
fn a_text_has_many_types() {
    static TOOLS: [Tool<usize>; 1] = [Tool::new("text", "Answers with text", any_text)];
    let service = Service::new("texts", "1.0").tools(&TOOLS);
    let (least, most, size) = (i64::MIN.to_string(), u64::MAX.to_string(), usize::MAX.to_string());
    let quoted = "a \"text\"";
    let expected = [
        quoted, quoted, quoted, quoted, "borrowed", quoted, "42", &most, &least, "255", &size, "-1", "1.5", "0.1", "2",
        "NaN", "-inf", "true", "\"", "ä", "-21.5", "Some(1)", "a10.5", "last",
    ];
    for revision in Revision::ALL {
        let mut conversation = Conversation::new(&service, 0);
        conversation.open(revision);
        for text in expected {
            assert_eq!(conversation.call("text", &()).text(), text);
        }
    }
}

#[test]
fn progress_has_fractions_and_increases() {
    let wanted = [
        (0, "0.25,1.0"),
        (7, "0.5,"),
        (8, "0.75,"),
        (9, "1,2"),
        (11, "1.5,"),
        (12, "2,"),
        (13, "9007199254740992,"),
        (14, "18446744073709551615,18446744073709551615"),
        (15, "1e300,"),
    ];
    for revision in Revision::ALL {
        let mut conversation = open(&SERVICE, revision);
        let mut call_with_token = |tool: &str| {
            let mut line = parse(&call(revision.date(), 5, tool, json!({})));
            line["params"]["_meta"]["progressToken"] = json!("p");
            conversation.say(&line.to_string())
        };
        let lines = call_with_token("progress");
        let (answer, notifications) = lines.split_last().unwrap();
        assert_eq!(text(answer), "done");
        assert_eq!(notifications.len(), wanted.len(), "{notifications:?}");
        for (line, (_, expected)) in notifications.iter().zip(wanted) {
            let (done, total) = expected.split_once(',').unwrap();
            assert!(line.contains(&format!("\"progress\":{done}")), "{line}");
            assert_eq!(line.contains("total"), !total.is_empty(), "{line}");
            assert!(line.contains(&format!("\"total\":{total}")) || total.is_empty(), "{line}");
        }
        let lines = call_with_token("zeros");
        assert_eq!(lines.len(), 3, "{lines:?}");
        let sent: Vec<_> = conversation.state().seen.iter().map(|status| *status == NotifyStatus::Sent).collect();
        let expected: Vec<_> =
            (0..16).map(|at| wanted.iter().any(|(sent, _)| *sent == at)).chain([true, false, true]).collect();
        assert_eq!(sent, expected);
    }
}
