//! Validates the `[acts]` table of a page without a machine. The types of the table are in `assay_model::advice`; the
//! parser of the front matter rejects unknown names.

use crate::check::{Found, found};
use assay_model::advice::{ActsOn, Advice, Between, ToggleCost};

/// Checks that the table is consistent, and that it fits the page's trial.
pub(crate) fn check(advice: &Advice, acts: &ActsOn) -> Result<(), Found> {
    let Some(trial) = &advice.trial else {
        return Err(found(
            &["acts"],
            "`[acts]` describes the change of a trial, and the page has no `[trial]`",
        ));
    };
    for (key, empty) in [
        ("on", acts.on.is_empty()),
        ("relieves", acts.relieves.is_empty()),
    ] {
        if empty {
            return Err(found(&["acts", key], format!("`acts.{key}` names nothing")));
        }
    }
    if acts
        .never
        .as_deref()
        .is_some_and(|why| why.trim().is_empty())
    {
        return Err(found(
            &["acts", "never"],
            "`acts.never` gives the reason why the change is never kept",
        ));
    }
    if acts.excludes.contains(&advice.id) {
        return Err(found(&["acts", "excludes"], "a page cannot exclude itself"));
    }
    toggle(acts.toggle, trial)?;
    ranges(acts)?;
    prior(acts)
}

/// Checks that the declared cost of switching (live, reload, restart, remount …) is possible for the kind of change.
fn toggle(toggle: ToggleCost, trial: &toml::Table) -> Result<(), Found> {
    use ToggleCost as T;
    let text = |keys: &[&str]| {
        let mut table = trial;
        let (last, above) = keys.split_last()?;
        for key in above {
            table = table.get(*key)?.as_table()?;
        }
        table.get(*last)?.as_str()
    };
    let (what, allowed): (_, &[T]) = match text(&["change", "kind"]) {
        Some("side-by-side") => ("two things side by side", &[T::Recreate]),
        Some("set") => match text(&["change", "setting", "kind"]) {
            Some("mount-option") => ("a mount option", &[T::Remount]),
            Some("config" | "config-keys") => {
                ("a configuration file", &[T::Live, T::Reload, T::Restart])
            }
            Some("command") => ("commands", &[T::Live, T::Remount, T::Reload, T::Restart]),
            _ => ("a setting of the kernel", &[T::Live, T::Reboot]),
        },
        _ => return Ok(()),
    };
    if allowed.contains(&toggle) {
        return Ok(());
    }
    let names: Vec<String> = allowed
        .iter()
        .map(|one| format!("`{}`", one.name()))
        .collect();
    Err(found(
        &["acts", "toggle"],
        format!(
            "`{}` does not fit the trial, which changes {what}: use {}",
            toggle.name(),
            names.join(" or ")
        ),
    ))
}

fn ranges(acts: &ActsOn) -> Result<(), Found> {
    fn refuse<T: PartialOrd + Copy>(key: &str, range: Option<&Between<T>>) -> Result<(), Found> {
        match range {
            Some(range) if range.is_empty_or_open() => Err(found(
                &["acts", "moves", key],
                format!("`acts.moves.{key}` has `from`, `to` or both, in this order"),
            )),
            _ => Ok(()),
        }
    }
    refuse("block_size", acts.moves.block_size.as_ref())?;
    refuse("in_flight", acts.moves.in_flight.as_ref())
}

fn prior(acts: &ActsOn) -> Result<(), Found> {
    let prior = &acts.prior;
    let [low, high] = prior.gain;
    let wrong = match () {
        () if !(0.0..=1.0).contains(&prior.helps) => {
            Some(("helps", "`acts.prior.helps` is a probability from 0 to 1"))
        }
        () if !(low >= 0.0 && low <= high && high.is_finite()) => Some((
            "gain",
            "`acts.prior.gain` is the smallest and the largest usual gain: [0.03, 0.25] is 3 to 25 %",
        )),
        () if prior.from.trim().is_empty() => Some((
            "from",
            "`acts.prior.from` says where the expectation comes from",
        )),
        () => None,
    };
    match wrong {
        Some((key, message)) => Err(found(&["acts", "prior", key], message)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::check::tests::PAGE;
    use crate::page;

    const ACTS: &str = r#"[acts]
on = ["memory"]
relieves = ["memory", "device"]
loads = ["fio"]
toggle = "live"
excludes = ["zswap"]

[acts.moves]
operations = ["read"]
metrics = ["p99"]
cache = "buffered"
block_size = { to = "64KiB" }

[acts.prior]
helps = 0.15
gain = [0.03, 0.25]
from = "nobody"

[trial]
"#;

    fn message(from: &str, to: &str) -> String {
        let acts = ACTS.replacen(from, to, 1);
        assert_ne!(acts, ACTS, "{from}");
        let text = PAGE.replacen("[trial]\n", &acts, 1);
        page::parse("a/b.md", &text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_table() {
        let advice = page::parse("a/b.md", &PAGE.replacen("[trial]\n", ACTS, 1)).unwrap();
        let acts = advice.acts.unwrap();
        assert_eq!(acts.moves.block_size.unwrap().to.unwrap().0, 65536);
        assert_eq!(acts.excludes, ["zswap"]);
        assert!(acts.moves.in_flight.is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let first = PAGE.lines().position(|line| line == "[trial]").unwrap() + 1;
        for (from, to, line, expected) in [
            ("[\"memory\"]", "[\"memry\"]", 1, "`memry`"),
            ("[\"memory\"]", "[]", 1, "`acts.on`"),
            ("\"device\"]", "\"disk\"]", 2, "unknown variant `disk`"),
            ("loads =", "load =", 3, "did you mean `loads`?"),
            ("\"live\"", "\"remount\"", 4, "`live` or `reboot`"),
            ("\"live\"", "\"cheap\"", 4, "unknown variant `cheap`"),
            ("[\"zswap\"]", "[\"b\"]", 5, "itself"),
            ("[\"p99\"]", "[\"p98\"]", 9, "p98"),
            (
                "to = \"64KiB\"",
                "from = \"1MiB\", to = \"64KiB\"",
                11,
                "in this order",
            ),
            ("0.15", "1.5", 14, "probability"),
            (
                "[0.03, 0.25]",
                "[0.25, 0.03]",
                15,
                "smallest and the largest",
            ),
            ("\"nobody\"", "\"\"", 16, "where the expectation comes from"),
        ] {
            let found = message(from, to);
            let place = format!("a/b.md:{}: ", first + line);
            assert!(
                found.starts_with(&place),
                "{from} -> {to}: {found}, not at {place}"
            );
            assert!(found.contains(expected), "{from} -> {to}: {found}");
        }
        let without = PAGE.replacen("[trial]\n", ACTS, 1);
        let (head, tail) = without.split_once("[trial]").unwrap();
        let page = format!("{}+++{}", head, tail.split_once("+++").unwrap().1);
        let found = page::parse("a/b.md", &page).unwrap_err().to_string();
        assert!(found.contains("has no `[trial]`"), "{found}");
    }
}
