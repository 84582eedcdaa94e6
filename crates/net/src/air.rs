//! Wi-Fi history of a device during a run: access points, channels, signal and rates. The full addresses of
//! access points never leave the device, because they show where people live (see [`assay_wifi::address`]).

use assay_wifi::channel::{Band, Channel};
use serde::{Deserialize, Serialize};

/// Maximum number of samples in a record: one per second of the longest run, with a reserve.
pub const MOST_SAMPLES: usize = crate::plan::LONGEST as usize + 100;
/// Maximum number of used access points in a record. The same maximum applies to the other access points that the
/// device received.
pub const MOST_POINTS: usize = 64;
/// Signal in dBm below which a signal is weak: iPhones then search for another access point (Apple, "About
/// wireless roaming for enterprise", HT203068).
pub const WEAK: i32 = -70;

/// Wi-Fi connection of a device during a run, sampled by the device itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Air {
    /// Access points that the device used, in order of first use. [`Sample::point`] is an index into this list.
    pub points: Vec<Point>,
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// Access points of the same network that the device received but did not use, before or after the run; the
    /// strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
}

/// An access point that the device used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// Address of the access point, with the second half hidden.
    pub address: String,
}

/// State of the Wi-Fi connection at one time. A field that `iw` did not report is `None`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct Sample {
    /// Time since the start, in microseconds.
    pub at: u64,
    /// Index of the access point in [`Air::points`]; `None` while the device is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<u32>,
    /// Channel of the access point; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Received signal strength in dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Bit rate of the radio from the access point, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_bit_per_s: Option<u64>,
    /// Bit rate of the radio to the access point, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_bit_per_s: Option<u64>,
}

/// An access point of the same network that the device did not use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Heard {
    /// Address of the access point, with the second half hidden.
    pub address: String,
    /// Channel on which the access point sends.
    pub channel: Channel,
    /// Received signal strength in dBm.
    pub signal: i32,
}

/// A change from one access point to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Roam {
    /// Last time at the first access point, in microseconds from the start.
    pub from_us: u64,
    /// First time at the second access point, in microseconds from the start.
    pub to_us: u64,
    /// Channel before the change; `None` if `iw` did not report one.
    pub from: Option<Channel>,
    /// Channel after the change; `None` if `iw` did not report one.
    pub to: Option<Channel>,
}

/// Signal strength at one moment of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Signal {
    /// Time in microseconds from the start.
    pub at_us: u64,
    /// Signal strength in dBm.
    pub dbm: i32,
}

/// Summary of a device's Wi-Fi history, computed by [`judge`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AirVerdict {
    /// Changes from one access point to another, in order of time.
    pub roams: Vec<Roam>,
    /// Periods without an access point: start and end in microseconds from the start.
    pub away: Vec<(u64, u64)>,
    /// Median signal strength of all samples, in dBm.
    pub signal: Option<i32>,
    /// Sample with the weakest signal.
    pub weakest: Option<Signal>,
    /// Median bit rate from the access point, in bits per second.
    pub down_bit_per_s: Option<u64>,
    /// Median bit rate to the access point, in bits per second.
    pub up_bit_per_s: Option<u64>,
    /// Channel that the device used for most of the time.
    pub channel: Option<Channel>,
}

/// Summarises a Wi-Fi history.
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

/// Finds changes of access point. If an access point changes its channel together with its clients, this is not a
/// change of access point.
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
    /// Returns the last sample at or before a time, in microseconds from the start.
    #[must_use]
    pub fn at(&self, us: u64) -> Option<&Sample> {
        let after = self.samples.partition_point(|sample| sample.at <= us);
        self.samples.get(after.checked_sub(1)?)
    }

    /// Returns the strongest access point of the same network that sends above 2.4 GHz. An access point with a weak
    /// signal is not returned.
    #[must_use]
    pub fn better_band(&self) -> Option<&Heard> {
        let heard = self.heard.iter();
        let higher = heard.filter(|heard| heard.channel.band > Band::Two && heard.signal >= WEAK);
        higher.max_by_key(|heard| heard.signal)
    }

    /// Returns whether the sizes of a history from a client are within the limits and its samples are in order of time.
    pub(crate) fn is_bounded(&self) -> bool {
        let addresses = self.points.iter().map(|point| &point.address);
        let mut addresses = addresses.chain(self.heard.iter().map(|heard| &heard.address));
        self.samples.len() <= MOST_SAMPLES
            && self.points.len() <= MOST_POINTS
            && self.heard.len() <= MOST_POINTS
            && addresses.all(|address| address.len() <= 40)
            && self.samples.is_sorted_by_key(|sample| sample.at)
    }

    /// Hides the second half of all addresses. Clients other than assay may send full addresses.
    pub(crate) fn mask(&mut self) {
        let points = self.points.iter_mut().map(|point| &mut point.address);
        for address in points.chain(self.heard.iter_mut().map(|heard| &mut heard.address)) {
            *address = assay_wifi::address::mask(address);
        }
    }
}

#[cfg(test)]
mod tests;
