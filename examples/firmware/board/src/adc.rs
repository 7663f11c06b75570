//! Converts readings of the analogue-to-digital converter.

use crate::chip::Adc;

impl Adc {
    /// Converts a reading to tenths of a degree Celsius (data sheet, 11.2.6).
    pub fn tenths(reading: u16) -> i32 {
        1475 - 2250 * i32::from(reading) / 1023
    }
}
