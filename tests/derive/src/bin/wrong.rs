//! The programs of `tests/wrong.rs`, which do not compile: one of them with `--cfg wrong="NAME"`, else none.
#![allow(unexpected_cfgs, reason = "only that test sets it")]

#[cfg(wrong = "macros")]
include!("../../wrong/macros.rs");
#[cfg(wrong = "types")]
include!("../../wrong/types.rs");
#[cfg(wrong = "limits")]
include!("../../wrong/limits.rs");

#[cfg(not(any(wrong = "macros", wrong = "types", wrong = "limits")))]
fn main() {}
