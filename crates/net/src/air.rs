//! What the radio of a device went through during a run: access points, channels, signal, rates. The addresses of
//! access points never leave the device in full: they tell where people live (see [`assay_wifi::address`]).

use assay_wifi::channel::{Band, Channel};
use serde::{Deserialize, Serialize};

/// Most samples of a record: one a second in the longest run, and some.
pub const MOST_SAMPLES: usize = crate::plan::LONGEST as usize + 100;
/// Most access points of a record, and most that were heard.
pub const MOST_POINTS: usize = 64;
/// Below this many dBm a signal is called weak: there iPhones begin to look for another access point
/// (Apple, "About wireless roaming for enterprise", HT203068).
pub const WEAK: i32 = -70;

/// What a radio saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Air {
    /// Access points in the order in which the device was first with them.
    pub points: Vec<Point>,
    /// In the order of time.
    pub samples: Vec<Sample>,
    /// Access points of the same network that the device had heard before or after the run, without its own,
    /// the strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
}

/// An access point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// Its address, the second half of which is hidden.
    pub address: String,
}

/// How it was at one time. What `iw` did not tell is none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct Sample {
    /// Microseconds from the start.
    pub at: u64,
    /// Which of the access points; none while it was with none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<u32>,
    /// Where it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// How strong the access point is heard, in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Rate of the radio from the access point, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_bit_per_s: Option<u64>,
    /// Rate of the radio to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_bit_per_s: Option<u64>,
}

/// An access point of the same network that the device was not with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Heard {
    /// Its address, the second half of which is hidden.
    pub address: String,
    /// Where it sends.
    pub channel: Channel,
    /// How strong it was heard, in dBm.
    pub signal: i32,
}

/// From one access point to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Roam {
    /// When it was last seen with the first one, in microseconds from the start.
    pub from_us: u64,
    /// When it was first seen with the second one.
    pub to_us: u64,
    /// Where it was.
    pub from: Option<Channel>,
    /// Where it was then.
    pub to: Option<Channel>,
}

/// How strong the access point was heard at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Signal {
    /// Microseconds from the start.
    pub at_us: u64,
    /// dBm.
    pub dbm: i32,
}

/// What a radio went through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AirVerdict {
    /// From one access point to another.
    pub roams: Vec<Roam>,
    /// With no access point at all: from, to, in microseconds from the start.
    pub away: Vec<(u64, u64)>,
    /// Half of the time it was as strong, in dBm.
    pub signal: Option<i32>,
    /// The weakest.
    pub weakest: Option<Signal>,
    /// Half of the time the radio sent and received as fast: from the access point, in bits per second.
    pub down_bit_per_s: Option<u64>,
    /// To the access point.
    pub up_bit_per_s: Option<u64>,
    /// Where it was most of the time.
    pub channel: Option<Channel>,
}

/// What it means.
#[must_use]
pub fn judge(air: &Air) -> AirVerdict {
    let samples = &air.samples;
    let signals = samples.iter().filter_map(|sample| {
        Some(Signal {
            at_us: sample.at,
            dbm: sample.signal?,
        })
    });
    let mut channels: Vec<(Channel, usize)> = Vec::new();
    for channel in samples.iter().filter_map(|sample| sample.channel) {
        match channels.iter_mut().find(|(own, _)| *own == channel) {
            Some((_, count)) => *count += 1,
            None => channels.push((channel, 1)),
        }
    }
    AirVerdict {
        roams: roams(samples),
        away: away(samples),
        signal: median(signals.clone().map(|signal| signal.dbm)),
        weakest: signals.min_by_key(|signal| signal.dbm),
        down_bit_per_s: median(samples.iter().filter_map(|sample| sample.down_bit_per_s)),
        up_bit_per_s: median(samples.iter().filter_map(|sample| sample.up_bit_per_s)),
        channel: channels
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(channel, _)| channel),
    }
}

fn median<T: Copy + Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// An access point may change its channel under its clients: that is no roam.
fn roams(samples: &[Sample]) -> Vec<Roam> {
    let mut roams = Vec::new();
    let with: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.point.is_some())
        .collect();
    for pair in with
        .windows(2)
        .filter(|pair| pair[0].point != pair[1].point)
    {
        roams.push(Roam {
            from_us: pair[0].at,
            to_us: pair[1].at,
            from: pair[0].channel,
            to: pair[1].channel,
        });
    }
    roams
}

fn away(samples: &[Sample]) -> Vec<(u64, u64)> {
    let mut away: Vec<(u64, u64)> = Vec::new();
    let mut since: Option<u64> = None;
    for sample in samples {
        match (sample.point, since) {
            (None, None) => since = Some(sample.at),
            (Some(_), Some(from)) => {
                away.push((from, sample.at));
                since = None;
            }
            _ => {}
        }
    }
    let last = samples.last().map_or(0, |sample| sample.at);
    away.extend(since.map(|from| (from, last.max(from))));
    away
}

impl Air {
    /// How it was at a time: as it was last seen before.
    #[must_use]
    pub fn at(&self, us: u64) -> Option<&Sample> {
        let after = self.samples.partition_point(|sample| sample.at <= us);
        self.samples.get(after.checked_sub(1)?)
    }

    /// The strongest access point of the same network in a higher band than 2.4 GHz, that was not weak.
    #[must_use]
    pub fn better_band(&self) -> Option<&Heard> {
        let heard = self.heard.iter();
        let higher = heard.filter(|heard| heard.channel.band > Band::Two && heard.signal >= WEAK);
        higher.max_by_key(|heard| heard.signal)
    }

    /// Whether a client may have sent it.
    pub(crate) fn is_bounded(&self) -> bool {
        let addresses = self.points.iter().map(|point| &point.address);
        let mut addresses = addresses.chain(self.heard.iter().map(|heard| &heard.address));
        self.samples.len() <= MOST_SAMPLES
            && self.points.len() <= MOST_POINTS
            && self.heard.len() <= MOST_POINTS
            && addresses.all(|address| address.len() <= 40)
            && self.samples.is_sorted_by_key(|sample| sample.at)
    }

    /// Hides what a client that is not assay may have sent in full.
    pub(crate) fn mask(&mut self) {
        let points = self.points.iter_mut().map(|point| &mut point.address);
        for address in points.chain(self.heard.iter_mut().map(|heard| &mut heard.address)) {
            *address = assay_wifi::address::mask(address);
        }
    }
}

#[cfg(test)]
mod tests;
