//! Time: the core has no clock, and the caller passes the time as an argument.

/// A time in milliseconds on the caller's clock. Only differences count, and the clock may wrap around.
pub type Millis = u64;

/// Returns a pause that is up to a quarter longer, by a random `seed` and the time `now`: clients that wait for the same server then
/// do not all come back at once. With the seed 0 it is the pause itself.
///
/// ```
/// use mcp_sansio::time::jittered;
/// assert!((1_000..=1_250).contains(&jittered(1_000, 0x5eed, 7)));
/// assert_eq!(jittered(1_000, 0, 7), 1_000);
/// ```
#[must_use]
pub const fn jittered(pause: Millis, seed: u64, now: Millis) -> Millis {
    if seed == 0 {
        return pause;
    }
    // A step of SplitMix64.
    let mut mixed = seed ^ now;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    pause.saturating_add(pause.saturating_mul(mixed >> 56) / 1024)
}
