use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Deeper than any limit of the engine, but not too deep for the stack of a test thread.
const MAX_DEPTH: usize = 512;

/// Reads one message as a line carries it: UTF-8, no newline or carriage return, one JSON value, and no object
/// with the same key twice. Keys are compared decoded.
pub fn strict_json(line: &[u8]) -> Result<Value, String> {
    if let Some(at) = line.iter().position(|b| matches!(b, b'\n' | b'\r')) {
        return Err(format!("raw {:?} at byte {at}: a message is one line", char::from(line[at])));
    }
    let text = std::str::from_utf8(line).map_err(|e| format!("not UTF-8: {e}"))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Strict { depth: 0 }.deserialize(&mut reader).map_err(|e| format!("not strict JSON: {e}"))?;
    reader.end().map_err(|e| format!("more than one JSON value: {e}"))?;
    Ok(value)
}

/// Builds a `Value` and refuses duplicate keys; the reader of `Value` would keep the last one without an error.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: Error>(self) -> Result<Strict, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom("too deep"));
        }
        Ok(Strict { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is there twice")));
            }
            let value = map.next_value_seed(inner)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
