//! The program that libFuzzer drives: runs the target that the variable `FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use mcp_sansio_fuzz::{Body, TARGETS};

static BODY: LazyLock<Body> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    TARGETS.iter().find(|(name, _)| *name == wanted).unwrap_or_else(|| panic!("no target `{wanted}`")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| BODY(data));
