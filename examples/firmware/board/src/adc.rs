//! What the converter's readings mean.

use crate::chip::Adc;

impl Adc {
    /// The temperature that a reading means, in tenths of a degree Celsius (data sheet, 11.2.6).
    pub fn tenths(reading: u16) -> i32 {
        1475 - 2250 * i32::from(reading) / 1023
    }
}
