//! The temperature sensor, simulated: what the chip's own sensor and its 10-bit
//! converter would give in a room whose temperature wanders.

use mcp_sansio::json::Decimal;

/// The converter's reading at some time.
pub fn reading(seconds: u32) -> u16 {
    // Up and down by six degrees in an hour, and a little noise.
    let phase = (seconds % 3600) as i32;
    let swing = if phase < 1800 { phase } else { 3600 - phase };
    let noise = (seconds.wrapping_mul(0x9E37_79B9) >> 30) as i32;
    (540 + swing / 60 + noise) as u16
}

/// A reading in tenths of a degree Celsius (data sheet, 11.2.6).
pub fn tenths(reading: u16) -> i32 {
    1475 - 2250 * i32::from(reading) / 1023
}

/// A reading in degrees Celsius.
pub fn celsius(reading: u16) -> Decimal {
    Decimal::new(tenths(reading).into(), 1)
}
