//! Times as HTTP and AWS write them, in seconds since 1970.

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March put the leap day at their end.
    let y = if month <= 2 { year - 1 } else { year };
    let (era, m) = (y.div_euclid(400), (month + 9) % 12);
    let of_era = y.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day - 1 - 719_468
}

/// `Last-Modified`: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn of_http(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split([' ', ':']);
    let day = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|m| *m == month)? as i64 + 1;
    let mut number = || words.next()?.parse::<i64>().ok();
    let (year, h, m, s) = (number()?, number()?, number()?, number()?);
    u64::try_from(days(year, month, day) * 86_400 + h * 3600 + m * 60 + s).ok()
}

/// `20150830T123600Z`.
pub(crate) fn to_aws(seconds: u64) -> String {
    let (day, rest) = ((seconds / 86_400) as i64, seconds % 86_400);
    // The year whose first day is the last one not after `day`.
    let mut year = 1970 + day / 366;
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let month = (1..=12).rev().find(|m| days(year, *m, 1) <= day).unwrap_or(1);
    let of_month = day - days(year, month, 1) + 1;
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{of_month:02}T{h:02}{m:02}{s:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        // By Python's datetime.
        assert_eq!(of_http("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(to_aws(784_111_777), "19941106T084937Z");
        assert_eq!(to_aws(1_440_938_160), "20150830T123600Z");
        assert_eq!(to_aws(951_782_399), "20000228T235959Z");
        assert_eq!(to_aws(951_868_799), "20000229T235959Z");
        assert_eq!(to_aws(4_107_542_399), "21000228T235959Z");
        assert_eq!(to_aws(0), "19700101T000000Z");
        assert_eq!(of_http("yesterday"), None);
    }
}
