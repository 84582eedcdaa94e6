//! `assay plan` as a user runs it, and against a real btrfs on loop devices.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("plan")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(args: &[&str]) -> String {
    let output = assay(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    let mut args = args.to_vec();
    args.push("--json");
    serde_json::from_str(&text(&args)).unwrap()
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../planner/fixtures")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

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

/// The figure of each column of the table of volumes, by block size.
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

/// The Proxmox question in a terminal, not in JSON alone.
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
    // Blocks of 8 KiB are two data sectors with two of parity and two of padding: twice a full stripe.
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
    // 20 W for four years of 8766 hours at 0.25 a kWh.
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
    assert!(out.contains("9.75 TB = 8.87 TiB raw") && out.contains("decimal units"));
    let at = |layout: &str| out.find(layout).unwrap();
    assert!(
        at("btrfs-raid1 ") < at("stripes:2+1"),
        "what can be built comes first"
    );
    assert!(
        out.contains("*! btrfs-raid5"),
        "its state deserves a warning"
    );
    assert!(
        out.contains("It does not know"),
        "says what the figures cannot tell"
    );
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
    assert!(String::from_utf8_lossy(&output.stdout).contains("None of"));
}

#[test]
fn bad_questions_are_named() {
    for (args, why) in [
        (vec!["layout"], "no disks"),
        (vec!["layout", "0", "1T"], "is zero"),
        (vec!["layout", "--", "-4T"], "is negative"),
        (vec!["layout", "4X"], "not a size"),
        (vec!["layout", "4T@NaN"], "price"),
        (vec!["layout", "4T@-3"], "price"),
        (vec!["layout", "99E"], "1 EiB"),
        (vec!["layout", "10x1E"], "8 EiB"),
        (vec!["layout", "2000x4T"], "1 to 1024"),
        (vec!["layout", "--only", "raidz2", "4T"], "at least 3 disks"),
        (vec!["layout", "--only", "raidz9", "4T"], "is not single"),
        (vec!["layout", "--only", "btrfs-raid7", "4T"], "give one of"),
        (
            vec!["layout", "--only", "raidz1", "--ashift", "20", "3x4T"],
            "ashift",
        ),
        (vec!["layout", "--only", "raidz1", "3x1M"], "64 MiB"),
        (vec!["layout", "4T", "--want", "speed>=3"], "fields are"),
        (vec!["layout", "4T", "--zfs", "9.9"], "0.7"),
        (
            vec!["layout", "--only", "single", "--whole-disk=520", "4T"],
            "512 or 4096",
        ),
        (vec!["capacity"], "no data"),
        (vec!["capacity", "1TiB", "--factor", "growth=NaN"], "growth"),
        (vec!["capacity", "1TiB", "--factor", "growth"], "NAME=VALUE"),
        (vec!["distribute", "1T@200%"], "share"),
        (vec!["distribute", "1G", "--write", "2G"], "does not fit"),
        (
            vec!["durability", "--disks", "2", "--survives", "2"],
            "fewer failures",
        ),
        (vec!["cache"], "nothing to size"),
        (
            vec!["cache", "--memory", "1GiB", "--block", "1"],
            "512 bytes",
        ),
        (vec!["clones"], "no dataset"),
    ] {
        let output = assay(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(why), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}");
    }
    let missing = assay(&["clones", "--from", "/nonexistent/file"]);
    assert_eq!(missing.status.code(), Some(3));
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

fn with_input(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("plan")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
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
    for (args, why) in [
        (vec!["layout", "--ashift", "17", "6x4T"], "9..=16"),
        (vec!["layout", "--ure", "1", "6x4T"], "unreadable"),
        (
            vec!["layout", "--only", "md-raid6", "--special", "1T", "6x4T"],
            "special",
        ),
    ] {
        let output = with_input(&args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(why),
            "{args:?}"
        );
    }
}

#[test]
fn a_step_counts_and_what_is_full_is_said() {
    // Daily for a year, then an import that leaves 83 %.
    let mut history = String::new();
    for day in 0..300i64 {
        let used = if day < 290 { 3000 + day } else { 4510 };
        history += &format!("{} {used}GiB\n", 1_700_000_000 + day * 86_400);
    }
    let output = with_input(
        &["capacity", "--history", "-", "--size", "5434GiB", "--json"],
        &history,
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        answer["trend"]["now"].as_f64(),
        Some(4510.0 * (1u64 << 30) as f64)
    );
    let dates = &answer["forecasts"];
    assert_eq!(
        (&dates[0]["already"], &dates[1]["already"]),
        (&true.into(), &false.into())
    );
    assert!(answer["trend"]["coverage"]["tried"].as_u64().unwrap() > 0);
}

#[test]
fn growth_and_dates_come_from_a_history() {
    let mut history = String::new();
    for month in 1..=12 {
        history += &format!("2025-{month:02}-01 {}GiB\n", 1000 + 20 * month);
    }
    let output = with_input(
        &["capacity", "--history", "-", "--size", "2TiB", "--json"],
        &history,
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let per_day = answer["trend"]["per_day"].as_f64().unwrap() / (1u64 << 30) as f64;
    assert!((per_day - 20.0 / 30.4).abs() < 0.02, "{per_day}");
    let dates = answer["forecasts"].as_array().unwrap();
    assert!(dates[0]["when"].as_i64() < dates[1]["when"].as_i64());
    let broken = with_input(
        &["capacity", "--history", "-"],
        "2025-01-01 1TiB\nnonsense\n",
    );
    assert_eq!(broken.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("line 2"));
}

#[test]
fn clones_from_recorded_output() {
    let text = "p/gold\tused\t10GiB\np/gold\treferenced\t10GiB\np/gold\twritten\t0\n\
                p/gold@v1\tused\t0\np/gold@v1\treferenced\t10GiB\np/gold@v1\twritten\t10GiB\n\
                p/vm\tused\t3GiB\np/vm\treferenced\t11GiB\np/vm\twritten\t3GiB\np/vm\torigin\tp/gold@v1\n";
    let output = with_input(&["clones", "--from", "-", "--json"], text);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["clones"][0]["shared"].as_u64(), Some(8 << 30));
    let refused = with_input(&["clones", "--from", "-", "--destroy", "p/gold@v1"], text);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("dependent clone"));
    let cut = with_input(&["clones", "--from", "-"], &text[..text.len() - 20]);
    assert_eq!(cut.status.code(), Some(2));
    let hostile = "p/\u{1b}[31mx\tused\t1\np/\u{1b}[31mx\treferenced\t1\n";
    let shown = with_input(
        &["clones", "--from", "-", "--destroy", "p/\u{1b}[31mx"],
        hostile,
    );
    assert!(!String::from_utf8_lossy(&shown.stdout).contains('\u{1b}'));
}

#[test]
fn the_simulation_repeats() {
    let args = [
        "durability",
        "--disks",
        "4",
        "--survives",
        "1",
        "--afr",
        "30%",
        "--simulate",
        "20000",
    ];
    assert_eq!(text(&args), text(&args));
}

#[test]
fn the_page_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.html");
    text(&["layout", "3x4T", "--html", path.to_str().unwrap()]);
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
    for outside in ["http:", "https:", "<script", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn every_answer_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let history: String = (1..=12)
        .map(|month| format!("2025-{month:02}-01 {}GiB\n", 1000 + 20 * month))
        .collect();
    let get = "p/<b>\tused\t10GiB\np/<b>\treferenced\t10GiB\np/<b>\twritten\t0\n\
               p/<b>@1\tused\t0\np/<b>@1\treferenced\t10GiB\np/<b>@1\twritten\t10GiB\n\
               p/vm\tused\t3GiB\np/vm\treferenced\t11GiB\np/vm\twritten\t3GiB\n\
               p/vm\torigin\tp/<b>@1\n";
    let questions = [
        ("capacity --history - --size 2TiB", &*history, "90 % full"),
        ("distribute 2T@80% 2T,12MB/s --write 50G", "", "OpenZFS 2.4"),
        ("clones --from -", get, "p/&lt;b&gt;@1"),
        (
            "cache --memory 64GiB --l2arc 480G --working-set 200GiB",
            "",
            "headers of the L2ARC",
        ),
        (
            "durability --disks 4 --survives 1 --afr 30% --simulate 20000",
            "",
            "simulated, one group",
        ),
    ];
    for (question, input, shows) in questions {
        let path = dir.path().join("page.html");
        let mut args: Vec<&str> = question.split(' ').collect();
        args.extend(["--html", path.to_str().unwrap()]);
        let output = with_input(&args, input);
        let out = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{question}: {stderr}");
        for line in out.lines() {
            let free = question.starts_with("clones");
            assert!(free || line.chars().count() <= 80, "{question}: {line}");
        }
        assert!(out.contains('█') || question.starts_with("clones"), "{out}");
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains(shows), "{question}");
        assert!(page.contains("<svg") && page.contains("<desc") && page.contains("<table"));
        for outside in ["http:", "https:", "<script", "@import", "url(", "<b>"] {
            assert!(!page.contains(outside), "{question}: {outside}");
        }
        std::fs::remove_file(&path).unwrap();
        args.pop();
        args.push("/nonexistent/page.html");
        let refused = with_input(&args, input);
        assert_eq!(refused.status.code(), Some(2), "{question}");
    }
}

#[test]
fn every_question_has_help_with_examples() {
    for question in [
        "layout",
        "capacity",
        "distribute",
        "clones",
        "cache",
        "durability",
    ] {
        let out = text(&[question, "--help"]);
        assert!(
            out.contains("Examples:") && out.contains("--json"),
            "{question}"
        );
    }
}

/// Loop devices, a mount and their files, taken down again whatever happens.
struct Loops {
    dir: tempfile::TempDir,
    devices: Vec<String>,
    mounted: bool,
}

impl Drop for Loops {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg(self.mount()).output();
        }
        for device in &self.devices {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

impl Loops {
    fn mount(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }
}

fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Makes a btrfs on sparse files, fills it and says how many bytes went in; or why it cannot.
fn stored_for_real(sizes: &[u64], data: &str, metadata: &str) -> Result<u64, String> {
    if run("id", &["-u"])? != "0" {
        return Err("needs root for loop devices".into());
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut loops = Loops {
        dir,
        devices: Vec::new(),
        mounted: false,
    };
    for (i, size) in sizes.iter().enumerate() {
        let path = loops.dir.path().join(format!("{i}.img"));
        let file = std::fs::File::create(&path).map_err(|error| error.to_string())?;
        file.set_len(*size).map_err(|error| error.to_string())?;
        let device = run("losetup", &["-f", "--show", path.to_str().unwrap()])?;
        loops.devices.push(device);
    }
    let mut args = vec!["-f", "-K", "-q", "-d", data, "-m", metadata];
    args.extend(loops.devices.iter().map(String::as_str));
    run("mkfs.btrfs", &args)?;
    let mount = loops.mount();
    std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
    run(
        "mount",
        &["-t", "btrfs", &loops.devices[0], mount.to_str().unwrap()],
    )?;
    loops.mounted = true;
    let (mut stored, mut step, mut files) = (0u64, 1u64 << 30, 0);
    while step >= 4096 {
        let path = mount.join(files.to_string());
        match run(
            "fallocate",
            &["-l", &step.to_string(), path.to_str().unwrap()],
        ) {
            Ok(_) => stored += step,
            Err(_) => {
                let _ = std::fs::remove_file(&path);
                step /= 2;
            }
        }
        files += 1;
    }
    Ok(stored)
}

#[test]
fn a_real_btrfs_stores_what_was_planned() {
    let gib = 1u64 << 30;
    for (sizes, data, metadata) in [
        (vec![3 * gib, 2 * gib, 2 * gib, gib], "raid1", "raid1"),
        (vec![5 * gib, 2 * gib, 3 * gib], "raid1c3", "raid1c3"),
        (vec![2 * gib, 4 * gib, 2 * gib, 3 * gib], "raid10", "raid1"),
    ] {
        let stored = match stored_for_real(&sizes, data, metadata) {
            Ok(stored) => stored,
            Err(reason) => {
                assay_testing::skipped("btrfs", format_args!("{reason}"));
                return;
            }
        };
        let layout = format!("btrfs-{data}");
        let disks: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let mut args = vec!["layout", "--only", &layout, "--metadata", metadata];
        args.extend(disks.iter().map(String::as_str));
        let plan = json(&args)["layouts"][0].clone();
        let chunk = plan["btrfs"]["chunk"].as_u64().unwrap();
        let planned = plan["stored"].as_u64().unwrap();
        assert!(
            planned.abs_diff(stored) <= chunk,
            "{layout} {sizes:?}: planned {planned}, stored {stored}"
        );
    }
}
