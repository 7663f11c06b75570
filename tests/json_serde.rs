//! The serde reader and writer against serde_json, and their intended differences.
#![cfg(feature = "serde")]

use mcp_sansio::FullError;
use mcp_sansio::json::{Decimal, DeserializeError, Raw, SerializeError, Text, to_escaped, to_sink};
use mcp_sansio::sink::Sink;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A sink that grows up to a limit.
struct Buffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl Sink for Buffer {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if bytes.len() > self.room() {
            return Err(FullError::Now);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        self.limit - self.bytes.len()
    }
}

fn written<T: Serialize + ?Sized>(value: &T) -> Result<String, SerializeError> {
    let mut out = Buffer { bytes: Vec::new(), limit: 1 << 20 };
    // Through a trait object, as the engine does it.
    let dynamic: &mut dyn Sink = &mut out;
    to_sink(dynamic, value)?;
    Ok(String::from_utf8(out.bytes).unwrap())
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, DeserializeError> {
    let mut scratch = vec![0; json.len()];
    // An owned value does not keep the scratch space.
    let raw = Raw::parse(json.as_bytes()).expect(json);
    let value: Owned<T> = raw.to(&mut scratch)?;
    Ok(value.0)
}

#[derive(Deserialize)]
#[serde(transparent, bound = "T: DeserializeOwned")]
struct Owned<T>(T);

/// The bytes equal those of serde_json, and both read the same value again.
fn round<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
    let ours = written(&value).unwrap();
    assert_eq!(ours, serde_json::to_string(&value).unwrap());
    assert_eq!(read::<T>(&ours).as_ref(), Ok(&value), "{ours}");
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(read::<T>(&pretty).as_ref(), Ok(&value), "{pretty}");
    let tree: serde_json::Value = serde_json::from_str(&ours).unwrap();
    assert_eq!(read(&ours), Ok(tree.clone()));
    assert_eq!(written(&tree).unwrap(), tree.to_string());
    // As text inside a string.
    let mut inside = Buffer { bytes: b"\"".to_vec(), limit: 1 << 20 };
    to_escaped(&mut inside, &value).unwrap();
    inside.put(b"\"").unwrap();
    assert_eq!(serde_json::from_slice::<String>(&inside.bytes).unwrap(), ours);
}

/// Numbers without a known type are what serde_json takes them for.
#[test]
fn numbers_of_no_known_type() {
    for text in [
        "0",
        "-0",
        "5",
        "-5",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "1e2",
        "-1.5",
    ] {
        assert_eq!(
            read::<serde_json::Value>(text).unwrap(),
            serde_json::from_str::<serde_json::Value>(text).unwrap(),
            "{text}"
        );
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Everything {
    small: i8,
    byte: u8,
    large: u64,
    low: i64,
    yes: bool,
    letter: char,
    text: String,
    none: Option<u32>,
    some: Option<String>,
    list: Vec<Option<i32>>,
    fixed: [u16; 3],
    pair: (i32, String),
    map: BTreeMap<String, Vec<bool>>,
    numbers: BTreeMap<i32, String>,
    #[serde(rename = "nested-ünit")]
    unit: (),
    marker: Marker,
    wrapped: Wrapped,
    shapes: Vec<Shape>,
    boxed: Option<Box<Everything>>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Marker;

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Wrapped(i64);

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug, Clone)]
enum Shape {
    Unit,
    New(i32),
    Empty(),
    Tuple(i32, String),
    Struct { a: i32, b: Option<String> },
}

fn everything() -> Everything {
    Everything {
        small: i8::MIN,
        byte: 255,
        large: u64::MAX,
        low: i64::MIN,
        yes: true,
        letter: 'é',
        text: "quotes \" and \\ and \n, \u{1} and 😀".into(),
        none: None,
        some: Some(String::new()),
        list: vec![Some(1), None, Some(-3)],
        fixed: [1, 2, 3],
        pair: (-1, "two".into()),
        map: BTreeMap::from([("a\n".into(), vec![true, false]), ("b".into(), vec![])]),
        numbers: BTreeMap::from([(-5, "minus".into()), (5, "plus".into())]),
        unit: (),
        marker: Marker,
        wrapped: Wrapped(7),
        shapes: vec![
            Shape::Unit,
            Shape::New(1),
            Shape::Empty(),
            Shape::Tuple(2, "t".into()),
            Shape::Struct { a: 3, b: None },
            Shape::Struct { a: 4, b: Some("\t".into()) },
        ],
        boxed: None,
    }
}

#[test]
fn round_trips() {
    let mut value = everything();
    value.boxed = Some(Box::new(everything()));
    round(value);
    round(BTreeMap::from([(Shape::Unit, 1)]));
    round(BTreeMap::from([('x', Some(Wrapped(1)))]));
    round(Vec::<()>::new());
    round(String::from("\u{7f}\u{2028}"));
    round(Some(Shape::Unit));
    round(serde_json::json!({"a": [1, -2, "x", null, true, {"b": {}}, []], "": u64::MAX}));
}

#[test]
fn floats() {
    for value in [0.0, -0.0, 1.0, 0.1, -21.5, 1e300, 1e-7, 1.5e16, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0 / 3.0] {
        let json = written(&value).unwrap();
        // Valid JSON, and exact.
        assert_eq!(serde_json::from_str::<f64>(&json).unwrap(), value, "{json}");
        #[cfg(feature = "alloc")]
        assert_eq!(read::<f64>(&json).map(f64::to_bits), Ok(value.to_bits()), "{json}");
        #[cfg(not(feature = "alloc"))]
        if value != f64::MAX {
            assert!((read::<f64>(&json).unwrap() - value).abs() <= value.abs() * 1e-15, "{json}");
        }
        assert!(json.len() < 30, "{json}");
    }
    assert_eq!(written(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).unwrap(), "[null,null,null]");
    assert_eq!(written(&f32::NAN).unwrap(), "null");
    assert_eq!(written(&0.1f32).unwrap(), "0.1");
    assert_eq!(read::<f32>("0.1"), Ok(0.1));
    assert_eq!(read::<f32>("3"), Ok(3.0));
    assert_eq!(read::<f64>("-3"), Ok(-3.0));
    assert_eq!(read::<f32>("1e39"), Err(DeserializeError::Range));
    assert_eq!(read::<f64>("1e400"), Err(DeserializeError::Range));
    assert_eq!(read::<f64>("\"1\""), Err(DeserializeError::Type));
    assert_eq!(read::<f64>("null"), Err(DeserializeError::Type));
}

/// Some clients have only floating point numbers, and write `2.0` for 2.
#[test]
fn integers() {
    assert_eq!(read::<u8>("2.0"), Ok(2));
    assert_eq!(read::<i64>("-1e3"), Ok(-1000));
    assert_eq!(read::<u64>("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(read::<i8>("-0"), Ok(0));
    assert_eq!(read::<u8>("-0.0"), Ok(0));
    assert_eq!(read::<i64>("2.5"), Err(DeserializeError::Type));
    assert_eq!(read::<i64>("1e-1"), Err(DeserializeError::Type));
    assert_eq!(read::<u8>("256"), Err(DeserializeError::Range));
    assert_eq!(read::<u8>("-1"), Err(DeserializeError::Range));
    assert_eq!(read::<u64>("18446744073709551616"), Err(DeserializeError::Range));
    assert_eq!(read::<i64>("-9223372036854775809"), Err(DeserializeError::Range));
    assert_eq!(read::<i64>("1e99"), Err(DeserializeError::Range));
    assert_eq!(read::<i64>("true"), Err(DeserializeError::Type));
    for (json, same) in
        [("-0", "-0.0"), ("18446744073709551616", "18446744073709552000.0"), ("1.0", "1.0"), ("-1", "-1")]
    {
        assert_eq!(read::<serde_json::Value>(json).unwrap(), serde_json::from_str::<serde_json::Value>(json).unwrap());
        assert_eq!(read::<serde_json::Value>(json).unwrap(), serde_json::from_str::<serde_json::Value>(same).unwrap());
    }
}

#[derive(Deserialize, PartialEq, Debug)]
struct Borrowed<'a> {
    a: &'a str,
    #[serde(borrow)]
    b: Option<&'a str>,
}

fn borrowed<'a>(json: &'a str, scratch: &'a mut [u8]) -> Result<Borrowed<'a>, DeserializeError> {
    Raw::parse(json.as_bytes()).unwrap().to(scratch)
}

#[test]
fn text_is_borrowed() {
    let json = r#"{"a":"plain é","b":"plain too"}"#;
    assert_eq!(borrowed(json, &mut []), Ok(Borrowed { a: "plain é", b: Some("plain too") }));
    // Both texts are in the scratch space, which is filled to the last byte.
    let json = r#"{"\u0061":"a\nb","x":"\n\n\n\n\n\n","b":"\ud83d\ude00"}"#;
    assert_eq!(borrowed(json, &mut [0; 7]), Ok(Borrowed { a: "a\nb", b: Some("😀") }));
    assert_eq!(borrowed(json, &mut [0; 6]), Err(DeserializeError::MemberRange("b")));
    assert_eq!(borrowed(json, &mut [0; 2]), Err(DeserializeError::MemberRange("a")));
    assert_eq!(borrowed(r#"{"a":"\ud800"}"#, &mut [0; 8]), Err(DeserializeError::MemberValue("a")));
}

/// Owned text only passes through the scratch space; with an allocator it may be longer than that.
#[test]
fn text_is_owned() {
    let raw = Raw::parse(br#"["\n\n\n","\t\t\t"]"#).unwrap();
    let owned = |room: usize| raw.to::<Vec<String>>(vec![0; room].leak());
    let expected = vec!["\n\n\n".to_string(), "\t\t\t".to_string()];
    assert_eq!(owned(3), Ok(expected.clone()));
    let tight = owned(2);
    assert_eq!(tight, if cfg!(feature = "alloc") { Ok(expected) } else { Err(DeserializeError::Room) });
    let surrogate = Raw::parse(br#""\ud800""#).unwrap().to::<String>(&mut []);
    assert!(matches!(surrogate, Err(DeserializeError::Value | DeserializeError::Room)));
    #[cfg(feature = "alloc")]
    {
        let list = Raw::parse(br#"["\u0061",1]"#).unwrap();
        assert_eq!(list.deserialize::<(String, u8)>(), Ok(("a".to_owned(), 1)));
        assert_eq!(list.deserialize::<Vec<u8>>(), Err(DeserializeError::Type));
    }
    let tree = Raw::parse(br#"{"a\n":"b\n"}"#).unwrap().to::<serde_json::Value>(&mut []);
    let expected = serde_json::json!({"a\n": "b\n"});
    assert_eq!(tree, if cfg!(feature = "alloc") { Ok(expected) } else { Err(DeserializeError::Room) });
}

#[derive(Deserialize, PartialEq, Debug)]
struct Strict {
    pid: u32,
    #[serde(default)]
    signal: Option<i32>,
    kind: Option<Kind>,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Kind {
    Soft,
    Hard { after: u8 },
}

#[test]
fn refusals_tell_what_is_wrong() {
    let cases = [
        ("{}", DeserializeError::Missing("pid")),
        (r#"{"pid":"1"}"#, DeserializeError::MemberType("pid")),
        (r#"{"pid":null}"#, DeserializeError::MemberType("pid")),
        (r#"{"pid":-1}"#, DeserializeError::MemberRange("pid")),
        (r#"{"pid":1.5}"#, DeserializeError::MemberType("pid")),
        (r#"{"pid":1,"pid":2}"#, DeserializeError::Value),
        (r#"{"pid":1,"kind":"medium"}"#, DeserializeError::MemberValue("kind")),
        (r#"{"pid":1,"kind":{"medium":1}}"#, DeserializeError::MemberValue("kind")),
        (r#"{"pid":1,"kind":{}}"#, DeserializeError::MemberValue("kind")),
        (r#"{"pid":1,"kind":{"soft":null,"hard":null}}"#, DeserializeError::MemberValue("kind")),
        (r#"{"pid":1,"kind":{"hard":{}}}"#, DeserializeError::Missing("after")),
        (r#"{"pid":1,"kind":{"hard":{"after":1,"x":2}}}"#, DeserializeError::MemberValue("kind")),
        (r#"{"pid":1,"kind":7}"#, DeserializeError::MemberType("kind")),
        (r#"{"pid":1,"kind":"hard"}"#, DeserializeError::MemberType("kind")),
        ("[1]", DeserializeError::Type),
        ("\"pid\"", DeserializeError::Type),
        ("null", DeserializeError::Type),
    ];
    for (json, refused) in cases {
        assert_eq!(read::<Strict>(json), Err(refused), "{json}");
    }
    let strict = Strict { pid: 1, signal: None, kind: Some(Kind::Soft) };
    assert_eq!(read(r#"{"x":[{"y":1}],"pid":1,"signal":null,"kind":{"soft":null}}"#), Ok(strict));
    let strict = Strict { pid: 1, signal: Some(-9), kind: Some(Kind::Hard { after: 3 }) };
    assert_eq!(read(r#"{"kind":{"h\u0061rd":{"after":3}},"s\u0069gnal":-9,"pid":1}"#), Ok(strict));
    assert_eq!(read::<Kind>(r#""s\u006fft""#), Ok(Kind::Soft));
    assert_eq!(DeserializeError::Missing("pid").to_string(), "missing member `pid`");
    assert_eq!(read::<Strict>(r#"{"pid":"1"}"#).unwrap_err().to_string(), "member `pid` has the wrong type");
}

#[test]
fn lengths_must_match() {
    assert_eq!(read::<(i32, i32)>("[1,2]"), Ok((1, 2)));
    assert_eq!(read::<(i32, i32)>("[1,2,3]"), Err(DeserializeError::Value));
    assert_eq!(read::<(i32, i32)>("[1]"), Err(DeserializeError::Value));
    assert_eq!(read::<[(u8, [u8; 0]); 2]>("[[1,[]],[2,[]]]"), Ok([(1, []), (2, [])]));
    assert_eq!(read::<[u8; 2]>("[]"), Err(DeserializeError::Value));
    assert_eq!(read::<Vec<u8>>("{}"), Err(DeserializeError::Type));
    assert_eq!(read::<char>("\"ab\""), Err(DeserializeError::Value));
    assert_eq!(read::<BTreeMap<u8, u8>>(r#"{"1":1,"2":2}"#), Ok(BTreeMap::from([(1, 1), (2, 2)])));
    for json in [r#"{"x":1}"#, r#"{"":1}"#, r#"{"01":1}"#, r#"{"1 ":1}"#, r#"{"-":1}"#, r#"{"1.5":1}"#] {
        assert_eq!(read::<BTreeMap<u8, u8>>(json), Err(DeserializeError::Type), "{json}");
    }
    assert_eq!(read::<BTreeMap<u8, u8>>(r#"{"256":1}"#), Err(DeserializeError::Range));
}

#[derive(Serialize, Deserialize, Debug)]
struct Passed<'a> {
    #[serde(borrow)]
    any: Raw<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    maybe: Option<Raw<'a>>,
}

#[test]
fn raw_passes_through() {
    let json = r#"{"any":{"a" : [1.50, "\u0041"]},"text":"x\u0041\n","maybe":null}"#;
    let passed: Passed<'_> = Raw::parse(json.as_bytes()).unwrap().to(&mut []).unwrap();
    assert_eq!(passed.any.as_str(), r#"{"a" : [1.50, "\u0041"]}"#);
    assert_eq!(passed.text.raw(), br"x\u0041\n");
    assert!(passed.text.eq_str("xA\n") && passed.maybe.is_none());
    // The text was decoded and escaped again; the raw value was not changed.
    let expected = r#"{"any":{"a" : [1.50, "\u0041"]},"text":"xA\n","maybe":null}"#;
    assert_eq!(written(&passed).unwrap(), expected);
    assert_eq!(serde_json::to_string(&passed).unwrap(), expected);
    // Newlines between tokens would break lines and events.
    let pretty = Raw::parse(b"{\n\"a\":\r\n1}").unwrap();
    assert_eq!(written(&[pretty]).unwrap(), "[{ \"a\":  1}]");
    assert_eq!(Raw::parse(b"1").unwrap().to::<Text<'_>>(&mut []).err(), Some(DeserializeError::Type));
    assert!(serde_json::from_str::<Raw<'_>>("1").is_err());
    let lone: Text<'_> = Raw::parse(br#""\ud800""#).unwrap().to(&mut []).unwrap();
    assert_eq!(written(&lone).unwrap(), "\"\u{fffd}\"");
}

#[test]
fn raw_value_of_serde_json() {
    use serde_json::value::RawValue;
    let raw = Raw::parse(br#"[{"a" : "\u0041"}, 1.50]"#).unwrap();
    let mut scratch = [0; 32];
    let values: Vec<Box<RawValue>> = raw.to(&mut scratch).unwrap();
    assert_eq!(values.iter().map(|value| value.get()).collect::<Vec<_>>(), [r#"{"a" : "\u0041"}"#, "1.50"]);
    assert_eq!(written(&values).unwrap(), r#"[{"a" : "\u0041"},1.50]"#);
    let lent: Vec<&RawValue> = raw.to(&mut []).unwrap();
    assert_eq!(lent.first().map(|value| value.get()), Some(r#"{"a" : "\u0041"}"#));
}

/// Enums whose content serde buffers.
#[test]
fn tagged_enums() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "type", rename_all = "lowercase")]
    enum Tagged {
        Text { text: String },
        Number { value: i64 },
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Text(String),
        Many(Vec<Either>),
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        a: i32,
        #[serde(flatten)]
        rest: BTreeMap<String, i32>,
    }
    round(vec![Tagged::Text { text: "a\nb".into() }, Tagged::Number { value: -1 }]);
    round(Either::Many(vec![Either::Number(1), Either::Text("\n".into()), Either::Many(vec![])]));
    round(Flat { a: 1, rest: BTreeMap::from([("b\n".into(), 2)]) });
}

#[test]
fn decimals() {
    #[derive(Serialize)]
    struct Reading {
        celsius: Decimal,
    }
    let reading = Reading { celsius: Decimal::new(-215, 1) };
    assert_eq!(written(&reading).unwrap(), r#"{"celsius":-21.5}"#);
    assert_eq!(serde_json::to_string(&reading).unwrap(), r#"{"celsius":-21.5}"#);
    assert_eq!(written(&Decimal::new(5, 200)).unwrap().len(), 202);
}

struct Bytes;
impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&[0, 10, 255])
    }
}

struct Refuses;
impl Serialize for Refuses {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
}

#[test]
fn what_is_not_json() {
    assert_eq!(written(&Bytes).unwrap(), "[0,10,255]");
    assert_eq!(written(&Refuses), Err(SerializeError::Unsupported));
    assert_eq!(written(&BTreeMap::from([(true, 1)])), Err(SerializeError::Key));
    assert_eq!(written(&BTreeMap::from([((1, 2), 1)])), Err(SerializeError::Key));
    assert_eq!(written(&BTreeMap::from([(Some(1), 1)])), Err(SerializeError::Key));
    assert_eq!(written(&format_args!("{}\"\n", 1)).unwrap(), r#""1\"\n""#);
}

/// With any limit that is too small, the result is `FullError`, in any part of the value.
#[test]
fn full_is_told() {
    let value = everything();
    let whole = written(&value).unwrap().len();
    for limit in 0..whole {
        let mut out = Buffer { bytes: Vec::new(), limit };
        assert_eq!(to_sink(&mut out, &value), Err(SerializeError::Full(FullError::Now)), "{limit}");
        let mut out = Buffer { bytes: Vec::new(), limit };
        assert_eq!(to_escaped(&mut out, &value), Err(SerializeError::Full(FullError::Now)), "{limit}");
    }
    let mut out = Buffer { bytes: Vec::new(), limit: whole };
    assert_eq!(to_sink(&mut out, &value), Ok(()));
    for limit in 0..4 {
        let mut out = Buffer { bytes: Vec::new(), limit };
        assert_eq!(to_sink(&mut out, &21.55), Err(SerializeError::Full(FullError::Now)));
        let mut out = Buffer { bytes: Vec::new(), limit };
        assert_eq!(to_sink(&mut out, &Decimal::new(2155, 2)), Err(SerializeError::Full(FullError::Now)));
    }
}

/// Values of the greatest depth that the scanner accepts: the recursion must not overflow the stack.
#[test]
fn deep_values() {
    let json = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let value: serde_json::Value = read(&json).unwrap();
    assert_eq!(written(&value).unwrap(), json);
}

/// Objects side by side are not nested: each end leaves one.
#[test]
fn many_small_objects() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Empty {}
    let many = format!("[{}]", vec!["{}"; 300].join(","));
    assert_eq!(read::<Vec<BTreeMap<String, u8>>>(&many).unwrap().len(), 300);
    assert_eq!(read::<Vec<Empty>>(&many).unwrap().len(), 300);
    let raw = Raw::parse(many.as_bytes()).unwrap();
    assert_eq!(raw.items().filter(|item| item.members().next().is_none()).count(), 300);
}

/// A reader that takes anything gets integers as integers, and all else as floats.
#[test]
fn numbers_of_any_kind() {
    for text in ["0", "5", "-5", "1.5", "-1.5", "1e2", "18446744073709551615", "-9223372036854775808"] {
        let expected: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(read::<serde_json::Value>(text).unwrap(), expected, "{text}");
    }
}
