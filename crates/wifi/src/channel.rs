//! Wi-Fi bands and channels.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A frequency band of Wi-Fi.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub enum Band {
    /// The band at 2.4 GHz.
    #[serde(rename = "2.4GHz")]
    Two,
    /// The band at 5 GHz.
    #[serde(rename = "5GHz")]
    Five,
    /// The band at 6 GHz.
    #[serde(rename = "6GHz")]
    Six,
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Two => "2.4 GHz",
            Self::Five => "5 GHz",
            Self::Six => "6 GHz",
        })
    }
}

/// A channel with a width of 20 MHz.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct Channel {
    /// Band to which the channel belongs.
    pub band: Band,
    /// Number of the channel within its band.
    pub number: u16,
}

impl Channel {
    /// Returns the channel with this centre frequency in MHz (IEEE 802.11-2020, annex E; for 6 GHz 802.11ax).
    #[must_use]
    pub fn at(mhz: u32) -> Option<Self> {
        let (band, number) = match mhz {
            2484 => (Band::Two, 14),
            2412..=2472 if (mhz - 2407).is_multiple_of(5) => (Band::Two, (mhz - 2407) / 5),
            5935 => (Band::Six, 2),
            5955..=7115 if (mhz - 5950).is_multiple_of(5) => (Band::Six, (mhz - 5950) / 5),
            5160..=5885 if (mhz - 5000).is_multiple_of(5) => (Band::Five, (mhz - 5000) / 5),
            _ => return None,
        };
        let number = u16::try_from(number).ok()?;
        Some(Self { band, number })
    }

    /// Returns the channel for a number that comes without a band. Lists with such numbers are older than the 6 GHz
    /// band, so the number means a channel in 2.4 or 5 GHz.
    #[must_use]
    pub fn numbered(number: u32) -> Option<Self> {
        let band = match number {
            1..=14 => Band::Two,
            32..=177 => Band::Five,
            _ => return None,
        };
        let number = u16::try_from(number).ok()?;
        Some(Self { band, number })
    }

    /// Returns whether two channels in 2.4 GHz overlap. They do if their centres are less than 22 MHz apart, which is
    /// the width of 802.11b (IEEE 802.11-2020, 15.4.4.3).
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let middle = |number: u16| {
            if number == 14 {
                2484
            } else {
                2407 + 5 * number
            }
        };
        let two = (self.band, other.band) == (Band::Two, Band::Two);
        two && middle(self.number).abs_diff(middle(other.number)) < 22
    }

    /// Returns whether an access point must leave the channel when it detects a radar. This applies to 5250–5350 MHz
    /// and 5470–5730 MHz (ETSI EN 301 893, FCC 15.407).
    #[must_use]
    pub fn yields_to_radar(self) -> bool {
        self.band == Band::Five && matches!(self.number, 52..=64 | 100..=144)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} channel {}", self.band, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_channels() {
        let shown = |mhz| Channel::at(mhz).map(|channel| channel.to_string());
        assert_eq!(shown(2437).as_deref(), Some("2.4 GHz channel 6"));
        assert_eq!(shown(2484).as_deref(), Some("2.4 GHz channel 14"));
        assert_eq!(shown(5500).as_deref(), Some("5 GHz channel 100"));
        assert_eq!(shown(6275).as_deref(), Some("6 GHz channel 65"));
        assert_eq!((shown(2438), shown(0), shown(u32::MAX)), (None, None, None));
        let pairs = |number| {
            let of = |number| Channel {
                band: Band::Two,
                number,
            };
            [1, 6, 11]
                .into_iter()
                .filter(|usual| of(number).overlaps(of(*usual)))
                .collect::<Vec<u16>>()
        };
        assert_eq!((pairs(3), pairs(10)), (vec![1, 6], vec![6, 11]));
        assert_eq!(
            (pairs(12), pairs(13), pairs(14)),
            (vec![11], vec![11], vec![])
        );
        let radar = |mhz| Channel::at(mhz).unwrap().yields_to_radar();
        assert!(radar(5260) && radar(5720) && !radar(5240) && !radar(5745));
    }
}
