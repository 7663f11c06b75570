//! JSON in one pass: scanner, writer, serde.
