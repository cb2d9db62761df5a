//! Numbers, spans and times as people read and write them.
//!
//! Decides: their form. Leaves to others: where they come from. Believes: wall times are Unix milliseconds, shown in UTC.
//! Bounded by: nothing to bound.

use std::io::IsTerminal;
use std::time::Duration;

const SPAN_FORM: &str = "write it as 500ms, 30s, 10m or 1h";
const SIZE_FORM: &str = "write it as 65536, 64KiB, 256MiB or 1GiB";

/// `1461` as `1,461`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Unix milliseconds as `2026-11-29 23:12:56.123Z`; later than year 9999 as the bare number.
pub(crate) fn utc(millis: u64) -> String {
    if millis > 253_402_300_799_999 {
        return format!("{millis} ms");
    }
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Days since 1970-01-01 as a date, counted in years that begin in March so that a leap day is the last one.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The digits a text begins with, and what follows them.
fn number_and_unit(text: &str) -> (&str, &str) {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.split_at(text.len() - unit.len())
}

/// `500ms`, `30s`, `10m` or `1h`; a bare number is seconds.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text);
    let number: u64 = number.parse().map_err(|_| SPAN_FORM.to_owned())?;
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(SPAN_FORM.to_owned()),
    };
    number
        .checked_mul(unit_ms)
        .filter(|millis| *millis <= 365 * 86_400_000)
        .map(Duration::from_millis)
        .ok_or_else(|| "at most a year".to_owned())
}

/// `65536`, `64KiB`, `256MiB` or `1GiB`, in bytes.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let (number, unit) = number_and_unit(text);
    let shift = match unit.trim_start() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err(SIZE_FORM.to_owned()),
    };
    let number: usize = number.parse().map_err(|_| SIZE_FORM.to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "more than this machine can address".to_owned())
}

/// A span as `420 ms`, `12.3 s`, `2 min 5 s` or `3 h 12 min`.
pub(crate) fn span(span: Duration) -> String {
    let (seconds, minutes) = (span.as_secs(), span.as_secs() / 60);
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..60 => format!("{:.1} s", span.as_secs_f64()),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Unix milliseconds as a time of the day at `now`, `03:12:07`; with its date when that is another day. In UTC.
pub(crate) fn clock(millis: u64, now: u64) -> String {
    let whole = utc(millis);
    match whole
        .strip_suffix('Z')
        .and_then(|whole| whole.split_once(' '))
    {
        Some((date, time)) => {
            let time = time.split('.').next().unwrap_or_default();
            let today = millis / 86_400_000 == now / 86_400_000;
            if today {
                time.to_owned()
            } else {
                format!("{date} {time}")
            }
        }
        None => whole,
    }
}

/// The host's date, in Unix milliseconds; 0 before 1970.
#[allow(
    clippy::disallowed_types,
    reason = "the command's one place that reads the host's date"
)]
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Text for a terminal: what could steer it is shown instead of sent.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// How this program was called, for lines to paste.
pub(crate) fn program() -> String {
    match std::env::args().next() {
        Some(name) if name.len() <= 24 && !name.contains(' ') => name,
        _ => "tidings".to_owned(),
    }
}

/// Whether standard error is a terminal on which a row can be written again.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal() && moves_its_cursor()
}

/// Whether standard output is a terminal on which rows can be written again.
pub(crate) fn stdout_is_screen() -> bool {
    std::io::stdout().is_terminal() && moves_its_cursor()
}

/// Terminals that cannot say so in `TERM`.
fn moves_its_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [count(0), count(999), count(1461), count(1_000_000)],
            ["0", "999", "1,461", "1,000,000"]
        );
    }

    #[test]
    fn times_are_utc_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00.000Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00.000Z");
        assert_eq!(utc(1_709_251_199_999), "2024-02-29 23:59:59.999Z");
        assert_eq!(utc(1_796_000_000_123), "2026-11-30 00:53:20.123Z");
        assert_eq!(utc(u64::MAX), format!("{} ms", u64::MAX));
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let at = 1_796_000_000_123;
        assert_eq!(clock(at, at + 1000), "00:53:20");
        assert_eq!(clock(at, at + 86_400_000), "2026-11-30 00:53:20");
        assert_eq!(clock(u64::MAX, at), format!("{} ms", u64::MAX));
    }

    #[test]
    fn spans_have_units() {
        let shown = [0, 420, 12_345, 125_000, 11_520_000].map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(
            shown,
            ["0 ms", "420 ms", "12.3 s", "2 min 5 s", "3 h 12 min"]
        );
        assert_eq!(parse_span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_span("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_span("1h"), Ok(Duration::from_secs(3600)));
        for bad in ["", "s", "-1s", "1d", "99999999999999999999", "99999999999h"] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_could_steer_a_terminal_is_shown_instead() {
        assert_eq!(printable("a\u{1b}[2Jb\tc"), "a\\u{1b}[2Jb\tc");
    }
}
