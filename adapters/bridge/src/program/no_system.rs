//! The functions of `system.rs` where there are no signals and modes of Unix.

use std::fs::OpenOptions;

use mcp_sansio_smol::Stopper;

#[allow(clippy::unnecessary_wraps, reason = "as the other one")]
pub(crate) fn at_signal(_: Stopper) -> Result<(), String> {
    Ok(())
}

pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}
