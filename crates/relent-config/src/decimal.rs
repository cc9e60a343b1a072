//! Decimal numbers with a unit, as whole numbers of the smallest unit: exact, or refused.

/// Why a number can't be had exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inexact {
    /// Finer than the smallest unit.
    TooFine,
    /// Over `u64::MAX` of the smallest unit.
    TooLarge,
}

/// Splits `text` after its leading digits and points: `"1.5s30ms"` is `("1.5", "s30ms")`.
pub(crate) fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

/// Splits `text` before the next digit or point: `"s30ms"` is `("s", "30ms")`.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(text.len()))
}

/// Whether `number` is digits, with at most one point between digits.
pub(crate) fn is_number(number: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    digits(whole) && digits(decimals)
}

/// `number` × `unit`, for a number as [`is_number`] has it.
pub(crate) fn scale(number: &str, unit: u64) -> Result<u64, Inexact> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| Inexact::TooLarge)?;
    let whole = whole.checked_mul(unit).ok_or(Inexact::TooLarge)?;
    let (mut sum, mut denominator) = (0_u128, 1_u128);
    for digit in decimals.trim_end_matches('0').bytes() {
        denominator = denominator.checked_mul(10).ok_or(Inexact::TooFine)?;
        sum = sum * 10 + u128::from(digit - b'0');
    }
    // At the end, not digit by digit: a unit need not be a power of ten (0.1h is 360 s).
    let part = sum.checked_mul(u128::from(unit)).ok_or(Inexact::TooFine)?;
    if part % denominator != 0 {
        return Err(Inexact::TooFine);
    }
    let part = u64::try_from(part / denominator).expect("a part of a unit is below the unit");
    whole.checked_add(part).ok_or(Inexact::TooLarge)
}

/// `amount` in `unit`s, as a decimal without trailing zeros; the unit is a power of ten.
pub(crate) fn write_decimal(amount: u64, unit: u64) -> String {
    let (whole, rest) = (amount / unit, amount % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let places = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{rest:0places$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_is_exact_or_refused() {
        assert_eq!(scale("1.5", 1_000), Ok(1_500));
        assert_eq!(scale("0.1", 3_600), Ok(360));
        assert_eq!(scale("1.0000000000000000000000000000000000000000000", 1), Ok(1));
        assert_eq!(scale("1.5", 1), Err(Inexact::TooFine));
        assert_eq!(scale("0.00000000000000000000000000000000000000000001", 10), Err(Inexact::TooFine));
        assert_eq!(scale("18446744073709551616", 1), Err(Inexact::TooLarge));
        assert_eq!(scale("18446744073709551615.5", 2), Err(Inexact::TooLarge));
        assert_eq!(scale("99999999999999999999999", 1), Err(Inexact::TooLarge));
    }

    #[test]
    fn what_a_number_is() {
        let good = ["0", "007", "1.50"];
        let bad = ["", ".", "1.", ".5", "1.2.3", "1e3"];
        assert!(good.iter().all(|n| is_number(n)) && !bad.iter().any(|n| is_number(n)));
    }
}
