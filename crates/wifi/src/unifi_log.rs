//! Parses server.log of a UniFi controller. Searches the line that the controller writes when a network with 802.1X has
//! lost its RADIUS profile. Skips all other lines. No line is shown, because the lines contain addresses and names of
//! clients.

use crate::reading::{Format, LostProfile, Reading};

/// Text that the controller logs. After it follows the id of the profile, which is `null` or an id that does not exist.
const LOST: &str = "invalid radiusprofile_id";

/// Returns whether a line begins with a time of the log, as in `[2017-01-18 23:41:30,160]` or
/// `[2023-03-01T10:11:12,345]`.
pub(crate) fn recognise(line: &[u8]) -> bool {
    date_of(&String::from_utf8_lossy(line.get(..12).unwrap_or_default())).is_some()
}

/// Returns the date of a line.
fn date_of(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('[')?;
    let date = rest.get(..10)?;
    let fits = date.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let ends = rest[10..].is_empty() || rest[10..].starts_with([' ', 'T']);
    (fits && ends).then_some(date)
}

/// Parses the log. Keeps only the newest line about a lost profile, and the number of these lines.
pub(crate) fn read(bytes: &[u8]) -> Reading {
    let mut reading = Reading::new(Format::UnifiLog);
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        if !line.contains(LOST) {
            continue;
        }
        // Without a time it is the text of a client, or the rest of another line.
        let Some(date) = date_of(&line) else { continue };
        let count = reading.lost_profile.as_ref().map_or(0, |lost| lost.count);
        reading.lost_profile = Some(LostProfile {
            line: at + 1,
            date: date.to_owned(),
            count: count + 1,
        });
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_counts() {
        let log = b"[2017-01-18 23:41:30,160] WARN  uap    - invalid radiusprofile_id: null\r\n\
                    [2017-01-18 23:41:31,000] <inform-1> INFO  event - [event] User[78:8a:20:01:02:03] connected\n\
                    invalid radiusprofile_id: null\n\
                    [2023-03-01T10:11:12,345] <inform_stat-3> WARN  uap    - invalid radiusprofile_id: 5f3c\n";
        assert!(recognise(log));
        let lost = read(log).lost_profile.unwrap();
        assert_eq!(
            (lost.line, lost.date.as_str(), lost.count),
            (4, "2023-03-01", 2)
        );
        assert!(
            read(b"[2017-01-18 23:41:30,160] INFO  system - ok\n")
                .lost_profile
                .is_none()
        );
    }

    #[test]
    fn json_is_no_log() {
        for text in [
            "[{\"name\":\"x\"}]",
            "[2017, 1]",
            "[2017-1-18 x",
            "[]",
            "[",
            "[2017-01-18é",
        ] {
            assert!(!recognise(text.as_bytes()), "{text}");
        }
    }
}
