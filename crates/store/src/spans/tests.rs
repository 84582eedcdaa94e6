use super::*;
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn look<'a>(second: i64, scope: &'a str, facts: &[(&str, &str)]) -> SpanSurvey<'a> {
    let seen = facts.iter().map(|(key, value)| {
        let seen = match *value {
            UNREAD => SpanValue::Unread,
            value => SpanValue::Value(format!("\"{value}\"")),
        };
        ((About::Fact, (*key).to_owned()), seen)
    });
    SpanSurvey {
        host: "web1",
        at: at(second),
        scope,
        seen: seen.collect(),
        lost: Vec::new(),
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.db")).unwrap();
    (dir, store)
}

/// Formats the history, each row as `key=value since..seen`. A change also contains the previous value.
fn told(store: &Store, since: Option<i64>) -> Vec<String> {
    let ask = Ask {
        since: since.map(at),
        most: 100,
        ..Ask::default()
    };
    let second = |time: Timestamp| time.as_second() - 1_800_000_000;
    let shown = |value: &Option<serde_json::Value>| {
        value.as_ref().map_or("-".to_owned(), |value| {
            value.as_str().unwrap_or("?").to_owned()
        })
    };
    store
        .spans(&ask)
        .unwrap()
        .iter()
        .map(|span| {
            let before = match span.changed {
                true => format!(
                    " was {} at {}",
                    shown(&span.before),
                    second(span.after.unwrap())
                ),
                false => String::new(),
            };
            let value = shown(&span.value);
            format!(
                "{}={value} {}..{}{before}",
                span.key,
                second(span.since),
                second(span.seen)
            )
        })
        .collect()
}

#[test]
fn a_value_is_written_when_it_changes() {
    let (_dir, mut store) = store();
    let looks = [(0, "1"), (10, "1"), (20, "2"), (30, "2"), (40, "1")];
    let changed = looks.map(|(second, value)| {
        store
            .look(&look(second, "s", &[("a", value), ("b", "x")]))
            .unwrap()
    });
    assert_eq!(changed, [0, 0, 1, 0, 1]);
    assert_eq!(told(&store, None), ["a=1 40..40 was 2 at 30", "b=x 0..40"]);
    assert_eq!(
        told(&store, Some(5)),
        ["a=1 40..40 was 2 at 30", "a=2 20..30 was 1 at 10"]
    );
    // The same look again, or a late look, adds nothing.
    assert_eq!(store.look(&look(40, "s", &[("a", "9")])).unwrap(), 0);
    assert_eq!(store.look(&look(35, "s", &[("a", "9")])).unwrap(), 0);
    assert_eq!(told(&store, Some(5)).len(), 2);
}

#[test]
fn what_cannot_be_read_is_neither_a_change_nor_an_end() {
    let (_dir, mut store) = store();
    for (second, value) in [(0, "1"), (10, UNREAD), (20, "1"), (30, UNREAD), (40, "2")] {
        store
            .look(&look(second, "s", &[("a", value), ("c", UNREAD)]))
            .unwrap();
    }
    assert_eq!(told(&store, Some(0)), ["a=2 40..40 was 1 at 20"]);
    // As far as known, it existed before.
    store
        .look(&look(50, "s", &[("a", "2"), ("c", "3")]))
        .unwrap();
    assert_eq!(told(&store, Some(0)).len(), 1);
    assert_eq!(told(&store, None), ["c=3 50..50", "a=2 40..50 was 1 at 20"]);
}

#[test]
fn what_is_gone_is_gone_only_by_the_same_rules() {
    let (_dir, mut store) = store();
    store
        .look(&look(0, "s", &[("a", "1"), ("b", "1")]))
        .unwrap();
    // Other rules do not check b, but check c.
    store
        .look(&look(10, "t", &[("a", "1"), ("c", "1")]))
        .unwrap();
    assert_eq!(told(&store, Some(-1)), [""; 0]);
    store.look(&look(20, "t", &[("a", "1")])).unwrap();
    assert_eq!(told(&store, Some(-1)), ["c=- 20..20 was 1 at 10"]);
    store
        .look(&look(30, "t", &[("a", "1"), ("d", "1")]))
        .unwrap();
    assert_eq!(told(&store, Some(25)), ["d=1 30..30 was - at 20"]);
    store
        .look(&look(40, "t", &[("a", "1"), ("d", "1"), ("b", "1")]))
        .unwrap();
    assert_eq!(told(&store, Some(35)), [""; 0], "b was so all the time");
}

#[test]
fn a_finding_whose_rule_could_not_be_asked_stands() {
    let (_dir, mut store) = store();
    let key = (About::Finding, "open-port@tcp/25".to_owned());
    let mut first = look(0, "s", &[]);
    first
        .seen
        .insert(key, SpanValue::Value("\"high\"".to_owned()));
    store.look(&first).unwrap();
    let mut second = look(10, "s", &[]);
    second.lost.push("open-port".to_owned());
    store.look(&second).unwrap();
    assert_eq!(told(&store, None), ["open-port@tcp/25=high 0..0"]);
    store.look(&look(20, "s", &[])).unwrap();
    assert_eq!(
        told(&store, Some(5)),
        ["open-port@tcp/25=- 20..20 was high at 0"]
    );
}

#[test]
fn what_is_over_goes_after_its_time() {
    let (_dir, mut store) = store();
    assert_eq!(store.days().unwrap(), DAYS);
    store.keep_days(1).unwrap();
    for (day, value) in ["1", "2", "3", "4"].iter().enumerate() {
        let second = 86_400 * day as i64;
        store
            .look(&look(second, "s", &[("a", value), ("b", "x")]))
            .unwrap();
    }
    assert_eq!(told(&store, Some(-1)).len(), 1);
    assert_eq!(told(&store, None).len(), 2, "what is so stays, however old");
    assert!(store.forget_host("web1").unwrap());
    assert_eq!(told(&store, None).len(), 0);
}

fn everything(store: &Store) -> (Vec<Host>, Vec<Row>) {
    let hosts = store.sql.hosts().unwrap();
    let rows = hosts
        .iter()
        .flat_map(|host| store.sql.rows(&host.name, false).unwrap());
    (hosts.clone(), rows.collect())
}

/// A value is unreadable at the last survey. The store that made the survey, and a store into which it was merged, must
/// have the same row.
#[test]
fn what_was_never_read_merges_once() {
    let (_from, mut from) = store();
    from.look(&look(0, "s", &[("a", UNREAD), ("b", "1")]))
        .unwrap();
    let (_to, mut to) = store();
    let merged = crate::merge(&from, &mut to, &mut |_, _| true).unwrap();
    assert_eq!(merged.new, 1);
    assert_eq!(everything(&from), everything(&to));
    let merged = crate::merge(&from, &mut to, &mut |_, _| true).unwrap();
    assert_eq!((merged.new, merged.grown), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Two stores survey one machine alternately. Both directions of a merge must give the same result, and a second
    /// merge must add nothing. The times at which a store first or last saw a value must be preserved.
    #[test]
    fn two_hubs_become_one(looks in proptest::collection::vec((0usize..2, 0usize..3, 0usize..3), 1..20)) {
        let values = ["1", "2", UNREAD];
        let (_one, mut one) = store();
        let (_two, mut two) = store();
        for (number, (hub, a, b)) in looks.iter().enumerate() {
            let look = look(10 * number as i64, "s", &[("a", values[*a]), ("b", values[b % 2])]);
            let hub = if *hub == 0 { &mut one } else { &mut two };
            hub.look(&look).unwrap();
        }
        let (_left, mut left) = store();
        let (_right, mut right) = store();
        for (target, order) in [(&mut left, [&one, &two]), (&mut right, [&two, &one])] {
            for from in order {
                crate::merge(from, target, &mut |_, _| true).unwrap();
            }
        }
        prop_assert_eq!(everything(&left), everything(&right));
        let before = everything(&left);
        for from in [&one, &two, &right] {
            let merged = crate::merge(from, &mut left, &mut |_, _| true).unwrap();
            prop_assert_eq!((merged.new, merged.grown), (0, 0));
        }
        prop_assert_eq!(&before, &everything(&left));
        for hub in [&one, &two] {
            let (hosts, rows) = everything(hub);
            let known = |row: &&Row| row.value.as_deref() != Some(UNREAD);
            for row in rows.iter().filter(known) {
                for second in [row.since, row.seen.unwrap_or(hosts[0].last)] {
                    let mut rows = before.1.iter().filter(|other| other.key == row.key && other.since <= second);
                    let value = rows.next_back().and_then(|row| row.value.clone());
                    prop_assert_eq!(&value, &row.value, "{} {}: {:?}", row.key.1, second, before.1);
                }
            }
        }
    }
}
