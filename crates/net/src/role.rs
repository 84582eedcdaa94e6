//! Roles: what a person does on the network, and the goal for a good result. The built-in roles are TOML files in
//! `roles/`; a plan may define further roles.

use serde::{Deserialize, Serialize};

/// An activity of a person on the network, such as a video call, and its goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Name of the role; may contain letters, digits and `-`.
    pub name: String,
    /// Description that completes "a person who …".
    pub about: String,
    /// Plural noun for the events of the role.
    pub thing: String,
    /// Sentence that is shown for a good result.
    pub fine: String,
    /// Sentence that is shown for a bad result.
    pub trouble: String,
    /// Sentence that is shown if the result was bad all the time.
    pub hopeless: String,
    /// Requests or packets that the role sends.
    pub workload: Workload,
    /// Limits that separate good, tolerable and bad results.
    #[serde(default)]
    pub goal: Goal,
}

/// What a role transfers, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Single fetches at regular times, each on a free connection.
    Fetches {
        /// Size of the body of each fetch, in bytes.
        bytes: u64,
        /// Time between two fetches, in milliseconds.
        every_ms: f64,
        /// Maximum number of connections.
        connections: u32,
    },
    /// Web pages at regular times. All objects of a page are fetched at once, each on its own connection.
    Pages {
        /// Number of objects per page.
        objects: u32,
        /// Size of each object, in bytes.
        bytes: u64,
        /// Time between two pages, in milliseconds.
        every_ms: f64,
    },
    /// A film, fetched in consecutive pieces. Each piece is due when the playback reaches it.
    Stream {
        /// Size of each piece, in bytes.
        bytes: u64,
        /// Bit rate of the film, in bits per second.
        bit_per_s: f64,
        /// Minimum download rate for uninterrupted playback, in bits per second.
        least_bit_per_s: f64,
        /// Playing time in milliseconds that must be buffered before the playback starts.
        start_ms: f64,
    },
    /// Transfers at full speed over several connections.
    Bulk {
        /// Direction in which bytes are transferred.
        direction: Direction,
        /// Size of each request, in bytes.
        bytes: u64,
        /// Number of connections that transfer at the same time.
        connections: u32,
    },
    /// UDP packets at regular times, which the server echoes.
    Packets {
        /// Size of each packet without headers, in bytes; at least [`LEAST_PACKET`].
        bytes: u32,
        /// Time between two packets, in milliseconds.
        every_ms: f64,
    },
    /// A download that saturates the link, and probes on new connections that measure the responsiveness.
    Responsiveness {
        /// Number of connections of the download.
        connections: u32,
        /// Time between two probes, in milliseconds.
        every_ms: f64,
    },
}

/// Minimum bytes of a packet: it contains the key, number and time.
pub const LEAST_PACKET: u32 = 40;

/// Direction in which a role transfers bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the server to the device.
    Down,
    /// From the device to the server.
    Up,
}

/// Limits for the results of a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Goal {
    /// Time limit of an answer in milliseconds. `None` for a stream, because its minimum bit rate gives the time limit
    /// of each piece.
    pub within_ms: Option<f64>,
    /// Maximum fraction of late or failed answers for a good result, 0 to 1.
    pub good_over: f64,
    /// Maximum fraction of late or failed answers for a tolerable result, 0 to 1.
    pub tolerable_over: f64,
    /// Minimum rate of a download or upload, in bits per second; `None` if any rate is acceptable.
    pub bit_per_s: Option<f64>,
}

impl Default for Goal {
    fn default() -> Self {
        // The author of netburn calls 1 in 100 a pass and 1 in 20 mediocre.
        Self {
            within_ms: None,
            good_over: 0.01,
            tolerable_over: 0.05,
            bit_per_s: None,
        }
    }
}

const BUILTIN: [&str; 8] = [
    include_str!("../roles/browsing.toml"),
    include_str!("../roles/4kstream.toml"),
    include_str!("../roles/voip.toml"),
    include_str!("../roles/call.toml"),
    include_str!("../roles/gaming.toml"),
    include_str!("../roles/download.toml"),
    include_str!("../roles/upload.toml"),
    include_str!("../roles/responsiveness.toml"),
];

/// Returns the built-in roles.
#[must_use]
pub fn builtin() -> Vec<Role> {
    let read = |text: &&str| match toml::from_str(text) {
        Ok(role) => role,
        Err(error) => unreachable!("a role is part of the program: {error}"),
    };
    BUILTIN.iter().map(read).collect()
}

impl Role {
    /// Checks that all values of the role are within their limits.
    ///
    /// # Errors
    /// The reason for users.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("the role `{}`: {why}", self.name.escape_debug()));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.name.is_empty() || self.name.len() > 40 || !self.name.chars().all(plain) {
            return wrong("a name has 1 to 40 letters, digits or -");
        }
        let words = [
            &self.about,
            &self.thing,
            &self.fine,
            &self.trouble,
            &self.hopeless,
        ];
        if words.iter().any(|word| word.is_empty() || word.len() > 200) {
            return wrong("about, thing, fine, trouble and hopeless have 1 to 200 bytes each");
        }
        let (bytes, every, connections) = match &self.workload {
            Workload::Fetches {
                bytes,
                every_ms,
                connections,
            } => (*bytes, *every_ms, *connections),
            Workload::Pages {
                objects,
                bytes,
                every_ms,
            } => (*bytes, *every_ms, *objects),
            Workload::Stream {
                bytes,
                bit_per_s,
                least_bit_per_s,
                start_ms,
            } => {
                let rates = *least_bit_per_s > 0.0 && least_bit_per_s <= bit_per_s;
                if !rates || !(0.0..=60_000.0).contains(start_ms) {
                    return wrong("0 < least_bit_per_s ≤ bit_per_s, and start_ms is at most 60000");
                }
                (*bytes, *bytes as f64 * 8e3 / bit_per_s, 1)
            }
            Workload::Bulk {
                bytes, connections, ..
            } => (*bytes, 1000.0, *connections),
            Workload::Packets { bytes, every_ms } => {
                if !(LEAST_PACKET..=1400).contains(bytes) {
                    return wrong("a packet has 40 to 1400 bytes");
                }
                (1, *every_ms, 1)
            }
            Workload::Responsiveness {
                connections,
                every_ms,
            } => (1, *every_ms, *connections),
        };
        if bytes == 0 || bytes > MOST_BYTES {
            return wrong("a request has 1 byte to 64 MiB");
        }
        if !(5.0..=60_000.0).contains(&every) {
            return wrong("from one to the next it is 5 ms to 60 s");
        }
        if !(1..=32).contains(&connections) {
            return wrong("it has 1 to 32 connections");
        }
        let goal = &self.goal;
        let shares = 0.0 <= goal.good_over
            && goal.good_over <= goal.tolerable_over
            && goal.tolerable_over < 1.0;
        if !shares {
            return wrong("0 ≤ good_over ≤ tolerable_over < 1");
        }
        let positive = |value: Option<f64>| value.is_none_or(|v| v > 0.0 && v.is_finite());
        if !positive(goal.within_ms) || !positive(goal.bit_per_s) {
            return wrong("a goal is more than 0");
        }
        Ok(())
    }

    /// Returns whether the role has a goal, so that its result can be good or bad. For example, a download without a
    /// required rate has no goal.
    #[must_use]
    pub fn has_goal(&self) -> bool {
        match self.workload {
            Workload::Bulk { .. } => self.goal.bit_per_s.is_some(),
            Workload::Responsiveness { .. } => false,
            _ => self.within_us().is_some(),
        }
    }

    /// Returns the time limit of an answer in microseconds, if the role has one.
    #[must_use]
    pub fn within_us(&self) -> Option<u64> {
        let within = match &self.workload {
            Workload::Stream {
                bytes,
                least_bit_per_s,
                ..
            } => Some(*bytes as f64 * 8e6 / least_bit_per_s),
            _ => self.goal.within_ms.map(|ms| ms * 1e3),
        };
        within.map(|us| us as u64)
    }
}

/// Maximum size of one request or answer, in bytes.
pub const MOST_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assays_own_roles_can_be_meant_and_have_the_rates_of_the_seed() {
        let roles = builtin();
        for role in &roles {
            role.check().unwrap();
        }
        let voip = roles.iter().find(|role| role.name == "voip").unwrap();
        let Workload::Fetches {
            bytes, every_ms, ..
        } = &voip.workload
        else {
            panic!("{voip:?}")
        };
        let rate = *bytes as f64 * 8e3 / every_ms;
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
        let film = roles.iter().find(|role| role.name == "4kstream").unwrap();
        assert_eq!(film.within_us(), Some(419_430));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut role = builtin().remove(0);
        for name in ["", "a b", "\u{202e}"] {
            role.name = name.to_owned();
            assert!(role.check().is_err());
        }
        let mut role = builtin().remove(0);
        role.workload = Workload::Packets {
            bytes: 39,
            every_ms: 20.0,
        };
        assert!(role.check().is_err());
        role.workload = Workload::Packets {
            bytes: 100,
            every_ms: f64::NAN,
        };
        assert!(role.check().is_err());
    }
}
