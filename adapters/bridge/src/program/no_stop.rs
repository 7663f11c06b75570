//! The function of `stop.rs` where there are no signals of Unix.

use mcp_sansio_smol::Stopper;

#[allow(clippy::unnecessary_wraps, reason = "as the other one")]
pub(crate) fn at_signal(_: Stopper) -> Result<(), String> {
    Ok(())
}
