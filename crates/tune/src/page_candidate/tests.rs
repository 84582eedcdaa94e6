use super::*;
use crate::left_out::{Allowed, LeftOut, leave_out};
use crate::planted;
use assay_model::advice::RiskLevel;
use assay_model::change::{CacheMode, ImageFormat};
use serde_json::json;

fn page(acts: serde_json::Value) -> Advice {
    let mut advice: Advice = serde_json::from_value(json!({
        "id": "swappiness", "domain": "kernel", "title": "Swap less", "statement": "s", "predicts": "p",
        "source": { "who": "w", "claimed": "c" }, "risk": { "level": "low", "text": "t" },
        "literature": { "standing": "conditional", "text": "t", "references": ["r"] },
    }))
    .unwrap();
    advice.acts = serde_json::from_value(acts).unwrap();
    advice
}

fn spec(change: serde_json::Value) -> TrialSpec {
    serde_json::from_value(json!({
        "target": "directory", "metric": "p99", "load": { "kind": "null" }, "change": change,
    }))
    .unwrap()
}

fn sysctl() -> TrialSpec {
    let setting = json!({ "kind": "sysctl", "key": "vm.swappiness" });
    spec(json!({ "kind": "set", "value": "10", "setting": setting }))
}

#[test]
fn a_page_becomes_a_candidate() {
    let advice = page(json!({
        "on": ["memory"], "relieves": ["memory"], "loads": ["fio"], "toggle": "live",
        "excludes": ["zswap"], "moves": { "operations": ["read"], "cache": "buffered" },
        "prior": { "helps": 0.2, "gain": [0.0, 0.21], "from": "f" },
    }));
    let candidate = candidate_of_page("swappiness=10", &advice, &sysctl(), Applicability::Applies);
    assert_eq!(candidate.touches, ["vm.swappiness"]);
    assert_eq!(candidate.toggle, Toggle::Cheap);
    assert_eq!(candidate.acts.loads, ["fio"]);
    assert!(
        (candidate.prior.gain - 0.1).abs() < 1e-12,
        "{:?}",
        candidate.prior
    );
    let mut zswap = planted::candidate("zswap=N");
    assert!(candidate.collides(&zswap));
    zswap.id = "zswap-shrinker".into();
    assert!(!candidate.collides(&zswap));
    let reason = leave_out(
        &candidate,
        &Allowed::default(),
        &planted::load(),
        "p99".parse().unwrap(),
        0.03,
    );
    assert_eq!(reason, Some(LeftOut::CacheOnly));
}

#[test]
fn a_page_without_the_table_acts_on_anything() {
    let candidate = candidate_of_page("x", &page(json!(null)), &sysctl(), Applicability::Applies);
    assert_eq!(candidate.acts, Acts::default());
    assert_eq!(candidate.toggle, Toggle::Cheap);
    assert_eq!(candidate.never_kept, None);
    assert_eq!(candidate.risk, RiskLevel::Low);
}

#[test]
fn what_is_only_compared_is_never_kept() {
    let image = |cache: CacheMode| {
        serde_json::to_value(Arm::Image(ImageArm {
            format: ImageFormat::Raw,
            options: BTreeMap::new(),
            cache,
            aio: assay_model::change::Aio::default(),
            luks: false,
            filled: true,
        }))
        .unwrap()
    };
    let sides = json!({
        "kind": "side-by-side", "now": image(CacheMode::None), "changed": image(CacheMode::Writeback),
    });
    let candidate = candidate_of_page(
        "x",
        &page(json!(null)),
        &spec(sides),
        Applicability::Applies,
    );
    assert_eq!(candidate.touches, ["image/cache"]);
    assert_eq!(candidate.toggle, Toggle::Remake);
    assert!(candidate.never_kept.is_some());
}

#[test]
fn settings_that_collide_share_a_name() {
    let names = |setting: serde_json::Value| {
        touched_settings(
            &serde_json::from_value(json!({ "kind": "set", "value": "1", "setting": setting }))
                .unwrap(),
        )
    };
    let one = names(
        json!({ "kind": "mount-option", "mountpoint": "/srv", "choices": ["relatime", "noatime"] }),
    );
    let other =
        names(json!({ "kind": "mount-option", "mountpoint": "/srv", "choices": ["", "noatime"] }));
    assert!(
        one.iter().any(|name| other.contains(name)),
        "{one:?} {other:?}"
    );
    let file = "/etc/nginx/nginx.conf";
    let key = json!({ "section": ["http"], "key": "sendfile" });
    assert_eq!(
        names(
            json!({ "kind": "config", "file": file, "language": "nginx", "section": ["http"], "key": "sendfile" })
        ),
        names(json!({ "kind": "config-keys", "file": file, "language": "nginx", "keys": [key] })),
    );
}
