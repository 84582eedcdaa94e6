//! Decides whether a server may be loaded. A server on this machine may always be loaded. For any other server, its
//! operator must publish a consent file, which nobody else can publish.
//!
//! The file is `/.well-known/assay-consent` on the same scheme, host and port:
//!
//! ```text
//! assay-consent 1
//! until 2026-12-31
//! most-requests-per-second 5000
//! most-connections 100
//! ```
//!
//! The first two lines are required; the two limits are optional. A file with a line that assay does not know counts as
//! a refusal, because this line may be a limit.

use crate::step::Shape;
use assay_model::web::Pace;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Path of the consent file.
pub const PATH: &str = "/.well-known/assay-consent";

/// Permission for a load, and its limits, from a consent file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    /// Last day on which a load is permitted (UTC).
    pub until: Date,
    /// Maximum rate of requests; `None` without a limit.
    pub most_requests_per_second: Option<f64>,
    /// Maximum number of connections; `None` without a limit.
    pub most_connections: Option<u32>,
}

impl Consent {
    /// Parses a consent file, and checks that the consent is valid on `today`.
    ///
    /// # Errors
    /// The reason why the file is not a valid consent.
    pub fn read(text: &str, today: Date) -> Result<Self, String> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if lines.next() != Some("assay-consent 1") {
            return Err("it does not begin with the line `assay-consent 1`".to_owned());
        }
        let (mut until, mut rate, mut connections) = (None, None, None);
        for line in lines {
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let value = value.trim();
            let bad = || format!("its line `{}` cannot be read", line.escape_debug());
            match name {
                "until" => until = Some(value.parse::<Date>().map_err(|_| bad())?),
                "most-requests-per-second" => {
                    let value: f64 = value.parse().map_err(|_| bad())?;
                    rate = Some(value).filter(|value| *value > 0.0 && value.is_finite());
                    rate.ok_or_else(bad)?;
                }
                "most-connections" => {
                    let value: u32 = value.parse().map_err(|_| bad())?;
                    connections = Some(value).filter(|value| *value > 0);
                    connections.ok_or_else(bad)?;
                }
                _ => return Err(bad()),
            }
        }
        let until = until.ok_or("it has no line `until YYYY-MM-DD`")?;
        if until < today {
            return Err(format!("it held until {until}"));
        }
        Ok(Self {
            until,
            most_requests_per_second: rate,
            most_connections: connections,
        })
    }
}

impl Consent {
    /// Reduces the rate and the number of connections of a step to the limits of the consent.
    #[must_use]
    pub fn allowed(&self, mut shape: Shape) -> Shape {
        if let Some(most) = self.most_connections {
            shape.connections = shape.connections.min(most);
        }
        if let Some(most) = self.most_requests_per_second {
            shape.pace = match shape.pace {
                // A closed loop has no rate limit. An open loop keeps the permitted rate.
                Pace::Closed => Pace::Constant { per_s: most },
                Pace::Constant { per_s } => Pace::Constant {
                    per_s: per_s.min(most),
                },
                Pace::Poisson { per_s } => Pace::Poisson {
                    per_s: per_s.min(most),
                },
                Pace::Replay { .. } => shape.pace,
            };
        }
        shape
    }

    /// Combines two consents: of each limit, the stricter one applies.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        let least = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Self {
            until: self.until.min(other.until),
            most_requests_per_second: least(
                self.most_requests_per_second,
                other.most_requests_per_second,
            ),
            most_connections: least(
                self.most_connections.map(f64::from),
                other.most_connections.map(f64::from),
            )
            .map(|least| least as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Consent, String> {
        Consent::read(text, "2026-11-22".parse().unwrap())
    }

    #[test]
    fn what_is_consent() {
        let all = "assay-consent 1\r\nuntil 2026-11-22\n\nmost-requests-per-second 5000\n\
                   most-connections 100\n";
        let consent = read(all).unwrap();
        assert_eq!(consent.most_requests_per_second, Some(5000.0));
        assert_eq!(consent.most_connections, Some(100));
        assert!(read("assay-consent 1\nuntil 2030-01-01").is_ok());
    }

    #[test]
    fn what_is_none() {
        for bad in [
            "",
            "<html>assay-consent 1</html>",
            "assay-consent 2\nuntil 2030-01-01",
            "assay-consent 1",
            "assay-consent 1\nuntil 2026-11-21",
            "assay-consent 1\nuntil tomorrow",
            "assay-consent 1\nuntil 2030-01-01\nonly-at-night yes",
            "assay-consent 1\nuntil 2030-01-01\nmost-connections -1",
            "assay-consent 1\nuntil 2030-01-01\nmost-connections 0",
            "assay-consent 1\nuntil 2030-01-01\nmost-requests-per-second NaN",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
