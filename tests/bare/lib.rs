//! Tests of the core without any feature, as devices use it: `cargo test -p mcp-sansio-bare-tests --features alone`,
//! and `--features terse --test terse`.
