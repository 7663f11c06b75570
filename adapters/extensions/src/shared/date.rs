//! Points in time as ISO 8601 text.

use mcp_sansio::memory::FixedText;

/// Returns milliseconds since the beginning of 1970, in UTC, as `2026-07-28T09:30:00.000Z`. Written without `core::fmt`, which
/// takes more than a kilobyte on a device.
pub(crate) fn iso_8601(millis: u64) -> FixedText<32> {
    const DAY: u64 = 86_400_000;
    // Later days than these are shown as the last one, after eleven million years.
    let (days, of_day) = ((millis / DAY).min(u64::from(u32::MAX - 719_468)) as u32, (millis % DAY) as u32);
    // Years begin in March here, so that the day that leap years have is the last one. An era has 400 years.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let parts = [
        (era * 400 + year, 4, b'-'),
        (month, 2, b'-'),
        (of_month, 2, b'T'),
        (of_day / 3_600_000, 2, b':'),
        (of_day / 60_000 % 60, 2, b':'),
        (of_day / 1000 % 60, 2, b'.'),
        (of_day % 1000, 3, b'Z'),
    ];
    let mut text = FixedText::EMPTY;
    for (mut number, digits, after) in parts {
        let (mut written, mut from) = ([b'0'; 10], 10);
        while number > 0 || 10 - from < digits {
            from -= 1;
            if let Some(place) = written.get_mut(from) {
                *place = b'0' + (number % 10) as u8;
            }
            number /= 10;
        }
        text.push(written.get(from..).unwrap_or_default());
        text.push(&[after]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::iso_8601;

    #[test]
    fn days_of_leap_years() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_785_231_000, "2026-07-28T09:30:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
            (253_402_300_800, "10000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(seconds * 1000).as_str(), text);
        }
        assert!(iso_8601(1_234).as_str().ends_with("01.234Z"));
        let last = iso_8601(u64::MAX);
        assert!(last.is_whole() && last.as_str().starts_with("117") && last.as_str().ends_with('Z'));
    }
}
