//! Reads numbers that the scanner has checked, without core's tables for floats.

use core::cmp::Ordering;

/// A number as it was written: an optional `-`, then `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    negative: bool,
    /// As many digits as fit; the others count in `exponent`.
    digits: u64,
    exponent: i32,
    /// True if all digits that did not fit were zeros.
    exact: bool,
}

impl Number {
    /// Reads a number that the scanner has checked.
    pub(super) fn read(text: &[u8]) -> Self {
        let mut number = Number { negative: false, digits: 0, exponent: 0, exact: true };
        let mut full = false;
        let mut point = false;
        let mut rest = text.iter();
        while let Some(&byte) = rest.next() {
            match byte {
                b'-' => number.negative = true,
                b'.' => point = true,
                b'0'..=b'9' => {
                    let longer = append(number.digits, byte.wrapping_sub(b'0')).filter(|_| !full);
                    full = longer.is_none();
                    number.digits = longer.unwrap_or(number.digits);
                    number.exact &= !full || byte == b'0';
                    // A digit that is kept after the point lowers the exponent; a digit that is dropped before
                    // it raises the exponent.
                    number.exponent = match (full, point) {
                        (false, true) => number.exponent.saturating_sub(1),
                        (true, false) => number.exponent.saturating_add(1),
                        _ => number.exponent,
                    };
                }
                _ => number.exponent = number.exponent.saturating_add(exponent(rest.as_slice())),
            }
            if let b'e' | b'E' = byte {
                break;
            }
        }
        number
    }

    /// Returns whether there is a minus sign.
    pub(super) fn negative(&self) -> bool {
        self.negative
    }

    /// Returns the value without its sign if it is whole and fits.
    pub(super) fn whole(&self) -> Option<u64> {
        if self.digits == 0 && self.exact {
            return Some(0);
        }
        if !self.exact {
            return None;
        }
        // At most as many steps as a `u64` has digits: then the value overflows, or leaves a remainder.
        let mut whole = self.digits;
        for _ in 0..self.exponent.unsigned_abs() {
            whole = match self.exponent {
                0.. => append(whole, 0)?,
                _ => Some(tenth(whole)).filter(|(_, digit)| *digit == 0)?.0,
            };
        }
        Some(whole)
    }

    /// Returns the value if it is whole and fits.
    pub(super) fn signed(&self) -> Option<i64> {
        let whole = self.whole()?;
        if self.negative { 0i64.checked_sub_unsigned(whole) } else { i64::try_from(whole).ok() }
    }

    /// Compares two numbers as written. Numbers that differ only after the kept digits are equal.
    pub(super) fn compare(&self, other: &Number) -> Ordering {
        match (self.sign(), other.sign()) {
            (1, 1) => self.compare_sizes(other),
            (-1, -1) => other.compare_sizes(self),
            (one, two) => one.cmp(&two),
        }
    }

    fn sign(&self) -> i8 {
        match (self.digits, self.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// Compares without the signs; neither number is zero.
    fn compare_sizes(&self, other: &Number) -> Ordering {
        let unit = self.exponent.max(other.exponent);
        let ((whole, rest), (other_whole, other_rest)) = (self.in_units(unit), other.in_units(unit));
        let rests = if self.exact && other.exact {
            rest.cmp(&other_rest)
        } else {
            // The digits that were cut off are not all zero; more is not known of them.
            (rest > 0 || !self.exact).cmp(&(other_rest > 0 || !other.exact))
        };
        self.places().cmp(&other.places()).then(whole.cmp(&other_whole)).then(rests)
    }

    /// Divides by ten to the power of `unit`: returns the quotient and the remainder. The numbers have the same
    /// count of places, so their exponents differ by fewer than the digits of a `u64`.
    fn in_units(&self, unit: i32) -> (u64, u64) {
        let scale = 10u64.saturating_pow(unit.abs_diff(self.exponent)).max(1);
        (self.digits / scale, self.digits % scale)
    }

    /// Returns the count of places before the point; negative if zeros follow the point.
    fn places(&self) -> i64 {
        i64::from(self.digits.checked_ilog10().unwrap_or(0)) + i64::from(self.exponent)
    }
}

/// Returns whether the value of a number that the scanner has checked has no fraction, however many digits it has.
pub(super) fn is_whole(text: &[u8]) -> bool {
    let (mut point, mut after, mut zeros) = (false, 0_i32, None);
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'-' => {}
            b'.' => point = true,
            b'0'..=b'9' => {
                after = after.saturating_add(i32::from(point));
                // The zeros behind the last digit that is not a zero.
                zeros = if byte == b'0' { zeros.map(|zeros: i32| zeros.saturating_add(1)) } else { Some(0) };
            }
            _ => {
                let power = exponent(rest.as_slice());
                return zeros.is_none_or(|zeros| zeros.saturating_add(power) >= after);
            }
        }
    }
    zeros.is_none_or(|zeros| zeros >= after)
}

#[cfg(any(feature = "serde", feature = "derive"))]
impl Number {
    /// Returns whether it has digits after the point: the reason why a value is not [`whole`](Self::whole).
    #[cfg(feature = "serde")]
    pub(super) fn has_fraction(&self) -> bool {
        self.exponent < 0
    }

    /// Returns the nearest float for at most 2^53 in digits and 22 in places, else one near it; infinite if out
    /// of range.
    #[cfg(any(test, not(feature = "alloc")))]
    pub(super) fn float(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "this is the loss that is documented")]
        let mut value = self.digits as f64;
        let mut left = self.exponent.unsigned_abs().min(1000);
        // The steps are powers of ten that a float can have. The first one also keeps subnormal numbers from
        // becoming zero.
        while left > 0 && value != 0.0 {
            let step = left.min(300);
            let scale = power_of_ten(step);
            value = if self.exponent < 0 { value / scale } else { value * scale };
            left -= step;
        }
        if self.negative { -value } else { value }
    }
}

/// Returns a power of ten: exact up to 22, finite up to 308.
#[cfg(all(any(feature = "serde", feature = "derive"), any(test, not(feature = "alloc"))))]
fn power_of_ten(mut exponent: u32) -> f64 {
    let mut power = 1.0;
    let mut square = 10.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    power
}

/// Appends a digit; `None` if the number does not fit.
fn append(value: u64, digit: u8) -> Option<u64> {
    value.checked_mul(10)?.checked_add(digit.into())
}

/// Divides a number by ten: returns the quotient and the remainder.
#[inline]
pub(super) fn tenth(value: u64) -> (u64, u8) {
    if cfg!(target_pointer_width = "64") {
        return (value / 10, (value % 10) as u8);
    }
    // Small machines have no division of 64 bits, and the one of the compiler takes nearly 1 KB of flash.
    let (mut tenth, mut left) = (0, 0);
    for shift in [48, 32, 16, 0] {
        let part = left << 16 | (value >> shift) as u32 & 0xffff;
        tenth = tenth << 16 | u64::from(part / 10);
        left = part % 10;
    }
    (tenth, left as u8)
}

/// Reads the exponent after an `e`. Out of range it is very large, so that the number over- or underflows.
fn exponent(text: &[u8]) -> i32 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    let size =
        digits.fold(0i32, |sum, &digit| sum.saturating_mul(10).saturating_add(i32::from(digit.wrapping_sub(b'0'))));
    if text.first() == Some(&b'-') { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let whole = |text: &str| Number::read(text.as_bytes()).whole();
        assert_eq!(whole("0"), Some(0));
        assert_eq!(whole("0e999999999999"), Some(0));
        assert_eq!(whole("0.000"), Some(0));
        assert_eq!(whole("18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole("18446744073709551616"), None);
        assert_eq!(whole("1844674407370955161500e-2"), Some(u64::MAX));
        assert_eq!(whole("1.00000000000000000000000000000000"), Some(1));
        assert_eq!(whole("1.00000000000000000000000000000001"), None);
        assert_eq!(whole("12.5e1"), Some(125));
        assert_eq!(whole("1e19"), Some(10_000_000_000_000_000_000));
        assert_eq!(whole("1e20"), None);
        assert_eq!(whole("1e-1"), None);
        assert_eq!(whole("1000E-3"), Some(1));
        assert_eq!(whole("1e99999999999"), None);
        assert_eq!(whole("1e-99999999999"), None);
    }

    #[test]
    fn order() {
        let compare = |one: &str, two: &str| Number::read(one.as_bytes()).compare(&Number::read(two.as_bytes()));
        let rising = [
            "-1e999999999999",
            "-18446744073709551620",
            "-100.5",
            "-100",
            "-99.9e0",
            "-1e-5",
            "0",
            "1e-99999999999",
            "0.1",
            "95.4999",
            "95.5",
            "96",
            "18446744073709551615",
            "18446744073709551620",
            "1e20",
            "1.00000000000000000000000001e20",
            "123e18",
            "1e400",
        ];
        for (i, one) in rising.iter().enumerate() {
            for (j, two) in rising.iter().enumerate() {
                assert_eq!(compare(one, two), i.cmp(&j), "{one} {two}");
            }
        }
        for (one, two) in [("1.0", "1"), ("-0", "0"), ("100", "1e2"), ("0.5", "5E-1"), ("0e9", "-0.00")] {
            assert_eq!(compare(one, two), Ordering::Equal, "{one} {two}");
        }
    }

    #[test]
    fn without_fraction() {
        let whole = |text: &str| is_whole(text.as_bytes());
        for text in [
            "0",
            "-3",
            "2.0",
            "1e400",
            "100e-2",
            "0.0e-99",
            "1e99999999999",
            "123456789012345678901234567890",
            "123456789012345678901234567890.50e1",
        ] {
            assert!(whole(text), "{text}");
        }
        for text in [
            "0.5",
            "1e-1",
            "95.5",
            "-2.25e1",
            "1e-400",
            "1.00000000000000000000000000000001",
            "123456789012345678901234567890.5",
            "123456789012345678901234567890.55e1",
        ] {
            assert!(!whole(text), "{text}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn floats() {
        let float = |text: &str| Number::read(text.as_bytes()).float();
        // Exact.
        for text in
            ["0", "-0.0", "21.5", "-1e22", "9007199254740992", "0.1", "123.456e-7", "1e-22", "4503599627370497.5"]
        {
            assert_eq!(float(text).to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        // Near.
        for text in [
            "1e300",
            "1e-300",
            "2.2250738585072014e-308",
            "1.7976931348623e308",
            "123456789012345678901234567890",
            "3.14159265358979323846264338327950288",
            "0.00000000000000000000000000000000000000000000000000000000001",
        ] {
            let exact: f64 = text.parse().unwrap();
            assert!(((float(text) - exact) / exact).abs() < 1e-15, "{text} {}", float(text));
        }
        assert!(float("5e-324") > 0.0);
        assert_eq!(float("1e-400"), 0.0);
        assert_eq!(float("1e400"), f64::INFINITY);
        assert_eq!(float("-1e99999999999"), f64::NEG_INFINITY);
        assert_eq!(float("0e99999999999"), 0.0);
    }
}
