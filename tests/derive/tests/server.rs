//! A server made of types and functions, asked by a client.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use mcp_sansio::json::Text;
use mcp_sansio::revision::Revision;
use mcp_sansio::service::{Arguments, Call, HandlerResult, Service, Tool, tool};
use mcp_sansio_host::testing::Conversation;

#[derive(Arguments)]
struct Add {
    /// The first summand
    a: i64,
    b: i64,
}

/// Adds two integers
#[tool]
fn add(_: &mut (), call: &mut Call<'_>, Add { a, b }: Add) -> HandlerResult {
    call.text(a.saturating_add(b))
}

#[derive(Arguments)]
struct Echo<'a> {
    text: Text<'a>,
    decoded: Option<&'a str>,
}

/// Gives a text back
#[tool(title = "Echo", read_only, open_world = false)]
fn echo(_: &mut (), call: &mut Call<'_>, echo: Echo<'_>) -> HandlerResult {
    match echo.decoded {
        Some(decoded) => call.text(decoded),
        None => call.text(echo.text),
    }
}

static TOOLS: [Tool<()>; 2] = [ADD, ECHO];

#[test]
fn end_to_end() {
    assert_eq!(
        Add::SCHEMA,
        r#"{"type":"object","properties":{"a":{"type":"integer","description":"The first summand"},"b":{"type":"integer"}},"required":["a","b"]}"#
    );
    let service = Service::new("calc", "1.0").tools(&TOOLS);
    let mut conversation = Conversation::new(&service, ());
    conversation.open(Revision::V2025_11_25);
    let list = conversation.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(list[0].contains(r#""description":"Adds two integers""#), "{list:?}");
    assert!(list[0].contains(Add::SCHEMA) && list[0].contains(Echo::SCHEMA), "{list:?}");
    assert!(list[0].contains(r#""annotations":{"readOnlyHint":true,"openWorldHint":false}"#), "{list:?}");
    let mut call = |name: &str, arguments: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        );
        conversation.say(&line).remove(0)
    };
    let text = |text: &str, is_error: bool| {
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":{is_error}}}}}"#
        )
    };
    assert_eq!(call("add", r#"{"a":1,"b":2.0,"c":[]}"#).trim_end(), text("3", false));
    assert_eq!(call("add", r#"{"a":1}"#).trim_end(), text("Invalid arguments: missing member `b`", true));
    assert_eq!(call("add", r#"{"a":"1","b":2}"#).trim_end(), text("Invalid arguments: `a`: expected an integer", true));
    assert_eq!(call("echo", r#"{"text":"a\nb"}"#).trim_end(), text(r"a\nb", false));
    assert_eq!(call("echo", r#"{"text":"","decoded":"\u0041\n"}"#).trim_end(), text(r"A\n", false));
}

#[derive(Arguments)]
#[arguments(rename_all = "lowercase")]
enum Kind {
    Idea,
    Todo,
}

#[derive(Arguments)]
struct Entry {
    kind: Kind,
    #[arguments(maximum = 10)]
    weight: Option<u64>,
}

#[derive(Arguments)]
#[arguments(deny_unknown)]
struct Due<'a> {
    remind_days: u8,
    #[arguments(min_length = 2, max_length = 3)]
    zone: Option<&'a str>,
    #[arguments(pattern = "^[a-z]+$", check = is_small)]
    word: Option<Text<'a>>,
    #[arguments(minimum = 0.5)]
    ratio: Option<f64>,
    pair: Option<[bool; 2]>,
}

fn is_small(text: &Text<'_>) -> bool {
    text.chars().all(|c| c.is_ok_and(|c| c.is_ascii_lowercase()))
}

#[derive(Arguments)]
struct Note<'a> {
    list: Option<Vec<Entry>>,
    due: Option<Due<'a>>,
    deep: Option<Deep>,
}

#[allow(clippy::type_complexity, reason = "a path that is longer than what errors show")]
#[derive(Arguments)]
struct Deep {
    a: [[[[[[[[u8; 1]; 1]; 1]; 1]; 1]; 1]; 1]; 1],
}

/// Takes a note
#[tool(name = "take-note", idempotent)]
fn note(_: &mut (), call: &mut Call<'_>, note: Note<'_>) -> HandlerResult {
    let entries = note.list.iter().flatten();
    let weight: u64 = entries.map(|entry| entry.weight.unwrap_or(matches!(entry.kind, Kind::Todo).into())).sum();
    let days = note.due.map_or(0, |due| {
        let _ = (due.zone, due.word, due.ratio, due.pair);
        due.remind_days
    });
    call.text(format_args!("{weight} {days} {:?}", note.deep.map(|deep| deep.a)))
}

/// Has no arguments
#[tool]
fn nothing(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.text("nothing")
}

/// Each error has the path, and what was expected.
#[test]
fn errors_teach() {
    static TOOLS: [Tool<()>; 2] = [NOTE, NOTHING];
    let service = Service::new("notes", "1.0").tools(&TOOLS);
    let mut conversation = Conversation::new(&service, ());
    conversation.open(Revision::V2025_11_25);
    let mut call = |arguments: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"take-note","arguments":{arguments}}}}}"#
        );
        let reply: serde_json::Value = serde_json::from_str(&conversation.say(&line).remove(0)).unwrap();
        let text = reply["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let is_error = reply["result"]["isError"].as_bool().unwrap();
        assert_eq!(is_error, text.starts_with("Invalid arguments: "), "{text}");
        text.trim_start_matches("Invalid arguments: ").to_owned()
    };
    assert_eq!(call(r#"{"list":[{"kind":"idea","weight":3},{"kind":"todo"}],"due":{"remind_days":2}}"#), "4 2 None");
    let cases = [
        (
            r#"{"list":[{"kind":"idea"},{"kind":"todoo"}]}"#,
            "`list[1].kind`: unknown variant `todoo`, expected one of `idea`, `todo`",
        ),
        (r#"{"list":[{"kind":7}]}"#, "`list[0].kind`: expected text"),
        (r#"{"list":[{}]}"#, "`list[0]`: missing member `kind`"),
        (r#"{"list":[{"kind":"idea","weight":11}]}"#, "`list[0].weight`: expected an integer from 0 to 10"),
        (r#"{"list":{}}"#, "`list`: expected an array"),
        (r#"{"due":{"remind_days":-1}}"#, "`due.remind_days`: expected an integer from 0 to 255"),
        (r#"{"due":{"remind_days":1.5}}"#, "`due.remind_days`: expected an integer from 0 to 255"),
        (r#"{"due":{"remind_days":null}}"#, "`due.remind_days`: expected an integer"),
        (
            r#"{"due":{"remind_days":1,"zzz":1}}"#,
            "`due`: unknown member `zzz`, expected one of `remind_days`, `zone`, `word`, `ratio`, `pair`",
        ),
        (r#"{"due":{"remind_days":1,"remind_days":2}}"#, "`due`: member `remind_days` is there twice"),
        (r#"{"due":{"remind_days":1,"zone":"abcd"}}"#, "`due.zone`: expected text of 2 to 3 characters"),
        (r#"{"due":{"remind_days":1,"word":"A"}}"#, "`due.word`: expected text that matches `^[a-z]+$`"),
        (r#"{"due":{"remind_days":1,"ratio":0.25}}"#, "`due.ratio`: expected a number of at least 0.5"),
        (r#"{"due":{"remind_days":1,"ratio":"1"}}"#, "`due.ratio`: expected a number"),
        (r#"{"due":{"remind_days":1,"pair":[true]}}"#, "`due.pair`: expected an array of 2 elements"),
        (r#"{"due":{"remind_days":1,"pair":[true,0]}}"#, "`due.pair[1]`: expected true or false"),
        (r#"{"due":[]}"#, "`due`: expected an object"),
        (r#"{"deep":{"a":[[[[[[[["x"]]]]]]]]}}"#, "`…[0][0][0][0][0][0][0][0]`: expected an integer"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(call(arguments), expected, "{arguments}");
    }
    // A name that fills the message is not sent back.
    for (length, is_shown) in [(64, true), (65, false), (200, false)] {
        let name = "x".repeat(length);
        let shown = if is_shown { format!(" `{name}`") } else { String::new() };
        let expected = format!("`list[0].kind`: unknown variant{shown}, expected one of `idea`, `todo`");
        assert_eq!(call(&format!(r#"{{"list":[{{"kind":"{name}"}}]}}"#)), expected);
    }
}

/// What has no room in the output is a short error, and the server goes on.
#[test]
fn other_requests_have_an_error() {
    use mcp_sansio::service::{GetPrompt, Prompt};
    fn get(_: &mut (), get: &mut GetPrompt<'_>) -> HandlerResult {
        let Add { a, b } = get.read_args()?;
        get.user(format_args!("{a} {b}"))
    }
    static PROMPTS: [Prompt<()>; 1] = [Prompt::new("sum", "Asks for a sum", get)];
    let service = Service::new("calc", "1.0").prompts(&PROMPTS);
    let mut conversation = Conversation::new(&service, ());
    conversation.open(Revision::V2025_11_25);
    let reply = conversation
        .say(r#"{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"sum","arguments":{"a":"1"}}}"#);
    assert!(reply[0].contains(r#""error":{"code":-32602,"message":"Invalid params: wrong arguments""#), "{reply:?}");
}

/// Takes its members one by one
#[tool]
fn inline(
    _: &mut (),
    call: &mut Call<'_>,
    /// How often
    #[arguments(maximum = 3, default = 2)]
    times: u8,
    r#type: Option<&str>,
    mut words: Vec<Text<'_>>,
) -> HandlerResult {
    words.truncate(times.into());
    call.text(format_args!("{times} {type:?} {}", words.len()))
}

/// Takes one
#[tool]
fn single(_: &mut (), call: &mut Call<'_>, #[arguments] a: i64) -> HandlerResult {
    call.text(a)
}

/// Takes members with names that the macro could use itself
#[tool]
fn names(_: &mut (), answer: &mut Call<'_>, call: i64, state: i64, arguments: i64) -> HandlerResult {
    answer.text(call + 10 * state + 100 * arguments)
}

#[test]
fn members_as_parameters() {
    static TOOLS: [Tool<()>; 3] = [INLINE, SINGLE, NAMES];
    let service = Service::new("inline", "1.0").tools(&TOOLS);
    let mut conversation = Conversation::new(&service, ());
    conversation.open(Revision::V2025_11_25);
    let list = conversation.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let schema = concat!(
        r#"{"type":"object","properties":{"times":{"type":"integer","description":"How often","minimum":0,"maximum":3,"default":2},"#,
        r#""type":{"type":"string"},"words":{"type":"array","items":{"type":"string"}}},"required":["words"]}"#,
    );
    assert!(list[0].contains(schema), "{list:?}");
    let reply = conversation.say(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"inline","arguments":{"words":["a","b","c"],"type":"x"}}}"#,
    );
    assert!(reply[0].contains(r#""text":"2 Some(\"x\") 2""#), "{reply:?}");
    let reply = conversation
        .say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"single","arguments":{"a":7}}}"#);
    assert!(reply[0].contains(r#""text":"7""#), "{reply:?}");
    let reply = conversation.say(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"names","arguments":{"call":1,"state":2,"arguments":3}}}"#,
    );
    assert!(reply[0].contains(r#""text":"321""#), "{reply:?}");
}

mod output {
    use super::{Conversation, Revision, Service};
    use mcp_sansio::service::{Arguments, Call, HandlerResult, Output, Tool, tool};

    #[derive(Arguments)]
    struct Divide {
        a: i32,
        #[arguments(minimum = 1)]
        b: i32,
    }

    #[derive(Output)]
    struct Quotient<'a> {
        quotient: i32,
        remainder: i32,
        word: Option<&'a str>,
    }

    /// Divides integers
    #[tool(output = Quotient<'_>)]
    fn divide(_: &mut (), call: &mut Call<'_>, Divide { a, b }: Divide) -> HandlerResult {
        call.output(&Quotient { quotient: a / b, remainder: a % b, word: (a < 0).then_some("less \"zero\"") })
    }

    #[test]
    fn structured_content() {
        static TOOLS: [Tool<()>; 1] = [DIVIDE];
        let service = Service::new("calc", "1.0").tools(&TOOLS);
        let call =
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"divide","arguments":{"a":-7,"b":2}}}"#;
        let mut conversation = Conversation::new(&service, ());
        conversation.open(Revision::V2025_11_25);
        let list = conversation.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert!(list[0].contains(&format!(r#""outputSchema":{}"#, Quotient::OUTPUT_SCHEMA)), "{list:?}");
        let reply: serde_json::Value = serde_json::from_str(&conversation.say(call)[0]).unwrap();
        let content = r#"{"quotient":-3,"remainder":-1,"word":"less \"zero\""}"#;
        assert_eq!(reply["result"]["structuredContent"].to_string(), content);
        assert_eq!(reply["result"]["content"][0]["text"], content);
        // Before 2025-06-18 there is only the text.
        let mut conversation = Conversation::new(&service, ());
        conversation.open(Revision::V2025_03_26);
        let reply: serde_json::Value = serde_json::from_str(&conversation.say(call)[0]).unwrap();
        assert_eq!(
            (&reply["result"]["structuredContent"], &reply["result"]["content"][0]["text"]),
            (&serde_json::Value::Null, &content.into())
        );
    }
}

mod form {
    use super::{Conversation, Revision, Service};
    use mcp_sansio::json::Text;
    use mcp_sansio::service::{Arguments, Call, Form, HandlerResult, Tool, tool};

    #[derive(Arguments, Clone, Copy, Debug)]
    #[arguments(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Form)]
    struct Order<'a> {
        /// What to write on it
        #[form(title = "Text", max_length = 5)]
        text: Text<'a>,
        #[form(default = "large")]
        size: Size,
        count: Option<u8>,
        extras: Option<Vec<Size>>,
    }

    /// Orders a shirt
    #[tool]
    fn order(_: &mut (), call: &mut Call<'_>, #[arguments] name: &str) -> HandlerResult {
        let Some(order) = call.form::<Order<'_>>("order", "Which shirt?")? else { return call.text("nothing") };
        let extras = order.extras.map_or(0, |extras| extras.len());
        call.text(format_args!("{name} {} {:?} {:?} {extras}", order.text, order.size, order.count))
    }

    #[test]
    fn a_form_is_asked_and_its_answer_read() {
        static TOOLS: [Tool<()>; 1] = [ORDER];
        let schema = concat!(
            r#"{"type":"object","properties":{"text":{"type":"string","title":"Text","description":"What to write on it","maxLength":5},"#,
            r#""size":{"type":"string","enum":["small","large"],"default":"large"},"count":{"type":"integer","minimum":0,"maximum":255},"#,
            r#""extras":{"type":"array","items":{"type":"string","enum":["small","large"]}}},"required":["text"]}"#,
        );
        assert_eq!(Order::FORM.as_str(), schema);
        let service = Service::new("shop", "1.0").tools(&TOOLS);
        let answered = |response: &str| {
            let mut conversation = Conversation::new(&service, ());
            let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order","arguments":{"name":"\u0041da"},RESPONSES"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}"#;
            if response.is_empty() {
                return conversation.say(&call.replace("RESPONSES", "")).remove(0);
            }
            let responses = format!(r#""inputResponses":{{"order":{response}}},"#);
            conversation.say(&call.replace("RESPONSES", &responses)).remove(0)
        };
        let question = answered("");
        assert!(question.contains(r#""resultType":"input_required""#) && question.contains(schema), "{question}");
        let accepted = |content: &str| answered(&format!(r#"{{"action":"accept","content":{content}}}"#));
        assert!(accepted(r#"{"text":"a\nb","count":2,"extras":["small"]}"#).contains(r"Ada a\nb Large Some(2) 1"));
        assert!(
            accepted(r#"{"text":"abcdef"}"#)
                .contains("Invalid answer of the client: `text`: expected text of at most 5")
        );
        assert!(
            accepted(r#"{"text":"a","size":"x"}"#).contains("unknown variant `x`, expected one of `small`, `large`")
        );
        assert!(answered(r#"{"action":"accept"}"#).contains("missing member `text`"));
        assert!(answered(r#"{"action":"decline"}"#).contains("nothing"));
        // Before 2026-07-28 the question is a request of the server.
        let mut conversation = Conversation::new(&service, ());
        conversation.open(Revision::V2025_11_25);
        let call =
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"order","arguments":{"name":"Bob"}}}"#;
        let question = conversation.say(call).remove(0);
        assert!(question.contains("elicitation/create") && question.contains(schema), "{question}");
        let reply = conversation
            .say(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"text":"x","size":"small"}}}"#);
        assert!(reply[0].contains("Bob x Small None 0"), "{reply:?}");
        // A client that cannot be asked.
        let mut conversation = Conversation::new(&service, ());
        conversation.open(Revision::V2025_03_26);
        let reply = conversation.say(call);
        assert!(reply[0].contains(r#""isError":true"#) && !reply[0].contains("Invalid"), "{reply:?}");
    }
}

mod others {
    use super::{Conversation, Revision, Service};
    use mcp_sansio::json::Text;
    use mcp_sansio::service::{
        Arguments, Complete, GetPrompt, HandlerResult, Prompt, ReadResource, Resource, ResourceTemplate, prompt,
        resource,
    };

    #[derive(Arguments, Debug)]
    enum Depth {
        Quick,
        Deep,
    }

    /// Reviews code
    #[prompt(title = "Review", complete = complete)]
    fn review(
        _: &mut (),
        get: &mut GetPrompt<'_>,
        /// The programming language
        language: Text<'_>,
        depth: Option<Depth>,
    ) -> HandlerResult {
        get.user(format_args!("{language} {depth:?}"))
    }

    fn complete(_: &mut (), complete: &mut Complete<'_>) -> HandlerResult {
        complete.matching(["Quick", "Deep"])
    }

    /// The weather of a day
    #[resource("weather://{read}/{day}", mime = "text/plain", complete = complete)]
    fn weather(_: &mut (), context: &mut ReadResource<'_>, day: u8, read: &str) -> HandlerResult {
        context.text(format_args!("{read} {day}"))
    }

    #[resource("weather://now", name = "today")]
    fn now(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
        read.text("sunny")
    }

    #[test]
    fn prompts_and_resources() {
        static PROMPTS: [Prompt<()>; 1] = [REVIEW];
        static TEMPLATES: [ResourceTemplate<()>; 1] = [WEATHER];
        static RESOURCES: [Resource<()>; 1] = [NOW];
        let service = Service::new("x", "1.0").prompts(&PROMPTS).templates(&TEMPLATES).resources(&RESOURCES);
        let mut conversation = Conversation::new(&service, ());
        conversation.open(Revision::V2025_11_25);
        let mut ask = |method: &str, params: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            conversation.say(&line).remove(0)
        };
        let has = |reply: String, text: &str| assert!(reply.contains(text), "{reply}\n{text}");
        has(
            ask("prompts/list", "{}"),
            r#"{"name":"review","title":"Review","description":"Reviews code","arguments":[{"name":"language","description":"The programming language","required":true},{"name":"depth","required":false}]}"#,
        );
        has(
            ask("prompts/get", r#"{"name":"review","arguments":{"language":"Rust","depth":"Deep"}}"#),
            "Rust Some(Deep)",
        );
        has(ask("prompts/get", r#"{"name":"review","arguments":{"language":"Rust","depth":"x"}}"#), "-32602");
        has(ask("prompts/get", r#"{"name":"review","arguments":{}}"#), "-32602");
        has(
            ask("resources/templates/list", "{}"),
            r#"{"uriTemplate":"weather://{read}/{day}","name":"weather","description":"The weather of a day","mimeType":"text/plain"}"#,
        );
        has(ask("resources/list", "{}"), r#"{"uri":"weather://now","name":"today"}"#);
        has(ask("resources/read", r#"{"uri":"weather://Oslo/7"}"#), "Oslo 7");
        has(ask("resources/read", r#"{"uri":"weather://Oslo/300"}"#), "-32002");
        has(ask("resources/read", r#"{"uri":"weather://now"}"#), "sunny");
        has(
            ask(
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"depth","value":"D"}}"#,
            ),
            r#"["Deep"]"#,
        );
    }
}
