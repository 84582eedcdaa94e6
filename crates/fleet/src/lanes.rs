//! Selects the next machine to check. A bastion (ssh jump host) and the machines behind it share a lane with a limited
//! number of sessions. The reason is that sshd drops connections while too many others log in (`MaxStartups 10:30:100`,
//! sshd_config(5)).

use std::collections::{HashMap, VecDeque};

/// Maximum number of simultaneous sessions per lane. It is below ten, the number from which sshd drops connections.
pub const IN_LANE: usize = 8;

/// Machines that have not been checked yet, each with its lane.
#[derive(Debug)]
pub struct Lanes {
    waiting: VecDeque<(usize, Option<String>)>,
    busy: HashMap<String, usize>,
}

impl Lanes {
    /// Creates the queue of machines, in the order of `lanes`. `None` is a machine without a lane, for which the number
    /// of sessions is not limited.
    pub fn new(lanes: impl IntoIterator<Item = Option<String>>) -> Self {
        Self {
            waiting: lanes.into_iter().enumerate().collect(),
            busy: HashMap::new(),
        }
    }

    /// Returns the first waiting machine for which a session may start, with its lane.
    pub fn take(&mut self) -> Option<(usize, Option<String>)> {
        let free = |lane: &Option<String>| {
            let busy = lane.as_ref().and_then(|lane| self.busy.get(lane));
            busy.is_none_or(|busy| *busy < IN_LANE)
        };
        let at = self.waiting.iter().position(|(_, lane)| free(lane))?;
        let found = self.waiting.remove(at)?;
        if let Some(lane) = &found.1 {
            *self.busy.entry(lane.clone()).or_default() += 1;
        }
        Some(found)
    }

    /// Records the end of a session in this lane.
    pub fn done(&mut self, lane: Option<&String>) {
        if let Some(busy) = lane.and_then(|lane| self.busy.get_mut(lane)) {
            *busy = busy.saturating_sub(1);
        }
    }

    /// Returns whether no machine is waiting.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_are_served_and_no_lane_is_full(
            lanes in proptest::collection::vec(proptest::option::of(0..3u8), 0..60),
            ends in proptest::collection::vec(any::<proptest::sample::Index>(), 200),
        ) {
            let names: Vec<Option<String>> = lanes.iter().map(|lane| lane.map(|lane| lane.to_string())).collect();
            let mut all = Lanes::new(names.clone());
            let (mut open, mut served, mut ends) = (Vec::new(), Vec::new(), ends.into_iter());
            loop {
                while let Some((at, lane)) = all.take() {
                    served.push(at);
                    open.push(lane);
                    for name in names.iter().flatten() {
                        let busy = open.iter().filter(|lane| lane.as_ref() == Some(name)).count();
                        prop_assert!(busy <= IN_LANE);
                    }
                }
                if open.is_empty() {
                    break;
                }
                let at = ends.next().map_or(0, |index| index.index(open.len()));
                let lane = open.swap_remove(at);
                all.done(lane.as_ref());
            }
            prop_assert!(all.is_empty());
            served.sort_unstable();
            prop_assert_eq!(served, (0..lanes.len()).collect::<Vec<_>>());
        }
    }
}
