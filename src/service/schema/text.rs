//! Writes schemas as text, when the program is compiled.

use super::{Kind, Limit, Property, TypeSchema, Variant};
use crate::json::schema::Pen;
use crate::search::same;

impl<const N: usize> Pen<N> {
    /// Writes a string, with quotes and escapes.
    const fn string(&mut self, text: &str) {
        self.byte(b'"');
        let mut rest = text.as_bytes();
        while let [byte, behind @ ..] = rest {
            match *byte {
                b'"' | b'\\' => {
                    self.byte(b'\\');
                    self.byte(*byte);
                }
                b'\n' => self.put("\\n"),
                control @ 0..0x20 => {
                    self.put("\\u00");
                    self.byte(b'0' + (control >> 4));
                    let digit = control & 15;
                    self.byte(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
                }
                byte => self.byte(byte),
            }
            rest = behind;
        }
        self.byte(b'"');
    }

    const fn number(&mut self, value: i128) {
        if value < 0 {
            self.byte(b'-');
        }
        self.digits(value.unsigned_abs());
    }

    const fn limit(&mut self, key: &str, limit: Option<Limit>) {
        match limit {
            None => {}
            Some(Limit::Integer(value)) => {
                self.put(key);
                self.number(value);
            }
            Some(Limit::Number(text, _)) => {
                self.put(key);
                self.put(text);
            }
        }
    }

    const fn count(&mut self, key: &str, count: Option<usize>) {
        if let Some(count) = count {
            self.put(key);
            self.number(count as i128);
        }
    }

    const fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.put(key);
            self.string(text);
        }
    }

    const fn strings(&mut self, names: &[&str]) {
        self.byte(b'[');
        let (mut rest, mut first) = (names, true);
        while let [name, behind @ ..] = rest {
            if !first {
                self.byte(b',');
            }
            self.string(name);
            (rest, first) = (behind, false);
        }
        self.byte(b']');
    }

    pub(super) const fn schema(&mut self, schema: &TypeSchema) {
        self.byte(b'{');
        let start = self.len;
        self.put(match schema.kind {
            Kind::Any => "",
            Kind::Array => "\"type\":\"array\"",
            Kind::Boolean => "\"type\":\"boolean\"",
            Kind::Integer => "\"type\":\"integer\"",
            Kind::Number => "\"type\":\"number\"",
            Kind::Object => "\"type\":\"object\"",
            Kind::String => "\"type\":\"string\"",
        });
        let keys = [(schema.title, "title"), (schema.description, "description")];
        let mut rest: &[_] = &keys;
        while let [(text, key), behind @ ..] = rest {
            if let Some(text) = *text {
                self.put(if self.len > start { ",\"" } else { "\"" });
                self.put(key);
                self.put("\":");
                self.string(text);
            }
            rest = behind;
        }
        if !schema.names.is_empty() {
            self.put(",\"enum\":");
            self.strings(schema.names);
        }
        self.text(",\"format\":", schema.format);
        self.text(",\"pattern\":", schema.pattern);
        self.limit(",\"minimum\":", schema.minimum);
        self.limit(",\"maximum\":", schema.maximum);
        let is_array = matches!(schema.kind, Kind::Array);
        self.count(if is_array { ",\"minItems\":" } else { ",\"minLength\":" }, schema.shortest);
        self.count(if is_array { ",\"maxItems\":" } else { ",\"maxLength\":" }, schema.longest);
        if let Some(items) = schema.items {
            self.put(",\"items\":");
            self.schema(items);
        }
        if let Some(json) = schema.default {
            self.put(",\"default\":");
            self.put(json);
        }
        self.text(if self.len > start { ",\"x-mcp-header\":" } else { "\"x-mcp-header\":" }, schema.header);
        if matches!(schema.kind, Kind::Object) {
            self.object(schema);
        }
        self.byte(b'}');
    }

    const fn object(&mut self, schema: &TypeSchema) {
        self.put(",\"properties\":{");
        let mut first = true;
        if !schema.variants.is_empty() {
            self.string(schema.tag);
            self.put(":{\"type\":\"string\",\"enum\":[");
            let mut rest = schema.variants;
            while let [variant, behind @ ..] = rest {
                self.string(variant.name);
                if !behind.is_empty() {
                    self.byte(b',');
                }
                rest = behind;
            }
            self.put("]}");
            first = false;
        }
        first = self.members(schema.properties, first);
        let (mut rest, mut before) = (schema.variants, 0);
        while let [variant, behind @ ..] = rest {
            let mut members = variant.properties;
            while let [member, more @ ..] = members {
                if !has_member(schema.variants, before, member.name) {
                    self.member(member, first);
                    first = false;
                }
                members = more;
            }
            (rest, before) = (behind, before + 1);
        }
        self.byte(b'}');
        if schema.variants.is_empty() {
            self.required(schema.properties);
        } else {
            self.put(",\"required\":[");
            self.string(schema.tag);
            self.byte(b']');
            self.conditions(schema);
        }
        if schema.closed {
            self.put(",\"additionalProperties\":false");
        }
    }

    /// Writes members. Returns whether there are none so far.
    const fn members(&mut self, members: &[Property], mut first: bool) -> bool {
        let mut rest = members;
        while let [member, behind @ ..] = rest {
            self.member(member, first);
            (rest, first) = (behind, false);
        }
        first
    }

    const fn member(&mut self, member: &Property, first: bool) {
        if !first {
            self.byte(b',');
        }
        self.string(member.name);
        self.byte(b':');
        self.schema(&member.schema);
    }

    /// Writes `required`, if there is such a member.
    const fn required(&mut self, members: &[Property]) {
        let (mut rest, mut count) = (members, 0);
        while let [member, behind @ ..] = rest {
            if member.required {
                self.put(if count == 0 { ",\"required\":[" } else { "," });
                self.string(member.name);
                count += 1;
            }
            rest = behind;
        }
        if count > 0 {
            self.byte(b']');
        }
    }

    /// Writes the members that each variant requires. By `if`, since some hosts refuse `oneOf` beside `type`.
    const fn conditions(&mut self, schema: &TypeSchema) {
        let (mut rest, mut depth) = (schema.variants, 0);
        while let [variant, behind @ ..] = rest {
            if requires(variant.properties) {
                self.put(if depth == 0 { ",\"if\":{\"properties\":{" } else { ",\"else\":{\"if\":{\"properties\":{" });
                self.string(schema.tag);
                self.put(":{\"const\":");
                self.string(variant.name);
                self.put("}}},\"then\":{\"type\":\"object\"");
                self.required(variant.properties);
                self.byte(b'}');
                depth += 1;
            }
            rest = behind;
        }
        while depth > 1 {
            self.byte(b'}');
            depth -= 1;
        }
    }
}

const fn requires(members: &[Property]) -> bool {
    let mut rest = members;
    while let [member, behind @ ..] = rest {
        if member.required {
            return true;
        }
        rest = behind;
    }
    false
}

/// Returns whether one of the first `count` variants has this member.
const fn has_member(variants: &[Variant], count: usize, name: &str) -> bool {
    let (mut rest, mut left) = (variants, count);
    while let [variant, behind @ ..] = rest {
        if left == 0 {
            return false;
        }
        let mut members = variant.properties;
        while let [member, more @ ..] = members {
            if same(member.name, name) {
                return true;
            }
            members = more;
        }
        (rest, left) = (behind, left - 1);
    }
    false
}
