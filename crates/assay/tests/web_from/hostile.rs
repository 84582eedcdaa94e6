//! Machines that lie, are replaced, or have a wrong date; secrets; two users at once.

use super::common::{self, Home, Ran, ran};
use super::machines::{Machines, until};
use super::{counts, from, json, load};
use assay_protocol::Reply;
use rustix::process::{Pid, Signal, kill_process};

/// The shortest settings for a step of half a second.
const SHORT: [&str; 11] = [
    "--concurrency",
    "6",
    "--at",
    "",
    "--rounds",
    "1",
    "--washout",
    "50ms",
    "--seconds",
    "500ms",
    "--json",
];

fn ask(home: &Home, machines: &Machines, which: &str, args: &[&str]) -> Ran {
    let all = [args, &SHORT].concat();
    ran(from(home, machines, which, &all)
        .wait_with_output()
        .unwrap())
}

/// Adds a machine that reports that it is ready, and then prints this line endlessly.
fn endless(machines: &mut Machines, name: &str, begin: &str, line: &str) {
    let frames = |text: &str| Reply::Out(text.into()).frame(1).encode();
    let greeting = format!("assay-remote 1 ready {}\n", env!("CARGO_PKG_VERSION"));
    let first = [greeting.as_bytes(), &frames(begin)].concat();
    std::fs::write(machines.path(&format!("{name}.first")), first).unwrap();
    let more = frames(&line.repeat(32_000 / line.len()));
    std::fs::write(machines.path(&format!("{name}.more")), more.repeat(64)).unwrap();
    let dir = machines.path("");
    let body = format!(
        "cd {}; cat {name}.first; while cat {name}.more; do :; done",
        dir.display()
    );
    let script = common::script(&dir, &format!("{name}.sh"), &body);
    machines.alias(name, &format!("ForceCommand {}", script.display()));
}

/// Returns the peak memory of a process in KiB.
fn peak(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn attack_a_machine_that_talks_without_end() {
    let Some(mut machines) = Machines::new() else {
        return;
    };
    let url = machines.url(83);
    let ready = r#"{"ready":{"targets":[{"addresses":["10.77.0.1:83"],"consent":null,"protocol":"http/1.1","streams":1,"remarks":["\u001b[2Jx"]}],"machine":null}}"#;
    let ready = format!("{ready}\n");
    let all = [
        (
            "words",
            ready.as_str(),
            "{\"live\":[1,2]}\n",
            "no generator says",
        ),
        ("clocks", &ready, "{\"clock\":-9223372036854775808}\n", ""),
        (
            "nonsense",
            &ready,
            "\u{1b}[2J<script>\n",
            "no generator says",
        ),
        ("line", "", "x", "16 MiB"),
        ("other", "", "{\"live\":[1,2]}\n", "no generator says"),
    ];
    for (name, begin, line, _) in all {
        endless(&mut machines, name, begin, line);
    }
    let mut held = 0;
    for (name, _, _, said) in all {
        let home = Home::new();
        let args = [&[url.as_str(), "-q", "--silence", "10"][..], &SHORT].concat();
        let child = from(&home, &machines, &format!("gen1,{name}"), &args);
        let pid = Pid::from_child(&child);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(child.wait_with_output()));
        let mut most = 0;
        let output = loop {
            most = most.max(peak(pid).unwrap_or(0));
            match told.recv_timeout(std::time::Duration::from_millis(20)) {
                Ok(output) => break output.unwrap(),
                Err(_) => continue,
            }
        };
        let ran = ran(output);
        assert!(matches!(ran.code, Some(2 | 3)), "{name}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("{name}: ")),
            "{name}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(said), "{name}: {}", ran.stderr);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains('\u{1b}'), "{name}: {all}");
        assert!(most < 300_000, "{name}: {most} KiB");
        held += 1;
    }
    assay_testing::attacked("generators that talk without end", all.len() as u64, held);
    machines.nothing_left();
}

#[test]
fn a_machine_that_cannot_be_entered_is_named_and_nothing_is_loaded() {
    let Some(mut machines) = Machines::new() else {
        return;
    };
    let home = Home::new();
    let url = machines.url(83);
    machines.alias("refuses", "DenyUsers root");
    machines.alias("exchanged", "");
    machines.change_key();
    for (name, said) in [
        ("refuses", "Permission denied"),
        ("exchanged", "its key is another one than before"),
        ("nowhere.invalid", "nowhere.invalid"),
    ] {
        let ran = ask(&home, &machines, &format!("gen1,gen2,{name}"), &[&url]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(3), ""),
            "{}",
            ran.stderr
        );
        let named = ran.stderr.contains(&format!("{name}: ")) && ran.stderr.contains(said);
        assert!(named, "{name}: {}", ran.stderr);
        machines.nothing_left();
    }
    let asked = machines.asked(83);
    // Each generator requests consent, and reads the response once.
    assert!(asked.len() < 60, "{asked:?}");
}

#[test]
fn a_machine_whose_date_is_wrong_begins_with_the_others() {
    let Some(mut machines) = Machines::new() else {
        return;
    };
    let mut multiarch = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let library = |dir: std::fs::DirEntry| {
        let path = dir.path().join("faketime/libfaketimeMT.so.1");
        path.exists().then(|| path.display().to_string())
    };
    let Some(library) = multiarch.find_map(library) else {
        assay_testing::skipped("faketime", "not installed");
        return;
    };
    machines.alias(
        "tomorrow",
        &format!("SetEnv LD_PRELOAD={library} FAKETIME=+1d FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1"),
    );
    let home = Home::new();
    let ran = ask(&home, &machines, "gen1,gen2,tomorrow", &[&machines.url(80)]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let value = json(&ran);
    let parts = value["steps"][0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 3);
    for part in parts {
        assert!(
            part["lost"].is_null() && counts(part, "answers") > 0,
            "{part}"
        );
        // Far less than a day, however busy this machine is.
        assert!(part["late_us"].as_i64().unwrap() < 60_000_000, "{part}");
    }
    machines.nothing_left();
}

#[test]
fn secrets_stay_where_they_are() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let home = Home::new();
    let page = home.dir.path().join("page.html");
    let url = format!("{}?token=s3cret-query", machines.url(80));
    let args = [
        url.as_str(),
        "-H",
        "Authorization: Bearer s3cret-header",
        "-d",
        "s3cret-body",
        "-X",
        "POST",
        "--html",
        page.to_str().unwrap(),
    ];
    let ran = ask(&home, &machines, "gen1,gen2", &args);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let mut all = format!("{}{}", ran.stdout, ran.stderr).into_bytes();
    all.extend(std::fs::read(page).unwrap());
    let mut left = vec![home.dir.path().to_owned()];
    while let Some(path) = left.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => all.extend(std::fs::read(&path).unwrap_or_default()),
        }
    }
    let found = all.windows(6).any(|six| six == b"s3cret");
    assert!(!found, "{}", String::from_utf8_lossy(&all));
    machines.nothing_left();
}

/// Two users load from the same machines: each has a separate program there, and neither ends the
/// other's.
#[test]
fn two_at_once_from_the_same_machines() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let (one, two) = (Home::new(), Home::new());
    let url = machines.url(83);
    let long = [&[url.as_str(), "-q"][..], &SHORT[..9], &["60s", "--json"]].concat();
    let first = from(&one, &machines, "gen1,gen2", &long);
    until("it loads", || machines.loads(83, 2) > 500);
    let ran_two = ask(&two, &machines, "gen1,gen2", &[&machines.url(80)]);
    assert!(matches!(ran_two.code, Some(0 | 1)), "{}", ran_two.stderr);
    assert_eq!(json(&ran_two)["steps"].as_array().unwrap().len(), 1);
    let before = machines.loads(83, 2);
    until("it loads on", || machines.loads(83, 2) > before);
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    let ran_one = ran(first.wait_with_output().unwrap());
    assert_eq!(ran_one.code, Some(130), "{}", ran_one.stderr);
    machines.nothing_left();
    // Detects a load of a server that does not use `load`.
    let again = load(
        &two,
        &machines,
        &[&[machines.url(80).as_str()][..], &SHORT].concat(),
    );
    assert!(matches!(again.code, Some(0 | 1)), "{}", again.stderr);
}
