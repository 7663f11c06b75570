//! The history of the thermometer: 20 KB of text, generated from any position on, because the device has no room
//! for it.

use mcp_sansio::service::SourceError;

use crate::sensor;

/// The remembered measurements, one per minute.
const MINUTES: u32 = 1000;

/// The length of a line. All lines have the same length.
const LINE: u32 = LAYOUT.len() as u32;
const LAYOUT: &[u8; 20] = b"minute ####: +##.#C\n";

/// Fills `bytes` with the text from `at` on: the source of the tool `history`.
pub fn read<S>(_: &mut S, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    let minute = at / LINE;
    if minute >= MINUTES {
        return Ok(0);
    }
    let line = line(minute);
    let rest = line.get((at % LINE) as usize..).unwrap_or_default();
    for (place, byte) in bytes.iter_mut().zip(rest) {
        *place = *byte;
    }
    Ok(rest.len().min(bytes.len()))
}

fn line(minute: u32) -> [u8; LINE as usize] {
    let mut line = *LAYOUT;
    let tenths = sensor::tenths(sensor::reading(minute * 60));
    let mut digits = minute * 1000 + tenths.unsigned_abs() % 1000;
    // From the last digit to the first.
    for place in line.iter_mut().rev() {
        match place {
            b'#' => {
                *place = b'0' + (digits % 10) as u8;
                digits /= 10;
            }
            b'+' if tenths < 0 => *place = b'-',
            _ => {}
        }
    }
    line
}
