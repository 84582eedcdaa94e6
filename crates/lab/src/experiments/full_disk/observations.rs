//! Records what happened when the host ran out of space, and interprets it.

use crate::Sync;
use serde::Serialize;
use serde_json::Value;

/// An event of QEMU: a write failed, or the guest was paused or resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Event")]
pub struct RefusedWrite {
    /// Name of the event: `BLOCK_IO_ERROR`, `STOP` or `RESUME`.
    pub event: String,
    /// How QEMU reacted: `report`, `stop` or `ignore`.
    pub action: Option<String>,
    /// Whether QEMU recognised that the host has no space; `None` if the event does not contain this.
    pub nospace: Option<bool>,
    /// Text of the error that the host returned.
    pub reason: Option<String>,
}

impl RefusedWrite {
    /// Selects the events about failed writes and pauses from all events of QEMU (qemu-qmp-ref(7)).
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

/// Outcome of the test for one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullDiskOutcome {
    /// Name of the disk that was tested.
    pub disk: String,
    /// Format, bus, cache mode and I/O method of the disk, as text.
    pub what: String,
    /// How the guest requested durability.
    pub sync: Sync,
    /// Free bytes on the host when writing started.
    pub free: u64,
    /// Number of records acknowledged before the host ran out of space.
    pub before: u64,
    /// Number of times that QEMU paused the guest.
    pub pauses: u32,
    /// Events of QEMU about failed writes and pauses.
    pub events: Vec<RefusedWrite>,
    /// Error that the writer in the guest got: errno (0 if unknown) and text.
    pub error: Option<(i32, String)>,
    /// Number of records acknowledged after space was freed.
    pub after: u64,
    /// Total number of acknowledged records.
    pub acknowledged: u64,
    /// Number of acknowledged records that are missing.
    pub lost: u64,
}

/// How the guest experienced the lack of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The guest was paused, and its writer got no error.
    Paused,
    /// The guest's writer got an error.
    Error,
    /// The host refused a write, but the writer got no error.
    Unnoticed,
    /// The host never ran out of space.
    NeverFull,
}

impl FullDiskOutcome {
    /// Returns how the test ended for this disk.
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

    /// Whether the guest continued to write after space was freed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.after > 0 || self.ending() == Ending::Paused
    }

    /// Whether all acknowledged records still exist.
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
        // Paused, and still an error: the guest noticed.
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
