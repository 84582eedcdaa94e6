//! Slots whose length is chosen from the noise.

use super::*;

/// Without a length of the user the noise determines it, in the plan, in every sample and in the
/// report; a user's length is fixed.
#[test]
fn the_noise_decides_how_long_slots_are() {
    let home = Home::new();
    let own = Own::new("0.02");
    let page = own.text().replace(
        "slot_seconds = 0.1",
        "slot_seconds = 0.8\nslot_seconds_min = 0.2",
    );
    fs::write(own.page(), page).unwrap();
    let file = own.page();
    let words = ["trial", text(&file), "--pairs", "2", "--yes", "--json"];
    // An A/A trial measures no noise first, because it is the measurement of noise.
    let ran = home.assay(&[&words[..], &["--aa"]].concat());
    let plan = json(&ran)["trial"]["plan"].clone();
    assert_eq!(plan["slot"], 800_000_000, "{plan:#}");
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let found = json(&ran);
    let slot = found["trial"]["plan"]["slot"].as_u64().unwrap();
    assert!((200_000_000..=800_000_000).contains(&slot), "{slot}");
    let remarks = found["trial"]["remarks"].to_string();
    assert!(remarks.contains("slots of"), "{remarks}");
    assert_eq!(own.value(), "0.02");
    let named = ["--slot", "300ms"];
    let ran = home.assay(&[&words[..], &named].concat());
    let plan = json(&ran)["trial"]["plan"].clone();
    assert_eq!(plan["slot"], 300_000_000, "{plan:#}");
    assert!(plan["slot_min"].is_null(), "{plan:#}");
}
