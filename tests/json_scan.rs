//! The scanner against a table of edge cases and against serde_json over mutated inputs.

use mcp_sansio::json::{DEPTH, DecodeError, JsonKind, ParseError, Raw, Scanner, constant};

fn fault(json: impl AsRef<[u8]>) -> Option<ParseError> {
    Raw::parse(json.as_ref()).err()
}

#[test]
#[rustfmt::skip]
fn edges_that_are_json() {
    let good: &[&[u8]] = &[
        b"0", b"-0", b"1", b"-1", b"10", b"1.0", b"0.5e+10", b"1E5", b"1e-5", b"0e0", b"1234567890123456789012345",
        b"true", b"false", b"null", b"\"\"", b"{}", b"[]", b" \t\r\n0 \t\r\n", b"[ ]", b"{ }", b"[1 , 2]",
        b"{\"\" : 1 , \"\" : 2}", b"[[[]],{\"a\":{}}]", br#""\"\\\/\b\f\n\r\t\u0000\uD83D\ude00""#, b"\"\x7f\"",
        "\"é€😀\u{10ffff}\u{2028}\"".as_bytes(), br#""\ud800""#, br#""\udfff\ud800""#,
        br#"{"m\u0065thod":1,"method":2}"#, b"\"plain text that is longer than two words and a block of sixteen\"",
    ];
    for json in good {
        assert_eq!(fault(json), None, "{}", json.escape_ascii());
    }
}

#[test]
#[rustfmt::skip]
fn edges_that_are_not_json() {
    use ParseError::{End, Syntax, Trailing};
    let bad: &[(&[u8], ParseError)] = &[
        (b"", End), (b" ", End), (b"-", End), (b"1.", End), (b"1e", End), (b"1e+", End), (b"[", End), (b"{", End),
        (b"[1", End), (b"[1,", End), (b"{\"a\"", End), (b"{\"a\":", End), (b"{\"a\":1", End), (b"{\"a\":1,", End),
        (b"\"", End), (b"\"a", End), (b"\"\\", End), (b"\"\\u12", End), (b"tru", End), (b"n", End), (b"\"\\\"", End),
        (b"01", Trailing), (b"-01", Trailing), (b"1 2", Trailing), (b"{}x", Trailing), (b"[]]", Trailing),
        (b"nullx", Trailing), (b"0x10", Trailing), (b"1.0.0", Trailing), (b"1e5.", Trailing), (b"\"\"\"", Trailing),
        (b"1\0", Trailing), (b"{}\xff", Trailing),
        (b"+1", Syntax), (b".5", Syntax), (b"1.e5", Syntax), (b"1ee", Syntax), (b"-a", Syntax), (b"--1", Syntax),
        (b"NaN", Syntax), (b"Infinity", Syntax), (b"True", Syntax), (b"nul0", Syntax), (b"'a'", Syntax), (b"\0", Syntax),
        (b"\xef\xbb\xbf{}", Syntax), (b"\xff", Syntax), (b"\x0c1", Syntax), (b"\xc2\xa01", Syntax), (b"//", Syntax),
        (b"[,]", Syntax), (b"[1,]", Syntax), (b"[1 2]", Syntax), (b"[1}", Syntax), (b"]", Syntax), (b"}", Syntax),
        (b"{1:2}", Syntax), (b"{\"a\" 1}", Syntax), (b"{\"a\":1,}", Syntax), (b"{\"a\":}", Syntax), (b"{,}", Syntax),
        (b"{\"a\":1]", Syntax), (b"{\"a\":1 \"b\":2}", Syntax), (b"{\"a\"}", Syntax), (b"{a:1}", Syntax),
        (b"\"\\x\"", Syntax), (b"\"\\u12g4\"", Syntax), (b"\"\\U0041\"", Syntax), (b"\"\\u+123\"", Syntax),
        (b"\"\n\"", Syntax), (b"\"\t\"", Syntax), (b"\"\0\"", Syntax), (b"\"\x1f\"", Syntax),
        (b"\"long enough to be beyond the first words\x01 and more\"", Syntax),
    ];
    for (json, expected) in bad {
        assert_eq!(fault(json), Some(*expected), "{}", json.escape_ascii());
    }
}

/// Every shape of broken UTF-8, at places in and behind the first block of a string.
#[test]
#[rustfmt::skip]
fn broken_utf8() {
    let broken: &[&[u8]] = &[
        b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2x", b"\xc2\xc2", b"\xe0\x80\x80", b"\xe0\x9f\xbf",
        b"\xe2\x82", b"\xe2\x82x", b"\xe2x\x82", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x80\x80\x80",
        b"\xf0\x8f\xbf\xbf", b"\xf0\x9f\x98", b"\xf0\x9f\x98x", b"\xf0\x9fx\x80", b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", b"\xc3\xa9\x80", b"\xc3\xa9\xc3",
    ];
    let sound = [
        "é", "\u{80}", "\u{7ff}", "\u{800}", "\u{d7ff}", "\u{e000}", "\u{ffff}", "\u{10000}", "\u{10ffff}", "éé€😀é",
    ];
    for before in [0, 1, 7, 8, 15, 16, 31, 33, 64] {
        for bytes in broken {
            let mut json = vec![b'"'];
            json.resize(1 + before, b'a');
            json.extend_from_slice(bytes);
            assert_eq!(fault(&json), Some(ParseError::Utf8), "{}", json.escape_ascii());
            json.extend_from_slice(b" and so on\"");
            assert_eq!(fault(&json), Some(ParseError::Utf8), "{}", json.escape_ascii());
        }
        for text in sound {
            let json = format!("\"{}{text} and so on{text}\"", "a".repeat(before));
            assert_eq!(fault(&json), None, "{json}");
        }
    }
}

fn nested(depth: usize, array: bool) -> String {
    let (open, inner, close) = if array { ("[", "", "]") } else { ("{\"a\":", "0", "}") };
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn depth_is_limited() {
    let depth = usize::from(DEPTH);
    for array in [true, false] {
        assert_eq!(fault(nested(depth, array)), None);
        assert_eq!(fault(nested(depth + 1, array)), Some(ParseError::Depth));
        assert_eq!(fault(nested(100_000, array)), Some(ParseError::Depth));
        assert_eq!(constant::check(&nested(depth, array)), Ok(()));
        assert_eq!(constant::check(&nested(depth + 1, array)), Err(ParseError::Depth));
    }
    // Objects and arrays in turns, so that every bit of the stack is used.
    let mixed = format!("{}1{}", "[{\"a\":".repeat(64), "}]".repeat(64));
    assert_eq!(fault(&mixed), None);
    assert_eq!(fault(mixed.replace("1}]", "1]}")), Some(ParseError::Syntax));
    assert_eq!(fault(format!("[{mixed}]")), Some(ParseError::Depth));

    let with = |json: &'static [u8], max| Scanner::with_depth(json, max).value().err();
    assert_eq!(with(b"[[1]]", 2), None);
    assert_eq!(with(b"[[1]]", 1), Some(ParseError::Depth));
    assert_eq!(with(b"1", 0), None);
    assert_eq!(with(b"[]", 0), Some(ParseError::Depth));
    let deep = nested(depth + 1, true);
    assert_eq!(Scanner::with_depth(deep.as_bytes(), 255).value().err(), Some(ParseError::Depth));
}

/// Levels that the caller enters by hand count towards the depth.
#[test]
fn by_hand() {
    let mut scan = Scanner::with_depth(br#" {"a":[1,{"b":[]}],"c":[[ ]]} "#, 4);
    scan.open().unwrap();
    let mut first = true;
    assert!(scan.key(&mut first).unwrap().unwrap().eq_str("a"));
    scan.open_array().unwrap();
    let mut first_element = true;
    assert_eq!(scan.element(&mut first_element), Ok(true));
    assert_eq!(scan.value().unwrap().u64(), Some(1));
    assert_eq!(scan.element(&mut first_element), Ok(true));
    assert_eq!(scan.value().unwrap().as_bytes(), br#"{"b":[]}"#);
    assert_eq!(scan.element(&mut first_element), Ok(false));
    assert!(scan.key(&mut first).unwrap().unwrap().eq_str("c"));
    assert_eq!(scan.value().unwrap().kind(), JsonKind::Array);
    assert_eq!(scan.key(&mut first), Ok(None));
    assert_eq!(scan.position(), 29);
    assert_eq!(scan.end(), Ok(()));
    assert_eq!(scan.position(), 30);

    let mut scan = Scanner::with_depth(br#"{"a":[[]]}"#, 2);
    scan.open().unwrap();
    assert!(scan.key(&mut true).unwrap().is_some());
    assert_eq!(scan.value().err(), Some(ParseError::Depth));
}

/// The same grammar for callers that enter values by hand.
#[test]
fn grammar_by_hand() {
    let keys = |json: &'static [u8]| {
        let mut scan = Scanner::new(json);
        scan.open()?;
        let mut first = true;
        while scan.key(&mut first)?.is_some() {
            scan.value()?;
        }
        scan.end()
    };
    assert_eq!(keys(b"{}"), Ok(()));
    assert_eq!(keys(b"{\"a\":1 , \"b\" : 2 } "), Ok(()));
    assert_eq!(keys(b"{"), Err(ParseError::End));
    assert_eq!(keys(b"{} {}"), Err(ParseError::Trailing));
    for bad in [&b"{\"a\":1,}"[..], b"{,\"a\":1}", b"{\"a\":1 \"b\":2}", b"{\"a\":1]", b"[]"] {
        assert_eq!(keys(bad), Err(ParseError::Syntax), "{}", bad.escape_ascii());
    }
    let elements = |json: &'static [u8]| {
        let mut scan = Scanner::new(json);
        scan.open_array()?;
        let mut first = true;
        while scan.element(&mut first)? {
            scan.value()?;
        }
        scan.end()
    };
    assert_eq!(elements(b" [ 1 , [2] , 3 ] "), Ok(()));
    assert_eq!(elements(b"[]"), Ok(()));
    assert_eq!(elements(b"[1,"), Err(ParseError::End));
    for bad in [&b"[,]"[..], b"[1,]", b"[1 2]", b"[1}", b"{}"] {
        assert_eq!(elements(bad), Err(ParseError::Syntax), "{}", bad.escape_ascii());
    }
}

/// Leaving more often than entering is an error of the caller, but must not panic.
#[test]
fn misuse_does_no_harm() {
    let mut scan = Scanner::new(b"}}]]{\"a\":1}");
    assert_eq!(scan.key(&mut true), Ok(None));
    assert_eq!(scan.key(&mut true), Ok(None));
    assert_eq!(scan.element(&mut true), Ok(false));
    assert_eq!(scan.element(&mut false), Ok(false));
    assert_eq!(scan.value().map(|value| value.as_bytes()), Ok(&b"{\"a\":1}"[..]));
}

/// Lone surrogates pass the grammar and are refused when decoded; duplicate and escaped keys.
#[test]
fn strings_are_decoded_late() {
    let raw = Raw::parse(br#"{"a":"\ud800","\u0061":"x\uD83D\uDE00","b":"\udc00\ud800"}"#).unwrap();
    let mut scratch = [0; 16];
    let last = raw.get("a").and_then(|a| a.text()).unwrap();
    assert_eq!(last.decode(&mut scratch), Ok("x😀"));
    let errors: Vec<_> = raw.members().map(|(_, value)| value.text().unwrap().decode(&mut [0; 16]).err()).collect();
    assert_eq!(errors, [Some(DecodeError::Surrogate), None, Some(DecodeError::Surrogate)]);
    assert_eq!(raw.members().filter(|(key, _)| key.eq_str("a")).count(), 2);
}

/// Random numbers without a dependency, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a [u8]]) -> &'a [u8] {
        from[self.below(from.len())]
    }
}

const SEEDS: &[&[u8]] = &[
    br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, world"}}}"#,
    br#" [ 1 , -2.5e+3 , true , false , null , "" , { } , [ ] , 0 , 1E5 ] "#,
    br#"{"a\u0062c":"\"\\\/\b\f\n\r\t","\ud83d\ude00":"x\ud800y","n":[[[[{"deep":[{}]}]]]]}"#,
    r#"{"Grüße":"Καλημέρα κόσμε","text":"日本語の文字列 and ASCII behind it 😀😀"}"#.as_bytes(),
    "[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaéaaaaaaaaaaaaaaaaaaaaaaa\"]".as_bytes(),
    b"\"a string alone, long enough for blocks of sixteen bytes, with \\n and \\\\ in it\"",
    b"-12345678901234567890.0123456789e-12",
];

#[rustfmt::skip]
const PIECES: &[&[u8]] = &[
    b"\"", b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\t", b"0", b"1", b"-", b".", b"e", b"E", b"+",
    b"true", b"fals", b"null", b"\\u00e9", b"\\ud83d\\ude00", b"\\ud800", b"\\u12", b"\\n", b"\\x", b"\0", b"\x1f",
    b"\x7f", b"\x80", b"\xc3\xa9", b"\xc3", b"\xe2\x82\xac", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80",
    b"\xff", b"\"a\":", b",\"b\":2", b",3", b"[]", b"{}", b"\"\"", b"aaaaaaaaaaaaaaaa",
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(4)).min(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 if at < bytes.len() => bytes[at] = random.next() as u8,
            3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            4 => {
                let copied: Vec<u8> = bytes.iter().skip(at).take(random.below(24)).copied().collect();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copied);
            }
            _ => drop(bytes.splice(at..end, random.pick(PIECES).iter().copied())),
        }
    }
}

/// Returns whether serde_json accepts the bytes. It reads strings as raw text, so lone surrogates pass, as they do
/// here; it then checks no UTF-8, which `from_utf8` does.
fn reference(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok())
}

/// Compares one input with serde_json. Returns whether both accept it.
fn compare(bytes: &[u8]) -> bool {
    let verdict = Raw::parse(bytes);
    assert_eq!(verdict.is_ok(), reference(bytes), "{verdict:?}: {}", bytes.escape_ascii());
    if let Ok(text) = core::str::from_utf8(bytes) {
        assert_eq!(constant::check(text), verdict.map(|_| ()), "{text}");
    }
    verdict.map(walk).is_ok()
}

#[test]
fn same_verdict_as_serde_json() {
    const INPUTS: usize = 400_000;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut good, mut compared) = (0, 0);
    let mut bytes = Vec::new();
    for _ in 0..INPUTS {
        // An input that is broken already is changed further only sometimes.
        if good_enough(&mut random, &bytes) {
            mutate(&mut random, &mut bytes);
        } else {
            bytes = random.pick(SEEDS).to_vec();
            mutate(&mut random, &mut bytes);
        }
        bytes.truncate(400);
        // serde_json has a limit of its own: 127 levels.
        if bytes.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() < 127 {
            compared += 1;
            good += usize::from(compare(&bytes));
        }
    }
    assert!(compared >= 300_000, "{compared}");
    assert!(good > INPUTS / 10, "too few inputs are JSON: {good}");
}

fn good_enough(random: &mut Random, bytes: &[u8]) -> bool {
    bytes.len() > 8 && random.below(4) != 0 && (random.below(4) == 0 || Raw::parse(bytes).is_ok())
}

/// Reads each part of a value: it must not panic, and must equal the value of serde_json.
fn walk(raw: Raw<'_>) {
    match raw.kind() {
        JsonKind::Object => raw.members().for_each(|(key, value)| {
            assert_eq!(key.decoded_len().is_some(), key.chars().all(|c| c.is_ok()));
            walk(value);
        }),
        JsonKind::Array => {
            let theirs: Vec<&serde_json::value::RawValue> = serde_json::from_str(raw.as_str()).unwrap();
            assert!(raw.items().map(|item| item.as_str()).eq(theirs.iter().map(|item| item.get())));
            raw.items().for_each(walk);
        }
        JsonKind::String => {
            let text = raw.text().unwrap();
            let theirs = serde_json::from_str::<String>(raw.as_str()).ok();
            let mut scratch = vec![0; text.raw().len()];
            assert_eq!(text.decode(&mut scratch).ok(), theirs.as_deref());
            assert_eq!(text.decoded_len(), theirs.as_ref().map(String::len));
            assert!(theirs.is_none_or(|theirs| text.eq_str(&theirs)));
        }
        JsonKind::Number => {
            if raw.is_integer() && raw.as_bytes() != b"-0" {
                assert_eq!(raw.u64(), raw.as_str().parse().ok());
                assert_eq!(raw.i64(), raw.as_str().parse().ok());
            }
        }
        JsonKind::Bool => assert!(raw.bool().is_some()),
        JsonKind::Null => assert_eq!(raw.as_bytes(), b"null"),
    }
}
