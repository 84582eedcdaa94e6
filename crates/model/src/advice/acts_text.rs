//! Formats the `[acts]` table of a page for the terminal and the book.

use super::acts::{AccessOrder, ActsOn, Between, CachePath, MovedOperations, ToggleCost};
use std::fmt::Display;

impl ActsOn {
    /// Returns pairs of label and text in the order of the table: parts and limits, operations, cost of switching,
    /// exclusions, expected gain, and the reason why the change is never kept.
    #[must_use]
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let parts = join(self.on.iter().map(|part| part.name()));
        let limits = join(self.relieves.iter().map(|limit| limit.name()));
        let mut rows = vec![("Acts on", format!("{parts}; relieves the limit {limits}"))];
        let mut moved = describe_operations(&self.moves);
        if !self.loads.is_empty() {
            let loads = join(self.loads.iter().map(|load| load.name()));
            moved.push(format!("loads {loads}"));
        }
        if !moved.is_empty() {
            rows.push(("Moves", moved.join("; ")));
        }
        rows.push(("Switched", describe_toggle(self.toggle).to_owned()));
        if !self.excludes.is_empty() {
            rows.push(("Not beside", self.excludes.join(", ")));
        }
        let prior = &self.prior;
        let gain = prior.gain.map(|gain| gain * 100.0);
        rows.push((
            "Expected",
            format!(
                "helps with a probability of {:.0} %, then by {:.0} to {:.0} %: {}",
                prior.helps * 100.0,
                gain[0],
                gain[1],
                prior.from
            ),
        ));
        if let Some(why) = &self.never {
            rows.push(("Never kept", why.clone()));
        }
        rows
    }
}

fn describe_toggle(cost: ToggleCost) -> &'static str {
    match cost {
        ToggleCost::Live => "in the running kernel, at once",
        ToggleCost::Remount => "by a remount",
        ToggleCost::Reload => "by a reload of the service",
        ToggleCost::Restart => "by a restart of the service",
        ToggleCost::Recreate => "not at all: both sides are made anew",
        ToggleCost::Reboot => "at the next boot",
    }
}

fn describe_operations(moves: &MovedOperations) -> Vec<String> {
    let mut texts = Vec::new();
    if !moves.operations.is_empty() {
        let names = moves.operations.iter().map(|one| one.name());
        texts.push(format!("operations {}", join(names)));
    }
    texts.extend(moves.cache.map(|cache| {
        match cache {
            CachePath::Buffered => "through the page cache",
            CachePath::Direct => "past the page cache",
        }
        .to_owned()
    }));
    texts.extend(moves.access.map(|order| {
        match order {
            AccessOrder::Random => "random",
            AccessOrder::Sequential => "sequential",
        }
        .to_owned()
    }));
    texts.extend(moves.durable.map(|durable| {
        match durable {
            true => "flushed",
            false => "not flushed",
        }
        .to_owned()
    }));
    texts.extend(
        moves
            .block_size
            .map(|range| describe_range("blocks", &range)),
    );
    texts.extend(
        moves
            .in_flight
            .map(|range| describe_range("in flight", &range)),
    );
    if !moves.metrics.is_empty() {
        let metrics: Vec<String> = moves.metrics.iter().map(ToString::to_string).collect();
        texts.push(format!("figures {}", metrics.join(", ")));
    }
    texts
}

fn describe_range<T: Display>(what: &str, range: &Between<T>) -> String {
    match (&range.from, &range.to) {
        (Some(from), Some(to)) => format!("{what} from {from} to {to}"),
        (Some(from), None) => format!("{what} from {from}"),
        (None, Some(to)) => format!("{what} up to {to}"),
        (None, None) => what.to_owned(),
    }
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
