//! HTTP-dates in their three forms (RFC 9110 §5.6.7), as seconds since 1970.
//!
//! Written here since the answer decides how early a server is asked again: a date whose weekday is wrong, that counts a
//! leap second, or whose two-digit year lies past 2069 is still a date, and taking it for rubbish would mean not to wait.

/// The seconds since 1970 that `text` names, or `None` if it is no date. `now` settles the century of two-digit years.
pub(super) fn parse(text: &[u8], now: i64) -> Option<i64> {
    let mut tokens: [&[u8]; 6] = [&[]; 6];
    let mut count = 0;
    for token in text.split(|byte| matches!(byte, b' ' | b',' | b'-')).filter(|token| !token.is_empty()) {
        *tokens.get_mut(count)? = token;
        count += 1;
    }
    let (name, day, month, year, time) = match tokens[..count] {
        // `Sun, 06 Nov 1994 08:49:37 GMT` and the obsolete `Sunday, 06-Nov-94 08:49:37 GMT`.
        [name, day, month, year, time, b"GMT"] => (name, day, month, year, time),
        // asctime: `Sun Nov  6 08:49:37 1994`.
        [name, month, day, time, year] => (name, day, month, year, time),
        _ => return None,
    };
    if !is_weekday(name) {
        return None;
    }
    let month = month_number(month)?;
    let year = full_year(year, now)?;
    let day = digits(day).filter(|day| (1..=days_in_month(year, month)).contains(day))?;
    Some(days_from_civil(year, month, day) * DAY + seconds_of_day(time)?)
}

const DAY: i64 = 86_400;

fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 4 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

fn is_weekday(name: &[u8]) -> bool {
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    days.iter().any(|day| name == day.as_bytes() || name == &day.as_bytes()[..3])
}

fn month_number(name: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8; 3]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    (1..).zip(MONTHS).find(|(_, month)| name == *month).map(|(number, _)| number)
}

/// RFC 9110 §5.6.7: a two-digit year over 50 years ahead is the last past one with these digits.
fn full_year(text: &[u8], now: i64) -> Option<i64> {
    let year = digits(text)?;
    match text.len() {
        4 => Some(year),
        2 => {
            let this = year_of(now);
            let near = this - this.rem_euclid(100) + year;
            if near > this + 50 {
                Some(near - 100)
            } else if near <= this - 50 {
                Some(near + 100)
            } else {
                Some(near)
            }
        }
        _ => None,
    }
}

fn seconds_of_day(text: &[u8]) -> Option<i64> {
    let mut parts = text.split(|byte| *byte == b':');
    let mut part = |most: i64| {
        let text = parts.next().filter(|text| text.len() == 2)?;
        digits(text).filter(|number| *number <= most)
    };
    // 60 is a leap second.
    let (hours, minutes, seconds) = (part(23)?, part(59)?, part(60)?);
    parts.next().is_none().then_some(hours * 3600 + minutes * 60 + seconds)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar. The year is taken to start in March, so that the leap day is its last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let before_month = (153 * ((month + 9) % 12) + 2) / 5;
    let before_year = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    before_year + before_month + day - 1 - 719_468
}

fn year_of(seconds: i64) -> i64 {
    let days = seconds.div_euclid(DAY);
    // Right but for a year at most: 400 years have 146,097 days.
    let mut year = 1970 + (days * 400).div_euclid(146_097);
    while days_from_civil(year, 1, 1) > days {
        year -= 1;
    }
    while days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    }
    year
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOV_6_1994: i64 = 784_111_777;
    const IN_2026: i64 = 1_790_000_000;

    #[test]
    fn all_three_forms_name_the_same_second() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes(), IN_2026), Some(NOV_6_1994), "{text}");
        }
    }

    #[test]
    fn every_day_of_1970_to_2399_is_read_as_httpdate_writes_it() {
        for day in 0..157_000_u32 {
            let seconds = i64::from(day) * DAY + i64::from(day % 86_400);
            let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.unsigned_abs());
            let text = httpdate::fmt_http_date(then);
            assert_eq!(parse(text.as_bytes(), IN_2026), Some(seconds), "{text}");
            assert_eq!(year_of(seconds).to_string(), text[12..16]);
        }
    }

    #[test]
    fn two_digit_years_lie_within_fifty_years() {
        let year = |text: &[u8], now| parse(text, now).map(year_of);
        assert_eq!(year(b"Monday, 06-Nov-76 08:49:37 GMT", IN_2026), Some(2076));
        assert_eq!(year(b"Monday, 06-Nov-77 08:49:37 GMT", IN_2026), Some(1977));
        assert_eq!(year(b"Monday, 06-Nov-26 08:49:37 GMT", IN_2026), Some(2026));
        let in_2090 = days_from_civil(2090, 1, 1) * DAY;
        assert_eq!(year(b"Monday, 06-Nov-05 08:49:37 GMT", in_2090), Some(2105));
    }

    #[test]
    fn a_wrong_weekday_and_a_leap_second_do_no_harm() {
        assert_eq!(parse(b"Mon, 06 Nov 1994 08:49:37 GMT", IN_2026), Some(NOV_6_1994));
        let leap = parse(b"Sat, 31 Dec 2016 23:59:60 GMT", IN_2026);
        assert_eq!(leap, parse(b"Sun, 01 Jan 2017 00:00:00 GMT", IN_2026));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "GMT",
            "-1",
            "06 Nov 1994",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 19994 08:49:37 GMT",
            "Sun, 06 Nov 194 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nvo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT",
            "Sun Nov  6 08:49:37 1994 GMT x",
            "a b c d e f",
            "a b c d e",
        ] {
            assert_eq!(parse(text.as_bytes(), IN_2026), None, "{text}");
        }
        assert_eq!(parse(b"S\xfcn, 06 Nov 1994 08:49:37 GMT", IN_2026), None);
    }
}
