//! Layouts, volumes, requirements and costs.

use super::{assay, fixture, json, text, with_input};
use serde_json::Value;

#[test]
fn one_layout_to_the_byte() {
    for line in fixture("zfs/capacity.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let Some(vdevs) = row["vdevs"].as_array() else {
            continue;
        };
        let specs: Vec<&str> = vdevs
            .iter()
            .map(|vdev| match vdev[0].as_str().unwrap() {
                "" => "single",
                spec => spec,
            })
            .collect();
        if specs.len() > 1 {
            continue;
        }
        let disks: Vec<String> = vdevs[0][1]
            .as_array()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        let ashift = row["ashift"].to_string();
        let mut args = vec!["layout", "--only", specs[0], "--ashift", &ashift];
        args.extend(disks.iter().map(String::as_str));
        let answer = json(&args);
        let plan = &answer["layouts"][0];
        assert_eq!(plan["zpool_size"], row["zpool_size"], "{}", row["name"]);
        let shown = row["zfs_used"].as_u64().unwrap() + row["zfs_avail"].as_u64().unwrap();
        assert_eq!(plan["zfs_usable"].as_u64(), Some(shown), "{}", row["name"]);
    }
}

#[test]
fn blocks_and_volumes_to_the_byte() {
    for line in fixture("zfs/efficiency.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let layout = format!("{}:{}", row["layout"].as_str().unwrap(), row["width"]);
        let disks = format!("{}x20GiB", row["width"]);
        let block = row["blocksize"].to_string();
        let volume = row["volsize"].as_u64().unwrap_or(1 << 25).to_string();
        let answer = json(&[
            "layout", "--only", &layout, &disks, "--block", &block, "--volume", &volume,
        ]);
        let ours = &answer["layouts"][0]["blocks"][0];
        let blocks = row["l0_blocks"].as_u64().unwrap();
        let allocated = ours["allocated"].as_u64().unwrap() * blocks;
        assert_eq!(Some(allocated), row["meas_l0_asize"].as_u64(), "{row}");
        if let Some(reserved) = row["refreservation"].as_str() {
            assert_eq!(ours["refreservation"].to_string(), reserved, "{row}");
        }
    }
}

/// Returns the columns of the table of volumes by block size.
fn volume_rows(text: &str) -> Vec<(String, Vec<String>)> {
    text.lines()
        .skip_while(|line| !line.contains("by volblocksize"))
        .skip(2)
        .take_while(|line| !line.is_empty())
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            (words.next().unwrap(), words.collect())
        })
        .collect()
}

/// Invalid block sizes are refused; a requirement that only a bound meets is met by no file system.
#[test]
fn what_nobody_can_have_is_said() {
    let ask = |words: &[&str]| {
        let out = assay(words);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (out.status.code(), text(out.stdout), text(out.stderr))
    };
    for block in ["8k", "16K", "128k", "12KiB", "1M"] {
        let question = [
            "layout",
            "--only",
            "raidz1",
            "5x7361610440704",
            "--volume",
            "15TiB",
            "--block",
            block,
        ];
        let (code, out, error) = ask(&question);
        assert_eq!(code, Some(2), "{block}: {out}");
        assert!(error.contains("KiB") || error.contains("MiB"), "{error}");
        let (code, out, _) = ask(&["cache", "--memory", "64GiB", "--block", block]);
        assert_eq!(code, Some(2), "{block}: {out}");
    }
    for (version, wanted) in [("0.7", 15.47), ("0.8.1", 15.47), ("2.0.2", 24.47)] {
        let answer = json(&[
            "layout",
            "--only",
            "raidz1",
            "5x7361610440704",
            "--volume",
            "15TiB",
            "--block",
            "8KiB",
            "--zfs",
            version,
        ]);
        let reserved = answer["layouts"][0]["blocks"][0]["refreservation"]
            .as_f64()
            .unwrap()
            / (1u64 << 40) as f64;
        assert!((reserved - wanted).abs() < 0.02, "{version}: {reserved}");
    }
    for (disks, want, nobody) in [
        ("5x4T", "efficiency>=80%", true),
        ("4x4T", "efficiency>=75%", true),
        ("8x4T", "efficiency>=87.5%", true),
        ("6x4T", "efficiency>=80%", false),
        ("6x4T", "efficiency>=70%", false),
    ] {
        let (code, out, _) = ask(&["layout", "--json", disks, "--survive", "1", "--want", want]);
        let answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["nobody_builds"] == true, nobody, "{disks} {want}");
        assert_eq!(code, Some(i32::from(nobody)), "{disks} {want}");
    }
}

/// The question of Proxmox as text, not only in JSON.
#[test]
fn what_a_volume_reserves_stands_in_a_table() {
    let question = [
        "layout", "--only", "raidz2:6", "6x4T", "--volume", "1TiB", "--block", "8KiB", "--block",
        "64KiB",
    ];
    let rows = volume_rows(&text(&question));
    let answer = json(&question);
    let blocks = answer["layouts"][0]["blocks"].as_array().unwrap();
    assert_eq!(rows.len(), blocks.len());
    for ((name, figures), block) in rows.iter().zip(blocks) {
        let reserved = block["refreservation"].as_f64().unwrap() / (1u64 << 40) as f64;
        assert_eq!(figures.last().unwrap(), &format!("{reserved:.2}"), "{name}");
    }
    // Blocks of 8 KiB are two data sectors with two of parity and two of padding: twice a full
    // stripe.
    assert!(rows[0].1.last().unwrap() > &"2.00".to_owned());
    let without = ["layout", "--only", "raidz2:6", "6x4T"];
    assert!(volume_rows(&text(&without)).is_empty());
}

#[test]
fn years_have_a_bill_and_a_loss_says_of_what() {
    let answer = json(&[
        "layout", "--only", "raidz1:4", "4x8T@100", "--years", "4", "--watts", "5", "--kwh",
        "0.25", "--ure", "1e-14",
    ]);
    let plan = &answer["layouts"][0];
    let costs = &plan["costs"];
    let number = |key: &str| costs[key].as_f64().unwrap();
    assert_eq!(number("purchase"), 400.0);
    // 20 W for four years of 8766 hours at 0.25 per kWh.
    assert!((number("power") - 0.02 * 8766.0 * 4.0 * 0.25).abs() < 1e-9);
    let sum = number("purchase") + number("replaced") + number("power");
    assert!((number("total") - sum).abs() < 1e-9 && number("replaced") > 0.0);
    let (pool, blocks) = (
        plan["pool_loss_per_year"].as_f64().unwrap(),
        plan["block_loss_per_year"].as_f64().unwrap(),
    );
    assert!(blocks > 10.0 * pool && pool > 0.0, "{pool} {blocks}");
    let without = assay(&["plan", "layout", "4x8T", "--years", "4"]);
    assert_eq!(without.status.code(), Some(2));
}

#[test]
fn a_special_vdev_that_is_too_small_is_said() {
    let warned = |size: &str| {
        let answer = json(&[
            "layout",
            "--only",
            "raidz2:6",
            "6x4T",
            "--special",
            size,
            "--special",
            size,
        ]);
        let plan = &answer["layouts"][0];
        let pointers = plan["blocks"].as_array().unwrap().iter();
        let at_128k = pointers
            .filter(|block| block["block"] == 128 << 10)
            .map(|block| block["pointers"].as_u64().unwrap())
            .next();
        (plan["warnings"].as_array().unwrap().len(), at_128k.unwrap())
    };
    let (small, needed) = warned("10GiB");
    let (large, _) = warned("100GiB");
    assert_eq!(small, large + 1);
    assert!((10 << 30..100 << 30).contains(&needed), "{needed}");
}

#[test]
fn several_vdevs_and_whole_disks() {
    let answer = json(&["layout", "--only", "3*mirror:2", "6x4000787030016"]);
    assert_eq!(
        answer["layouts"][0]["zpool_size"].as_u64(),
        Some(11_957_188_952_064)
    );
    let whole = json(&[
        "layout",
        "--only",
        "raidz1",
        "--whole-disk",
        "3x4000787030016",
    ]);
    assert_eq!(
        whole["layouts"][0]["zpool_size"].as_u64(),
        Some(11_991_548_690_432)
    );
}

#[test]
fn mutt_disks_in_a_terminal() {
    let out = text(&[
        "layout",
        "4T",
        "2T",
        "2T",
        "1T",
        "750G",
        "--survive",
        "1",
        "--limit",
        "99",
    ]);
    let (told, _) = out.split_once("\n\n").unwrap();
    insta::assert_snapshot!(told, @r"
    5 disks (4 TB, 2 × 2 TB, 1 TB, 750 GB), 9.75 TB = 8.87 TiB raw (sizes given in
    decimal units, T = 10^12).
    ");
    let at = |layout: &str| out.find(layout).unwrap();
    assert!(
        at("btrfs-raid1 ") < at("stripes:2+1"),
        "what can be built comes first"
    );
    assert!(
        out.contains("*! btrfs-raid5"),
        "its state deserves a warning"
    );
    // Limitations of the figures.
    let last = out.rsplit("\n\n").next().unwrap().lines();
    let last: Vec<&str> = last
        .skip_while(|line| !line.starts_with("Assumed"))
        .collect();
    insta::assert_snapshot!(last.join("\n"), @r"
    Assumed: 1.5 % of disks fail a year, 24 h until replaced, rebuild at 150 MB/s
    and 80 % full, 1 unreadable bit in 1e15, others fail 3 times as often while one
    is down.
    The model knows disks that fail at a constant rate, rebuild times and unreadable
    sectors. It does not know your hand on the wrong cable, a firmware that fails a
    whole batch at once, a power supply, a fire, theft, a bug in the file system, or
    the years after the fifth. Real arrays lose data far more often than these
    figures say, mostly for those reasons: use them to compare layouts, never as a
    promise. Redundancy is not a backup.
    ");
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_order_of_disks_does_not_matter() {
    let a = json(&["layout", "4T", "2T", "1T", "750G", "--limit", "1000"]);
    let b = json(&["layout", "750G", "1T", "4T", "2T", "--limit", "1000"]);
    assert_eq!(a["layouts"], b["layouts"]);
    assert!(a["found"].as_u64().unwrap() > 20);
}

#[test]
fn wishes_that_nothing_meets_are_findings() {
    let output = assay(&["layout", "2x1T", "--want", "usable>=5TiB"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout), @"None of 11 layouts meets what is wanted. Relax --want or --survive, or add disks.");
}

#[test]
fn the_published_bill_comes_out() {
    let out = text(&["capacity", "1TiB"]);
    assert!(
        out.contains("21.45 TB") && out.contains("8:1") && out.contains("0.28 TiB"),
        "{out}"
    );
    let bill = &json(&["capacity", "1TiB"])["bill"];
    assert_eq!(bill["total"].as_u64(), Some(21_450_000_000_000));
    let replaced = json(&[
        "capacity", "1TiB", "--factor", "growth=1", "--factor", "backup=1",
    ]);
    assert!(replaced["bill"]["factor"].as_f64().unwrap() < 6.0);
}

#[test]
fn a_pool_as_it_stands_has_its_special_vdev() {
    let asked = &json(&[
        "layout",
        "--only",
        "raidz2",
        "--special",
        "400G",
        "--special",
        "400G",
        "6x4T",
    ])["layouts"][0];
    assert_eq!(asked["layout"], "raidz2:6+special/mirror:2");
    assert_eq!(asked["vdevs"].as_array().unwrap().len(), 2);
    let mut said = String::new();
    for args in [
        vec!["layout", "--ashift", "17", "6x4T"],
        vec!["layout", "--ure", "1", "6x4T"],
        vec!["layout", "--only", "md-raid6", "--special", "1T", "6x4T"],
    ] {
        let output = with_input(&args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        said += &String::from_utf8_lossy(&output.stderr);
    }
    insta::assert_snapshot!(said, @r"
    error: invalid value '17' for '--ashift <N>': 17 is not in 9..=16

    For more information, try '--help'.
    assay: unreadable bits per bit 1: must lie between 0 and 0.000001
    assay: layout `md-raid6`: only ZFS has special vdevs: leave --special out
    ");
}
