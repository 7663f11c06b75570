//! A simulated temperature sensor. It gives readings like those of the chip's own sensor with its 10-bit converter,
//! in a room with a changing temperature.

use mcp_sansio::json::Decimal;

/// Returns the converter's reading at a time.
pub fn reading(seconds: u32) -> u16 {
    // Up and down by six degrees per hour, with a little noise.
    let phase = (seconds % 3600) as i32;
    let swing = if phase < 1800 { phase } else { 3600 - phase };
    let noise = (seconds.wrapping_mul(0x9E37_79B9) >> 30) as i32;
    (540 + swing / 60 + noise) as u16
}

/// Converts a reading to tenths of a degree Celsius (data sheet, 11.2.6).
pub fn tenths(reading: u16) -> i32 {
    1475 - 2250 * i32::from(reading) / 1023
}

/// Converts a reading to degrees Celsius.
pub fn celsius(reading: u16) -> Decimal {
    Decimal::new(tenths(reading).into(), 1)
}
