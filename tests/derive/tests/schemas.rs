//! Each schema against a validator of others: what it accepts is read, and what it refuses is refused.
//!
//! The values are made from the schema, with rules broken at random. Three differences are wanted, and are not made here:
//! `null` counts as a member that is left out, an `i64` has the limits of its type without saying so, and in a tagged
//! object the members of other variants are not read.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use mcp_sansio::json::{Raw, Text};
use mcp_sansio::service::Arguments;
use mcp_sansio::service::schema::{Argument, ArgumentReader};
use serde_json::{Map, Value, json};

#[derive(Arguments, Debug, PartialEq, Clone, Copy)]
#[arguments(rename_all = "kebab-case")]
enum Kind {
    Idea,
    ToDo,
    #[arguments(rename = "log \"book\"")]
    Journal,
}

#[derive(Arguments, Debug, PartialEq)]
#[arguments(deny_unknown)]
struct Due<'a> {
    /// As ISO 8601
    #[arguments(format = "date", pattern = "^[0-9]{4}-[0-9]{2}$", check = is_month)]
    month: &'a str,
    #[arguments(default = 7)]
    remind_days: u8,
}

fn is_month(text: &&str) -> bool {
    let bytes = text.as_bytes();
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    bytes.len() == 7 && digits(&bytes[..4]) && bytes[4] == b'-' && digits(&bytes[5..])
}

#[derive(Arguments, Debug, PartialEq)]
struct Point {
    x: i32,
    y: f64,
}

/// Every type and every attribute.
#[allow(dead_code, reason = "compared as text")]
#[derive(Arguments, Debug)]
#[arguments(rename_all = "camelCase")]
struct All<'a> {
    /// Says "everything" \ and
    /// more.
    ///
    /// In two paragraphs.
    signed_byte: i8,
    #[arguments(minimum = -5, maximum = 1_000)]
    short: Option<i16>,
    #[arguments(minimum = 0.5, maximum = 1e3, default = 1.5)]
    ratio: f64,
    single: Option<f32>,
    unsigned: u64,
    #[arguments(default = -3)]
    long: i64,
    #[arguments(default)]
    size: usize,
    #[arguments(default = true)]
    flag: bool,
    #[arguments(min_length = 1, max_length = 5)]
    name: &'a str,
    text: Option<Text<'a>>,
    #[arguments(default = "to-do")]
    kind: Kind,
    kinds: [Kind; 2],
    due: Option<Due<'a>>,
    #[arguments(min_items = 1, max_items = 3)]
    points: Vec<Point>,
    #[arguments(max_length = 4)]
    owned: Option<String>,
    fixed: Option<heapless::String<16>>,
    few: Option<heapless::Vec<u16, 2>>,
    nested: Option<Vec<[i32; 2]>>,
    r#type: Option<Raw<'a>>,
    #[arguments(header = "Region")]
    region: Option<&'a str>,
}

#[derive(Arguments, Debug, PartialEq)]
#[arguments(tag = "shape", rename_all = "lowercase")]
enum Shape<'a> {
    Circle {
        #[arguments(minimum = 0)]
        radius: f64,
    },
    Rectangle {
        width: u32,
        height: u32,
        label: Option<&'a str>,
    },
    Named {
        label: Option<&'a str>,
    },
    Nothing,
}

#[derive(Arguments, Debug, PartialEq)]
#[arguments(tag = "shape", rename_all = "lowercase", deny_unknown)]
enum ClosedShape {
    Circle {
        radius: f64,
    },
    Rectangle {
        width: u32,
        height: u32,
        #[arguments(max_length = 2)]
        label: Option<String>,
    },
}

/// Names that the macros use themselves.
mod names {
    use mcp_sansio::service::{Arguments, Output};

    pub(super) type Variant = u8;
    pub(super) type TypeSchema = bool;
    pub(super) type Property = String;
    pub(super) const TEXT: usize = 2;

    #[derive(Arguments, Output, Debug, PartialEq)]
    pub(super) struct Argument {
        pub(super) value: Variant,
        pub(super) schema: TypeSchema,
        pub(super) reader: Property,
        pub(super) values: [u8; TEXT],
        pub(super) object: Option<u8>,
        pub(super) out: Option<u8>,
    }
}

/// A type with another one's reader.
#[derive(Debug, PartialEq)]
struct Percent(u8);

impl<'a> Argument<'a> for Percent {
    const ARGUMENT: mcp_sansio::service::schema::TypeSchema = <u8 as Argument>::ARGUMENT.maximum(100);

    fn read(
        value: Raw<'a>,
        schema: &mcp_sansio::service::schema::TypeSchema,
        reader: &mut ArgumentReader<'a>,
    ) -> Option<Self> {
        u8::read(value, schema, reader).map(Percent)
    }
}

#[derive(Arguments, Debug, PartialEq)]
struct Drawing<'a> {
    shapes: Vec<Shape<'a>>,
    opacity: Percent,
}

#[derive(Arguments, Debug, PartialEq)]
struct Nothing {}

#[derive(Arguments, Debug, PartialEq)]
#[arguments(deny_unknown)]
struct Closed {}

/// Reads a value as the arguments of a tool.
fn read<'a, T: Arguments<'a>>(json: &'a str, scratch: &'a mut [u8]) -> Option<T> {
    T::read(Raw::parse(json.as_bytes()).unwrap(), &T::ARGUMENT, &mut ArgumentReader::new(scratch))
}

/// Returns whether a value is read.
macro_rules! reads {
    ($type:ty) => {
        |value: &Value| {
            let text = value.to_string();
            let mut scratch = vec![0; text.len()];
            read::<$type>(&text, &mut scratch).is_some()
        }
    };
}

struct Random {
    state: u64,
    /// One rule more may be broken.
    breaks: bool,
}

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % count as u64) as usize
    }

    /// Returns whether to break a rule here, once in `chances`; one rule of a value at the most.
    fn wrong(&mut self, chances: usize) -> bool {
        let wrong = self.breaks && self.below(chances) == 0;
        self.breaks &= !wrong;
        wrong
    }
}

/// Makes a value that fits the schema, or breaks one of its rules.
fn make(schema: &Value, random: &mut Random) -> Value {
    if random.wrong(25) {
        return anything(random);
    }
    if let Some(names) = schema["enum"].as_array() {
        return names[random.below(names.len())].clone();
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, random),
        Some("array") => {
            let count = count(&schema["minItems"], &schema["maxItems"], random);
            (0..count).map(|_| make(&schema["items"], random)).collect()
        }
        Some("integer") => {
            let edge = |limit: &Value, other: i64| limit.as_i64().unwrap_or(other);
            let (least, most) = (edge(&schema["minimum"], i64::MIN), edge(&schema["maximum"], i64::MAX));
            if random.wrong(10) {
                return [json!(least.saturating_sub(1)), json!(most.saturating_add(1)), json!(1.5)][random.below(3)]
                    .clone();
            }
            match random.below(4) {
                0 => json!(least),
                1 => json!(most),
                2 => json!((least / 2 + most / 2) as f64),
                _ => json!(least / 2 + most / 2),
            }
        }
        Some("number") => {
            let edge = |limit: &Value, other: f64| limit.as_f64().unwrap_or(other);
            let (least, most) = (edge(&schema["minimum"], -1e9), edge(&schema["maximum"], 1e9));
            if random.wrong(10) {
                return [json!(least - 0.25), json!(most + 0.25)][random.below(2)].clone();
            }
            [json!(least), json!(most), json!(1), json!((least + most) / 3.0)][random.below(4)].clone()
        }
        Some("string") if schema["pattern"].is_string() => {
            if random.wrong(5) {
                json!(["2026-7", "2026-07-01", "x", ""][random.below(4)])
            } else {
                json!("2026-07")
            }
        }
        Some("string") => {
            // A `heapless::String<16>` has room for 16 bytes.
            let letters = if schema["maxLength"] == 16 { ['a', 'b', '"', '\n'] } else { ['a', 'é', '\n', '😀'] };
            let count = count(&schema["minLength"], &schema["maxLength"], random);
            json!((0..count).map(|_| letters[random.below(letters.len())]).collect::<String>())
        }
        Some("boolean") => json!(random.below(2) == 0),
        _ => anything(random),
    }
}

/// A length within the limits, also at them, or one beyond.
fn count(least: &Value, most: &Value, random: &mut Random) -> usize {
    let least = least.as_u64().unwrap_or(0) as usize;
    let most = most.as_u64().map_or(least + 3, |most| most as usize);
    if random.wrong(5) {
        return if least > 0 && random.below(2) == 0 { least - 1 } else { most + 1 };
    }
    least + random.below(most - least + 1)
}

fn object(schema: &Value, random: &mut Random) -> Value {
    let mut object = Map::new();
    let properties = schema["properties"].as_object().unwrap();
    let tag = properties.get("shape").map(|tag| {
        let names = tag["enum"].as_array().unwrap();
        names[random.below(names.len())].as_str().unwrap().to_owned()
    });
    let has = |list: &Value, name: &str| list.as_array().is_some_and(|names| names.contains(&json!(name)));
    for (name, property) in properties {
        let is_required = match (tag.as_deref(), name.as_str()) {
            (Some(_), "shape") => true,
            (Some("circle"), "radius") | (Some("rectangle"), "width" | "height") => true,
            // A member of another variant.
            (Some(_), "radius" | "width" | "height") | (Some("circle" | "nothing"), _) => continue,
            _ => has(&schema["required"], name),
        };
        if if is_required { random.wrong(10) } else { random.below(2) == 0 } {
            continue;
        }
        let value = match &tag {
            Some(tag) if name == "shape" && !random.wrong(10) => json!(tag),
            Some(_) if name == "shape" => json!("sphere"),
            _ => make(property, random),
        };
        object.insert(name.clone(), value);
    }
    let is_closed = schema["additionalProperties"] == false;
    if if is_closed { random.wrong(3) } else { random.below(5) == 0 } {
        object.insert("unknown".into(), json!([{}]));
    }
    Value::Object(object)
}

fn anything(random: &mut Random) -> Value {
    [json!("x"), json!(7), json!(true), json!([]), json!({}), json!(-0.5), json!([1, [2]])][random.below(7)].clone()
}

/// Compares the verdicts on values made from the schema.
fn judge(schema: &str, rounds: usize, reads: impl Fn(&Value) -> bool) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
    assert!(schema["type"] == "object" && schema["properties"].is_object(), "{schema}");
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut random = Random { state: 0x5eed, breaks: false };
    let mut counts = [0, 0];
    for round in 0..rounds {
        random.breaks = round % 2 == 0;
        let is_whole = !random.breaks;
        let value = make(&schema, &mut random);
        let valid = validator.is_valid(&value);
        assert_eq!(reads(&value), valid, "validator: {valid}, {value}\n{schema}");
        assert!(valid || !is_whole, "no rule was broken, and it is not valid: {value}\n{schema}");
        counts[usize::from(valid)] += 1;
    }
    // Both verdicts were compared.
    assert!(counts[0] > rounds / 10, "{counts:?}\n{schema}");
}

#[test]
fn reader_and_validator_agree() {
    judge(All::SCHEMA, 20_000, reads!(All));
    judge(Shape::SCHEMA, 5_000, reads!(Shape));
    judge(Drawing::SCHEMA, 5_000, reads!(Drawing));
    judge(Point::SCHEMA, 5_000, reads!(Point));
    judge(Due::SCHEMA, 5_000, reads!(Due));

    judge(Closed::SCHEMA, 1_000, reads!(Closed));
    judge(ClosedShape::SCHEMA, 5_000, reads!(ClosedShape));
    judge(names::Argument::SCHEMA, 5_000, reads!(names::Argument));
}

#[test]
fn text_of_schemas() {
    assert_eq!(Nothing::SCHEMA, r#"{"type":"object","properties":{}}"#);
    assert_eq!(Closed::SCHEMA, r#"{"type":"object","properties":{},"additionalProperties":false}"#);
    assert_eq!(
        Shape::SCHEMA,
        concat!(
            r#"{"type":"object","properties":{"shape":{"type":"string","enum":["circle","rectangle","named","nothing"]},"#,
            r#""radius":{"type":"number","minimum":0},"width":{"type":"integer","minimum":0,"maximum":4294967295},"#,
            r#""height":{"type":"integer","minimum":0,"maximum":4294967295},"label":{"type":"string"}},"required":["shape"],"#,
            r#""if":{"properties":{"shape":{"const":"circle"}}},"then":{"type":"object","required":["radius"]},"#,
            r#""else":{"if":{"properties":{"shape":{"const":"rectangle"}}},"#,
            r#""then":{"type":"object","required":["width","height"]}}}"#,
        )
    );
    let all: Value = serde_json::from_str(All::SCHEMA).unwrap();
    let property = |name: &str| &all["properties"][name];
    assert_eq!(
        *property("signedByte"),
        json!({"type":"integer","description":"Says \"everything\" \\ and more.\nIn two paragraphs.","minimum":-128,"maximum":127})
    );
    assert_eq!(*property("short"), json!({"type":"integer","minimum":-5,"maximum":1000}));
    assert_eq!(*property("ratio"), json!({"type":"number","minimum":0.5,"maximum":1000.0,"default":1.5}));
    assert_eq!(*property("unsigned"), json!({"type":"integer","minimum":0}));
    assert_eq!(*property("long"), json!({"type":"integer","default":-3}));
    assert_eq!(*property("size"), json!({"type":"integer","minimum":0}));
    assert_eq!(*property("name"), json!({"type":"string","minLength":1,"maxLength":5}));
    assert_eq!(*property("kind"), json!({"type":"string","enum":["idea","to-do","log \"book\""],"default":"to-do"}));
    assert_eq!(
        property("due")["properties"]["month"],
        json!({"type":"string","description":"As ISO 8601","format":"date","pattern":"^[0-9]{4}-[0-9]{2}$"})
    );
    assert_eq!(property("due")["additionalProperties"], json!(false));
    assert_eq!(
        *property("few"),
        json!({"type":"array","maxItems":2,"items":{"type":"integer","minimum":0,"maximum":65535}})
    );
    assert_eq!(*property("type"), json!({}));
    assert_eq!(*property("region"), json!({"type":"string","x-mcp-header":"Region"}));
    assert_eq!(all["required"], json!(["signedByte", "unsigned", "name", "kinds", "points"]));
    assert!(mcp_sansio::json::constant::has_valid_headers(All::SCHEMA));
}

#[test]
fn values() {
    let mut scratch = [0; 64];
    let json = r#"{"signedByte":-1,"unsigned":18446744073709551615,"name":"\u0061b\n","kinds":["idea","log \"book\""],
        "points":[{"x":1,"y":2}],"due":{"month":"2026-07"},"short":null,"flag":null,"fixed":"\u00e9","nested":[[1,2],[3,4]],
        "type":{"a":[]},"text":"\n","unknown":1}"#;
    let all: All<'_> = read(json, &mut scratch).unwrap();
    // A `Raw` is not `PartialEq`.
    let expected = All {
        signed_byte: -1,
        short: None,
        ratio: 1.5,
        single: None,
        unsigned: u64::MAX,
        long: -3,
        size: 0,
        flag: true,
        name: "ab\n",
        text: all.text,
        kind: Kind::ToDo,
        kinds: [Kind::Idea, Kind::Journal],
        due: Some(Due { month: "2026-07", remind_days: 7 }),
        points: vec![Point { x: 1, y: 2.0 }],
        owned: None,
        fixed: Some(heapless::String::try_from("é").unwrap()),
        few: None,
        nested: Some(vec![[1, 2], [3, 4]]),
        r#type: all.r#type,
        region: None,
    };
    assert_eq!(format!("{all:?}"), format!("{expected:?}"));
    assert_eq!(all.text.unwrap().raw(), br"\n");
    assert_eq!(all.r#type.unwrap().as_str(), r#"{"a":[]}"#);
    let mut scratch = [0; 8];
    let shape = read::<Shape<'_>>(r#"{"width":1,"shape":"rectangle","height":2,"radius":"-"}"#, &mut scratch);
    assert_eq!(shape, Some(Shape::Rectangle { width: 1, height: 2, label: None }));
}

mod output {
    use super::{Kind, judge_one};
    use mcp_sansio::json::{Decimal, Raw};
    use mcp_sansio::service::schema::{Argument, ArgumentReader};
    use mcp_sansio::service::{Arguments, Output, OutputValue};
    use mcp_sansio::sink::{LineSink, SliceStorage};

    #[derive(Output, Arguments, Clone, Copy, Debug, PartialEq)]
    #[output(rename_all = "UPPERCASE")]
    #[arguments(rename_all = "UPPERCASE")]
    enum State {
        On,
        Off,
    }

    /// Every type.
    #[derive(Output)]
    #[output(rename_all = "kebab-case")]
    struct Report<'a, 'b> {
        /// Who it is
        user_name: &'a str,
        #[output(rename = "a \"b\"")]
        quoted: i8,
        numbers: [i64; 2],
        big: u64,
        ratio: f64,
        tenth: Decimal,
        flag: bool,
        state: Option<State>,
        none: Option<State>,
        list: &'b [Part],
        owned: Vec<String>,
        short: heapless::String<8>,
        few: heapless::Vec<u8, 4>,
        shape: Shape<'a>,
        raw: Raw<'a>,
        empty: Empty,
    }

    #[derive(Output, Arguments, Debug, PartialEq)]
    struct Part {
        id: u32,
        label: Option<String>,
    }

    #[derive(Output)]
    #[output(tag = "type")]
    enum Shape<'a> {
        Circle {
            radius: f32,
        },
        Named {
            name: &'a str,
            hint: Option<u8>,
        },
        /// Names that the macro uses itself.
        Writer {
            object: u8,
            out: bool,
            value: Option<i8>,
        },
        Nothing,
    }

    #[derive(Output)]
    struct Empty {}

    fn text(value: &impl OutputValue) -> String {
        let mut bytes = [0; 2048];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        value.write(&mut out).unwrap();
        String::from_utf8(out.pending().to_vec()).unwrap()
    }

    #[test]
    fn what_is_written_fits_the_schema() {
        for (shape, state) in [
            (Shape::Circle { radius: 0.5 }, None),
            (Shape::Named { name: "n\n", hint: None }, Some(State::On)),
            (Shape::Named { name: "", hint: Some(1) }, Some(State::Off)),
            (Shape::Writer { object: 1, out: true, value: Some(-1) }, None),
            (Shape::Nothing, None),
        ] {
            let report = Report {
                user_name: "\"Ä\"",
                quoted: i8::MIN,
                numbers: [i64::MIN, i64::MAX],
                big: u64::MAX,
                ratio: 1e300,
                tenth: Decimal::new(-5, 1),
                flag: false,
                state,
                none: None,
                list: &[Part { id: 1, label: None }, Part { id: 2, label: Some("x".into()) }],
                owned: vec!["a".into()],
                short: heapless::String::try_from("12345678").unwrap(),
                few: heapless::Vec::new(),
                shape,
                raw: Raw::constant("{\"a\":\n[]}"),
                empty: Empty {},
            };
            judge_one(Report::OUTPUT_SCHEMA, &text(&report));
        }
        assert_eq!(text(&Shape::Named { name: "n\n", hint: Some(3) }), r#"{"type":"Named","name":"n\n","hint":3}"#);
        assert_eq!(text(&Shape::Nothing), r#"{"type":"Nothing"}"#);
        assert_eq!(text(&Empty {}), "{}");
        assert_eq!(text(&f64::NAN), "null");
    }

    /// A type with both derives reads what it writes.
    #[test]
    fn back_and_forth() {
        assert_eq!(Part::OUTPUT_SCHEMA, Part::SCHEMA);
        let part = Part { id: 7, label: Some("a\"\n".into()) };
        let json = text(&part);
        let read = Part::read(Raw::parse(json.as_bytes()).unwrap(), &Part::ARGUMENT, &mut ArgumentReader::new(&mut []));
        assert_eq!(read, Some(part));
        let json = text(&State::Off);
        let read =
            State::read(Raw::parse(json.as_bytes()).unwrap(), &State::ARGUMENT, &mut ArgumentReader::new(&mut []));
        assert_eq!((json.as_str(), read), ("\"OFF\"", Some(State::Off)));
        let _ = Kind::Idea;
    }
}

/// Panics unless the schema is valid and accepts the value.
fn judge_one(schema: &str, value: &str) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
    let value: Value = serde_json::from_str(value).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    if let Err(error) = validator.validate(&value) {
        panic!("{error}: {value}\n{schema}");
    }
}

/// The checks of tables take each schema.
#[test]
fn tables_take_the_schemas() {
    use mcp_sansio::service::{Call, HandlerResult, Tool};
    fn run(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
        call.text("")
    }
    const TOOLS: [Tool<()>; 4] = [
        Tool::new("all", "Takes all", run).input(All::SCHEMA),
        Tool::new("shape", "Takes a shape", run).input(Shape::SCHEMA),
        Tool::new("drawing", "Takes a drawing", run).input(Drawing::SCHEMA),
        Tool::new("closed", "Takes nothing", run).input(Closed::SCHEMA),
    ];
    let _ = TOOLS;
}
