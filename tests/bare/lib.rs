//! Tests of the core as devices have it, without any feature: `cargo test -p mcp-sansio-bare-tests --features alone`.
