use super::*;
use crate::candidate::{Acts, Before, OperationShare};
use crate::planted;
use assay_model::Bytes;
use assay_model::advice::MovedOperation;

fn reason(candidate: &Candidate) -> Option<LeftOut> {
    let allowed = Allowed {
        never: vec!["vm.swappiness".into(), "/etc/postgresql/**".into()],
        because: "agreed with the DBA".into(),
        ..Allowed::default()
    };
    leave_out(
        candidate,
        &allowed,
        &planted::load(),
        "p99".parse().unwrap(),
        0.03,
    )
}

/// Applies `change` to a candidate that would be tried, and returns why it is then left out.
fn left_out(change: impl Fn(&mut Candidate)) -> LeftOut {
    let mut candidate = planted::candidate("x");
    assert_eq!(reason(&candidate), None);
    change(&mut candidate);
    reason(&candidate).expect("a reason")
}

#[test]
fn each_reason_is_found() {
    use LeftOut as L;
    let does_not_apply = left_out(|c| {
        c.state = Applicability::DoesNotApply {
            why: "no disk".into(),
        }
    });
    assert!(matches!(does_not_apply, L::DoesNotApply { .. }));
    let already = left_out(|c| {
        c.state = Applicability::AlreadySo {
            value: "none".into(),
        }
    });
    assert!(matches!(already, L::AlreadySo { .. }));
    for setting in ["vm.swappiness", "/etc/postgresql/16/main/postgresql.conf"] {
        let never = left_out(|c| c.touches = vec![setting.into()]);
        assert!(matches!(never, L::Never { .. }), "{never:?}");
    }
    for level in [RiskLevel::Service, RiskLevel::Lockout, RiskLevel::DataLoss] {
        assert!(matches!(left_out(|c| c.risk = level), L::Risk { .. }));
    }
    assert!(matches!(
        left_out(|c| c.toggle = Toggle::Reboot),
        L::NeedsReboot
    ));
    let never_kept = left_out(|c| c.never_kept = Some("loses acknowledged writes".into()));
    assert!(matches!(never_kept, L::NeverKept { .. }));
    for standing in [Standing::Wrong, Standing::Obsolete, Standing::Dangerous] {
        assert!(matches!(
            left_out(|c| c.literature = standing),
            L::Literature { .. }
        ));
    }
    let loads = left_out(|c| c.acts.loads = vec!["http".into()]);
    assert!(matches!(loads, L::OtherLoad { .. }));
    let figures = left_out(|c| c.acts.moves.operations = vec![MovedOperation::Read]);
    assert!(matches!(figures, L::OtherFigure { .. }));
    assert!(matches!(
        left_out(|c| c.acts.moves.cache = Some(CachePath::Buffered)),
        L::CacheOnly
    ));
    for shape in [
        |moves: &mut MovedOperations| moves.durable = Some(false),
        |moves: &mut MovedOperations| moves.access = Some(AccessOrder::Sequential),
        |moves: &mut MovedOperations| {
            moves.block_size = Some(Between {
                from: Some(Bytes(65536)),
                to: None,
            });
        },
        |moves: &mut MovedOperations| {
            moves.in_flight = Some(Between {
                from: Some(2),
                to: None,
            });
        },
    ] {
        let other = left_out(|c| shape(&mut c.acts.moves));
        assert!(matches!(other, L::OtherOperations { .. }), "{other:?}");
    }
    let metrics = left_out(|c| c.acts.moves.metrics = vec!["iops".parse().unwrap()]);
    assert!(matches!(metrics, L::OtherFigure { .. }));
    let before = left_out(|c| {
        c.before = Some(Before {
            verdict: Verdict::Worse,
            when: "session 3".into(),
        });
    });
    assert!(matches!(before, L::MeasuredBefore { .. }));
}

#[test]
fn what_holds_under_every_state_of_the_machine_comes_before_what_is_missing_here() {
    let missing = |c: &mut Candidate| {
        c.state = Applicability::DoesNotApply {
            why: "no server answers".into(),
        };
        c.risk = RiskLevel::Service;
    };
    let other = left_out(|c| {
        missing(c);
        c.acts.loads = vec!["http".into()];
    });
    assert!(matches!(other, LeftOut::OtherLoad { .. }), "{other:?}");
    let wrong = left_out(|c| {
        missing(c);
        c.literature = Standing::Wrong;
    });
    assert!(matches!(wrong, LeftOut::Literature { .. }), "{wrong:?}");
    // And what is missing before a risk that nobody would have to take.
    assert!(matches!(left_out(missing), LeftOut::DoesNotApply { .. }));
}

#[test]
fn the_ceiling_shows_its_arithmetic() {
    let share = |takes| OperationShare {
        part: "encryption".into(),
        takes: Nanos(takes),
        of: Nanos(412_000),
    };
    let ceiling = left_out(|c| c.share = Some(share(11_000)));
    let LeftOut::Ceiling { gain, .. } = &ceiling else {
        panic!("{ceiling:?}")
    };
    assert!((gain - 11.0 / 401.0).abs() < 1e-12);
    let text = ceiling.to_string();
    assert!(
        text.contains("2.7 %") && text.contains("encryption"),
        "{text}"
    );
    let mut candidate = planted::candidate("x");
    candidate.share = Some(share(200_000));
    assert_eq!(reason(&candidate), None);
    candidate.share = Some(share(412_000));
    assert_eq!(reason(&candidate), None);
}

#[test]
fn what_relieves_the_limit_comes_first() {
    use assay_model::result::LimitKind;
    let mut candidate = planted::candidate("x");
    candidate.acts = Acts {
        relieves: vec![LimitKind::Flush],
        ..Acts::default()
    };
    let [fits, unknown, other] = [Some(LimitKind::Flush), None, Some(LimitKind::MachineCpu)]
        .map(|limit| candidate.worth(limit));
    assert!(fits > unknown && unknown > other);
}
