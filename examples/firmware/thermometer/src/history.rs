//! What the thermometer remembers, as text that can be read from any place on:
//! 20 KB in a device that has no room for them.

use mcp_sansio::service::Broken;

use crate::sensor;

/// Measurements, one a minute.
const MINUTES: u32 = 1000;

/// Of a line; all are of one length.
const LINE: u32 = LAYOUT.len() as u32;
const LAYOUT: &[u8; 20] = b"minute ####: +##.#C\n";

/// The source of the tool `history`.
pub fn read<S>(_: &mut S, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, Broken> {
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
