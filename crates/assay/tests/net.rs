//! Tests `assay net` and `assay lab net`: server, devices and controller as programs, over loopback and behind a
//! bottleneck in namespaces.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;
mod serving;

use assay_lab::network_bed::{Bed, BedError, Discipline, LinkShape, Rate, SERVER};
use common::Home;
use serde_json::Value;
use serving::{Ends, Serving, role, share};
use std::io::Read as _;
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_server_and_two_clients_on_one_machine() {
    // Also over IPv6 alone, if available.
    let six = std::net::TcpListener::bind("[::1]:0").is_ok();
    let host = if six { "::1" } else { "127.0.0.1" };
    let serving = Serving::at(host.parse().unwrap(), &|mut command| {
        command.spawn().unwrap()
    });
    let _clients = ["anna", "ben"].map(|name| Ends(serving.client(name).spawn().unwrap()));
    let plan = serving.plan(
        "name = 'two'\nseconds = 3\n[[person]]\nname = 'Ben'\nclient = 'ben'\nroles = ['gaming', 'upload']\n\
         [[person]]\nname = 'Anna'\nclient = 'anna'\nroles = ['voip']\n",
    );
    let page = serving.file("page.html");
    let ran = serving.controller(&[&plan, "--json", "--html", page.to_str().unwrap()]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!(value["judged"][0]["person"], "Ben");
    assert_eq!(value["run"]["people"][0]["client"], "ben");
    assert!(role(&value, "upload")["bit_per_s"].as_f64().unwrap() > 1e6);
    assert_eq!(role(&value, "gaming")["failed"], 0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Anna") && page.contains("<svg") && !page.contains("<script"));
    // Again, with text output.
    let ran = serving.controller(&[&plan, "--seconds", "1"]);
    assert!(
        ran.stdout.contains("Ben") && ran.stdout.contains("voip"),
        "{}",
        ran.stderr
    );
    let ran = serving.controller(&["--clients"]);
    assert!(ran.stdout.contains("anna") && ran.stdout.contains("ben"));
}

#[test]
fn bad_input_is_told_from_a_bad_network() {
    let serving = Serving::here();
    let other = Serving::here();
    let (client, controller) = (serving.address("client"), serving.address("controller"));
    let (good, foreign) = (client.split_once('#').unwrap(), other.address("client"));
    let foreign = foreign.split_once('#').unwrap().1.split_once('.').unwrap();
    let secret = good.1.split_once('.').unwrap();
    let run = |args: &[&str]| {
        let ran = serving.home.assay(args);
        assert_eq!(ran.code, Some(2), "{args:?} {} {}", ran.stdout, ran.stderr);
        ran.stderr
    };
    // No token after #; the token of another server; another server's certificate; the address for
    // controllers.
    run(&["net", "client", good.0]);
    let wrong = format!("{}#{}.{}", good.0, foreign.0, secret.1);
    assert!(run(&["net", "client", &wrong]).contains("token"));
    let wrong = format!("{}#{}.{}", good.0, secret.0, foreign.1);
    assert!(run(&["net", "client", &wrong]).contains("certificate"));
    run(&["net", "client", &controller]);
    run(&["net", "run", "four", "--server", &client]);
    run(&["net", "run", "no-such-plan", "--server", &controller]);
    // No client joins.
    assert!(
        run(&[
            "net",
            "run",
            "four",
            "--wait",
            "100ms",
            "--server",
            &controller
        ])
        .contains("clients")
    );
    // A port in use, all addresses without a public one, and an existing file.
    let taken = format!("127.0.0.1:{}", serving.port);
    assert!(run(&["net", "serve", "--listen", &taken]).contains("--listen"));
    assert!(run(&["net", "serve", "--listen", "0.0.0.0:0"]).contains("--reached-at"));
    let file = serving.file("client");
    run(&[
        "net",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--client-file",
        file.to_str().unwrap(),
    ]);
    // Plain HTTP gets an explanation.
    let mut plain = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    std::io::Write::write_all(&mut plain, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut said = String::new();
    plain.read_to_string(&mut said).unwrap();
    assert!(
        said.starts_with("HTTP/1.1 400") && said.contains("https"),
        "{said}"
    );
}

/// Returns the resident memory of a process in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn attack_of_a_thousand_strangers() {
    let serving = Serving::here();
    let _client = Ends(serving.client("anna").spawn().unwrap());
    let before = memory(serving.server.0.id());
    let strangers: Vec<TcpStream> = (0..1000)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", serving.port)).ok())
        .collect();
    // Half of them begin a handshake and never finish it.
    for mut stranger in strangers.iter().step_by(2) {
        let _ = std::io::Write::write_all(&mut stranger, &[22, 3, 1, 2, 0, 1, 0]);
    }
    let plan =
        serving.plan("name = 'one'\nseconds = 2\n[[person]]\nname = 'Anna'\nroles = ['voip']\n");
    let ran = serving.controller(&[&plan, "--json"]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let counted = role(&value, "voip");
    assert_eq!(counted["failed"], 0, "{counted}");
    let tried = strangers.len() as u64;
    let grown = memory(serving.server.0.id()).saturating_sub(before);
    // At most 400 have a thread at a time.
    assert!(grown < 64 << 10, "{grown} KiB more");
    assay_testing::attacked("strangers of assay net", tried, tried);
    drop(strangers);
}

fn bed(people: usize) -> Option<Bed> {
    let shape = LinkShape {
        rate: Rate::BitPerS(1e9),
        discipline: Discipline::FqCodel,
        buffer: Duration::from_millis(100),
        delay: Duration::ZERO,
        loss: 0.0,
    };
    match Bed::new(people, shape.clone(), shape, 1) {
        Ok(bed) => Some(bed),
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            assay_testing::skipped("root", error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn clients_that_are_killed_do_not_spoil_the_others() {
    const ALL: usize = 8;
    let Some(bed) = bed(ALL) else { return };
    let serving = Serving::at(SERVER.into(), &|mut command| {
        bed.server()
            .inside(move || command.spawn().unwrap())
            .unwrap()
    });
    let mut clients: Vec<Ends> = (0..ALL)
        .map(|at| {
            let mut command = serving.client(&format!("c{at}"));
            let child = bed
                .person(at)
                .unwrap()
                .inside(move || command.spawn().unwrap());
            Ends(child.unwrap())
        })
        .collect();
    let people: String = (0..ALL)
        .map(|at| format!("[[person]]\nname = 'p{at}'\nclient = 'c{at}'\nroles = ['gaming']\n"))
        .collect();
    let plan = serving.plan(&format!("name = 'many'\nseconds = 8\n{people}"));
    let killed = thread::spawn(move || {
        // Wait, three seconds of lead, and a part of the run.
        thread::sleep(Duration::from_secs(8));
        clients.drain(..2).for_each(drop);
        clients
    });
    let ran = bed
        .server()
        .inside(|| serving.controller(&[&plan, "--json"]))
        .unwrap();
    drop(killed.join().unwrap());
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let people = value["run"]["people"].as_array().unwrap();
    let gone: Vec<bool> = people
        .iter()
        .map(|person| person["record"].is_null())
        .collect();
    assert_eq!(gone, [true, true, false, false, false, false, false, false]);
    for (at, person) in value["judged"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .skip(2)
    {
        let role = &person["roles"][0];
        assert_eq!(
            role["counted"].as_u64().unwrap() + role["void"].as_u64().unwrap(),
            480,
            "{at}"
        );
        assert!(share(role) < 0.05, "{at}: {role}");
    }
}

/// Runs `assay lab net four` on a link of 150 Mbit/s with a buffer of 400 ms.
fn four(home: &Home, queue: &str) -> Option<Value> {
    let ran = home.assay(&[
        "lab",
        "net",
        "four",
        "--seconds",
        "12",
        "--json",
        "--queue",
        queue,
    ]);
    if ran.stderr.contains("network namespace") || ran.stderr.contains("TUN") {
        assay_testing::skipped("root", &ran.stderr);
        return None;
    }
    let value = serde_json::from_str(&ran.stdout);
    Some(value.unwrap_or_else(|_| panic!("{}", ran.stderr)))
}

#[test]
fn a_long_queue_spoils_calls_and_games_and_a_short_one_does_not() {
    let home = Home::new();
    let Some(long) = four(&home, "fifo") else {
        return;
    };
    let short = four(&home, "fq-codel").unwrap();
    for name in ["voip", "call", "gaming"] {
        let [long, short] = [&long, &short].map(|value| role(value, name));
        assert_eq!(long["grade"], "bad", "{name}: {long}");
        assert_eq!(long["cause"]["kind"], "queue", "{name}: {long}");
        // Delays of the devices themselves on a busy machine are void.
        assert!(share(short) < 0.1, "{name}: {short}");
    }
    // The network with more bytes and a worse experience is the worse one.
    let [a, b] = [("long", &long), ("short", &short)].map(|(name, value)| {
        let path = home.dir.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let ran = home.assay(&["net", "compare", &a, &b, "--json"]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!(value["better"], *b);
    let page = home.dir.path().join("compared.html");
    let ran = home.assay(&["net", "compare", &a, &b, "--html", page.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.matches("<svg").count() == 2 && !page.contains("<script"));
    assert!(
        home.assay(&["net", "compare", &a, &b])
            .stdout
            .contains("caller")
    );
    assert_eq!(
        home.assay(&["net", "compare", &a, "/dev/null"]).code,
        Some(2)
    );
    let rate = |value: &Value| role(value, "download")["bit_per_s"].as_f64().unwrap();
    assert!(rate(&long) > 50e6 && rate(&short) > 10e6);
    assert!(rate(&long) < 151e6 && rate(&short) < 151e6);
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let serving = Serving::here();
    let _client = Ends(serving.client("anna").spawn().unwrap());
    let plan = serving
        .plan("name = 'one'\nseconds = 600\n[[person]]\nname = 'Anna'\nroles = ['gaming']\n");
    let server = format!("@{}", serving.file("controller").display());
    let mut command = serving
        .home
        .command(&["net", "run", &plan, "--json", "--server", &server]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    thread::sleep(Duration::from_secs(9));
    let asked = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(60));
    assert_eq!(out.status.code(), Some(130));
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["run"]["aborted"], true);
    let events = value["run"]["people"][0]["record"]["roles"][0]["events"]
        .as_array()
        .unwrap();
    assert!(!events.is_empty() && events.len() < 600 * 60);
    assert!(events.iter().all(|event| !event[2].is_null()));
}

#[test]
fn a_recorded_link_is_replayed() {
    let home = Home::new();
    let path = home.dir.path().join("link");
    // One second at 12 Mbit/s, one at 2.4 Mbit/s.
    let lines = (1..=1000).chain((1005..=2000).step_by(5));
    let text: String = lines.map(|ms| format!("{ms}\n")).collect();
    std::fs::write(&path, text).unwrap();
    let plan = home.dir.path().join("plan.toml");
    let one = "name = 'x'\nseconds = 6\n[[person]]\nname = 'a'\nroles = ['download']\n";
    std::fs::write(&plan, one).unwrap();
    let [path, plan] = [&path, &plan].map(|path| path.to_str().unwrap());
    let ran = home.assay(&[
        "lab", "net", plan, "--trace", path, "--up", "20mbit", "--json",
    ]);
    if ran.stderr.contains("network namespace") || ran.stderr.contains("TUN") {
        assay_testing::skipped("root", &ran.stderr);
        return;
    }
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let rate = role(&value, "download")["bit_per_s"].as_f64().unwrap();
    // 7.2 Mbit/s on average, including headers of IP, TCP and TLS.
    assert!((4e6..7.2e6).contains(&rate), "{rate}");
    let bad = home.dir.path().join("bad");
    std::fs::write(&bad, "1\n2\nx\n").unwrap();
    let ran = home.assay(&["lab", "net", plan, "--trace", bad.to_str().unwrap()]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("line 3"),
        "{}",
        ran.stderr
    );
    let both = home.assay(&["lab", "net", plan, "--trace", path, "--down", "1mbit"]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn two_queues_in_turns_are_a_trial() {
    let home = Home::new();
    let plan = home.dir.path().join("plan.toml");
    let two = "name = 'x'\nseconds = 3\n[[person]]\nname = 'player'\nroles = ['gaming']\n\
               [[person]]\nname = 'update'\nroles = ['download']\n";
    std::fs::write(&plan, two).unwrap();
    let page = home.dir.path().join("trial.html");
    let [plan, page] = [&plan, &page].map(|path| path.to_str().unwrap());
    let link = ["--down", "20mbit", "--buffer", "400ms"];
    let mut args = vec![
        "lab",
        "net",
        plan,
        "--queue",
        "fifo",
        "--against",
        "fq-codel",
        "--json",
        "--html",
        page,
    ];
    args.extend(link);
    let ran = home.assay(&args);
    if ran.stderr.contains("network namespace") || ran.stderr.contains("TUN") {
        assay_testing::skipped("root", &ran.stderr);
        return;
    }
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    common::schemas::holds("net-trial", &ran.stdout, &["/trial", "/judgement"]);
    let judgement = &value["judgement"];
    assert_eq!(judgement["verdict"], "better", "{judgement}");
    let pairs = judgement["pairs"].as_u64().unwrap();
    assert!((6..=12).contains(&pairs), "{judgement}");
    let slots = value["trial"]["slots"].as_array().unwrap();
    assert!(slots.len() as u64 >= 2 * pairs);
    for slot in slots {
        let side = if slot["side"] == "now" {
            "fifo"
        } else {
            "fq-codel"
        };
        assert_eq!(slot["read_back"], side);
    }
    // The document contains all records, so the run can be judged again.
    let trial: assay_net::trial::Trial = serde_json::from_value(value["trial"].clone()).unwrap();
    assert_eq!(serde_json::to_value(trial.judgement()).unwrap(), *judgement);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("BETTER") && page.contains("player"));
    // Equal sides are refused before anything is created, and so is a plan without goals.
    let same = home.assay(&["lab", "net", plan, "--against", "fifo"]);
    assert_eq!(same.code, Some(2), "{}", same.stderr);
    std::fs::write(plan, two.replace("gaming", "upload")).unwrap();
    let ran = home.assay(&["lab", "net", plan, "--against", "fq-codel"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("goal"),
        "{}",
        ran.stderr
    );
}

/// The setting is a file, whose content determines whether the network loses packets.
#[test]
fn two_settings_in_turns_are_set_back() {
    let serving = Serving::here();
    let _client = Ends(serving.client("anna").spawn().unwrap());
    let setting = serving.file("setting");
    std::fs::write(&setting, "old\n").unwrap();
    let set = serving.file("set");
    std::fs::write(
        &set,
        format!("#!/bin/sh\necho \"$1\" > '{}'\n", setting.display()),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&set, mode).unwrap();
    let plan =
        serving.plan("name = 'one'\nseconds = 1\n[[person]]\nname = 'Anna'\nroles = ['gaming']\n");
    let server = format!("@{}", serving.file("controller").display());
    let [setting_path, set] = [&setting, &set].map(|path| path.to_str().unwrap());
    let args = |value| {
        vec![
            "net",
            "trial",
            &plan,
            "--server",
            &server,
            "--settle",
            "0s",
            "--pairs",
            "6",
            "--json",
            "--read",
            "cat",
            setting_path,
            ";",
            "--apply",
            set,
            "{value}",
            ";",
            "--value",
            value,
        ]
    };
    let ran = serving.home.assay(&args("new"));
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let slots = value["trial"]["slots"].as_array().unwrap();
    for slot in slots {
        let wanted = if slot["side"] == "now" { "old" } else { "new" };
        assert_eq!(slot["read_back"], wanted);
    }
    assert_eq!(slots.len(), 12);
    // The file does not affect the network: no side may be better.
    assert_ne!(
        value["judgement"]["verdict"], "better",
        "{}",
        value["judgement"]
    );
    assert_eq!(std::fs::read_to_string(&setting).unwrap(), "old\n");
    let same = serving.home.assay(&args("old"));
    assert!(
        same.code == Some(2) && same.stderr.contains("--value"),
        "{}",
        same.stderr
    );

    // An interrupted trial is reverted too: by itself, or after a kill by the next one.
    use rustix::process::Signal;
    for signal in [Signal::INT, Signal::KILL] {
        let mut command = serving.home.command(&args("new"));
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let begun = Instant::now();
        while std::fs::read_to_string(&setting).unwrap() != "new\n"
            && begun.elapsed() < Duration::from_secs(60)
        {
            thread::sleep(Duration::from_millis(20));
        }
        rustix::process::kill_process(pid, signal).unwrap();
        let out = child.wait_with_output().unwrap();
        if signal == Signal::KILL {
            let recovered = serving.home.assay(&["trial", "--recover"]);
            assert_eq!(recovered.code, Some(0), "{}", recovered.stderr);
        } else {
            assert_eq!(out.status.code(), Some(130));
        }
        assert_eq!(std::fs::read_to_string(&setting).unwrap(), "old\n");
    }
}
