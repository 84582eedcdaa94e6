//! What was seen when the host ran out of space, and what it means.

use crate::Sync;
use serde::Serialize;
use serde_json::Value;

/// An event of QEMU about a write that the host refused, or about the guest's being paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Event")]
pub struct RefusedWrite {
    /// `BLOCK_IO_ERROR`, `STOP` or `RESUME`.
    pub event: String,
    /// What QEMU did: `report`, `stop` or `ignore`.
    pub action: Option<String>,
    /// Whether QEMU knows that it is for lack of space.
    pub nospace: Option<bool>,
    /// The host's error, in words.
    pub reason: Option<String>,
}

impl RefusedWrite {
    /// Those of these events (qemu-qmp-ref(7)) that are about it.
    pub(super) fn all(events: &[Value]) -> Vec<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        events
            .iter()
            .filter_map(|event| {
                let name = event["event"].as_str()?;
                let ours = ["BLOCK_IO_ERROR", "STOP", "RESUME"].contains(&name);
                ours.then(|| Self {
                    event: name.to_owned(),
                    action: text(&event["data"]["action"]),
                    nospace: event["data"]["nospace"].as_bool(),
                    reason: text(&event["data"]["reason"]),
                })
            })
            .collect()
    }
}

/// What became of one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullDiskOutcome {
    /// Its name.
    pub disk: String,
    /// What it is: format, bus, cache mode, aio.
    pub what: String,
    /// How the guest asked for durability.
    pub sync: Sync,
    /// Bytes that were free on the host when the writing began.
    pub free: u64,
    /// Records acknowledged until the host ran out of space.
    pub before: u64,
    /// How often QEMU paused the guest.
    pub pauses: u32,
    /// QEMU's events.
    pub events: Vec<RefusedWrite>,
    /// What the guest's writer got from its kernel: number, 0 when it is not known, and words.
    pub error: Option<(i32, String)>,
    /// Records acknowledged after there was space again.
    pub after: u64,
    /// All acknowledged records.
    pub acknowledged: u64,
    /// Acknowledged records that are not on the disk.
    pub lost: u64,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The guest was paused and noticed nothing.
    Paused,
    /// The guest's writer got an error.
    Error,
    /// The host refused a write, but the writer was told of no error.
    Unnoticed,
    /// The host had space for all of it.
    NeverFull,
}

impl FullDiskOutcome {
    /// What the guest saw.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let refused = self
            .events
            .iter()
            .any(|event| event.event == "BLOCK_IO_ERROR");
        match (self.pauses, &self.error) {
            (_, Some(_)) => Ending::Error,
            (1.., None) => Ending::Paused,
            (0, None) if refused => Ending::Unnoticed,
            (0, None) => Ending::NeverFull,
        }
    }

    /// Whether the guest wrote on once there was space.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.after > 0 || self.ending() == Ending::Paused
    }

    /// Whether nothing was lost that the guest was told is durable.
    #[must_use]
    pub fn kept(&self) -> bool {
        self.lost == 0 || self.sync == Sync::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> FullDiskOutcome {
        FullDiskOutcome {
            disk: "d".to_owned(),
            what: "raw".to_owned(),
            sync: Sync::Dsync,
            free: 1 << 20,
            before: 250,
            pauses: 0,
            events: Vec::new(),
            error: None,
            after: 0,
            acknowledged: 250,
            lost: 0,
        }
    }

    #[test]
    fn endings_are_told_apart() {
        let refused = RefusedWrite {
            event: "BLOCK_IO_ERROR".to_owned(),
            action: None,
            nospace: Some(true),
            reason: None,
        };
        let seen = |pauses, errno: Option<i32>, events: &[RefusedWrite]| FullDiskOutcome {
            pauses,
            error: errno.map(|errno| (errno, String::new())),
            events: events.to_vec(),
            ..outcome()
        };
        let one = std::slice::from_ref(&refused);
        assert_eq!(seen(1, None, one).ending(), Ending::Paused);
        assert_eq!(seen(0, Some(5), one).ending(), Ending::Error);
        // Paused, and an error all the same: the guest did notice.
        assert_eq!(seen(1, Some(5), one).ending(), Ending::Error);
        assert_eq!(seen(0, None, one).ending(), Ending::Unnoticed);
        assert_eq!(seen(0, None, &[]).ending(), Ending::NeverFull);
    }

    #[test]
    fn what_was_never_called_durable_may_be_lost() {
        let lost = FullDiskOutcome {
            lost: 3,
            ..outcome()
        };
        assert!(!lost.kept());
        let never = FullDiskOutcome {
            sync: Sync::Never,
            ..lost
        };
        assert!(never.kept() && !never.resumed());
    }
}
