//! Tests `assay web --server-host`: the CPU time of a server as its machine reports it over ssh.

use crate::common::servers::Servers;
use crate::common::{self, Home, Ran};
use assay_testing::servers::nginx::Nginx;
use serde_json::Value;
use std::collections::BTreeSet;

/// Two steps of a closed loop, long enough that late counters of a busy machine still count.
const LONG: [&str; 8] = [
    "--concurrency",
    "2",
    "--at",
    "",
    "--rounds",
    "2",
    "--seconds=3s",
    "--washout=100ms",
];

/// Waits for the first query, which follows the script.
const ASKED: &str = "while read -r x; do case $x in 'listening 1 '*) break ;; esac; done";

fn nginx() -> Option<Nginx> {
    Nginx::with_files("")
}

/// Runs `assay web` on a page of nginx; its server is a machine of this ssh configuration.
fn web(home: &Home, config: &str, host: &str, url: &str, more: &[&str]) -> Ran {
    let mut command = home.command(&["web", url, "--json", "-q", "--server-host", host]);
    command.args(["--ssh-config", config]).args(more);
    common::ended(command)
}

fn steps(ran: &Ran) -> Vec<Value> {
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    value["steps"].as_array().unwrap().clone()
}

/// Returns the CPU time of nginx's processes so far in nanoseconds.
fn used(nginx: &Nginx) -> u64 {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let pid = read(
        nginx
            .config()
            .with_file_name("nginx.pid")
            .display()
            .to_string(),
    );
    let pid = pid.trim();
    let children = read(format!("/proc/{pid}/task/{pid}/children"));
    let all: BTreeSet<&str> = children.split_whitespace().chain([pid]).collect();
    let each = all.iter().map(|pid| read(format!("/proc/{pid}/schedstat")));
    each.map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

/// Late counters are reported on a very busy machine: the test repeats then.
fn measured(run: impl Fn() -> (Vec<Value>, u64)) -> (Vec<Value>, u64) {
    let mut said = Vec::new();
    for _ in 0..5 {
        let (steps, local) = run();
        let late = |step: &Value| step["server"]["Err"].as_str().map(str::to_owned);
        let why: Vec<String> = steps.iter().filter_map(late).collect();
        if why.is_empty() {
            return (steps, local);
        }
        for why in &why {
            assert!(why.contains("came") || why.contains("its clock"), "{why}");
        }
        said = why;
    }
    panic!("five times: {said:?}");
}

#[test]
fn the_server_uses_over_ssh_what_it_uses_here() {
    let (Some(mut servers), Some(nginx)) = (Servers::new(), nginx()) else {
        return;
    };
    servers.machine(
        "box",
        "ForceCommand echo Welcome; exec $SSH_ORIGINAL_COMMAND",
    );
    // The same kernel with another boot id: a different machine for assay.
    let other = servers.path("boot_id");
    std::fs::write(&other, "11111111-2222-3333-4444-555555555555\n").unwrap();
    let hidden = format!(
        "mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$@\"",
        other.display()
    );
    let port = servers.start_in("far", &["unshare", "-m", "sh", "-c", &hidden, "sh"]);
    servers.name("far", port, "");
    let (home, config) = (Home::new(), servers.config());
    for host in ["box", "far"] {
        let (steps, local) = measured(|| {
            let before = used(&nginx);
            let ran = web(&home, &config, host, &nginx.url("/small"), &LONG);
            (steps(&ran), used(&nginx) - before)
        });
        assert_eq!(steps.len(), 2);
        let mut there = 0;
        for step in &steps {
            let server = &step["server"]["Ok"];
            let what = server["what"].as_str().unwrap();
            let told = assay_testing::normalize_output(what, &[(host, "HOST")]);
            insta::allow_duplicates! {
                insta::assert_snapshot!(told, @"nginx (2 processes) on HOST");
            }
            assert!(server["busiest"].as_f64().unwrap() > 0.0, "{server}");
            // By the remote clock, which has ticks of 10 ms.
            assert_eq!(
                server["window"].as_u64().unwrap() % 5_000_000,
                0,
                "{server}"
            );
            there += server["cpu"].as_u64().unwrap();
            let machine = &server["machine"];
            match host {
                "far" => {
                    let cpus = std::thread::available_parallelism().unwrap().get();
                    assert!(machine["cpus"].as_u64().unwrap() >= cpus as u64, "{server}");
                    assert!(machine["busy"].as_u64().unwrap() > 0, "{server}");
                }
                _ => assert!(machine.is_null(), "it is this machine: {server}"),
            }
        }
        // The same counters: the steps have at most all of the time, and most of it.
        assert!(there <= local, "{there} of {local}");
        assert!(there * 10 >= local * 4, "{there} of {local}");
    }
    // The results follow as for a local server.
    let ran = web(&home, &config, "far", &nginx.url("/small"), &LONG);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    let judged = &value["judged"]["steps"][0];
    if value["steps"][0]["server"]["Ok"].is_object() && judged["rate"].is_object() {
        assert!(judged["per_cpu_second"]["value"].as_f64().unwrap() > 0.0);
        assert!(judged["server_cpus"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn who_is_not_root_there_names_the_process() {
    let (Some(mut servers), Some(nginx)) = (Servers::new(), nginx()) else {
        return;
    };
    let nobody = "ForceCommand exec setpriv --reuid 12345 --regid 12345 --clear-groups sh";
    servers.machine("box", nobody);
    let (home, config) = (Home::new(), servers.config());
    let url = nginx.url("/small");
    let ran = web(&home, &config, "box", &url, &LONG);
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{}", ran.stderr);
    insta::assert_snapshot!(assay_testing::without_figures(&ran.stderr), @"assay: box: only root sees whose socket listens on port # there: log in as root, or say --sudo, or name the process with --server-pid");
    let pid = std::fs::read_to_string(nginx.config().with_file_name("nginx.pid")).unwrap();
    let (steps, local) = measured(|| {
        let before = used(&nginx);
        let more = [&LONG[..], &["--server-pid", pid.trim()]].concat();
        let ran = web(&home, &config, "box", &url, &more);
        (steps(&ran), used(&nginx) - before)
    });
    let there: u64 = steps
        .iter()
        .map(|step| step["server"]["Ok"]["cpu"].as_u64().unwrap())
        .sum();
    assert!(there > 0 && there <= local, "{there} of {local}");
    let mut said = String::new();
    for more in [
        ["--server-pid", "4194304"],
        ["--cgroup", "no/such/group"],
        ["--silence", "20"],
        ["--server-host", "-"],
    ] {
        let ran = web(&home, &config, "box", &url, &more);
        assert_eq!(ran.code, Some(2), "{more:?} {}", ran.stderr);
        said += &home.refusal(&ran);
    }
    insta::assert_snapshot!(assay_testing::normalize_output(said, &[(&url, "URL")]), @r"
    assay: box: --server-pid 4194304: no CPU time of it can be read: it is gone, or was never there
    assay: box: /sys/fs/cgroup/no/such/group: no CPU time of it can be read: it is gone, or was never there
    assay: --remote-assay and --silence need another machine that assay is uploaded to: name it with --host
    assay: --server-host is said 2 times for 1 URLs: say it once for all of them, or once for each, in their order
    ");
}

/// The session ends after its fifth response: one to find the server, two for each step.
#[test]
fn a_session_that_dies_ends_no_measurement() {
    let (Some(mut servers), Some(nginx)) = (Servers::new(), nginx()) else {
        return;
    };
    let cut = common::script(
        servers.dir.path(),
        "cut",
        "sh | awk '{ print; fflush() } /^end 5/ { exit }'",
    );
    servers.machine("box", &format!("ForceCommand {}", cut.display()));
    let (home, config) = (Home::new(), servers.config());
    let short = ["--concurrency=1,2,3", "--at=", "--rounds=1", "--seconds=1s"];
    let ran = web(&home, &config, "box", &nginx.url("/small"), &short);
    let all = steps(&ran);
    assert_eq!(all.len(), 3);
    for step in &all {
        assert!(step["measured"]["answers"].as_u64().unwrap() > 0, "{step}");
    }
    assert!(all[2]["server"]["Err"].is_string(), "{}", all[2]["server"]);
    let first = &all[0]["server"];
    let late = first["Err"].as_str().unwrap_or("came");
    assert!(
        late.contains("came") || late.contains("its clock"),
        "{first}"
    );
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    let remarks = value["remarks"][0].as_array().unwrap().iter();
    let mut remarks = remarks.filter_map(Value::as_str);
    let told = remarks
        .find(|text| text.starts_with("from some step on"))
        .unwrap();
    // The reason is at the end of the message.
    insta::assert_snapshot!(told.rsplit_once(": ").unwrap().0, @"from some step on the CPU time of the server is not known");
    let kept: Value = serde_json::from_str(&home.assay(&["export", "1"]).stdout).unwrap();
    let mut remarks = kept["run"]["remarks"].as_array().unwrap().iter();
    let same = |remark: &Value| remark.as_str().is_some_and(|text| text.ends_with(told));
    assert!(remarks.any(same), "the run keeps it: {kept}");
}

#[test]
fn machines_that_answer_something_else_are_refused() {
    let ready = "echo 'assay-counters 1 0 x'";
    let all = [
        ("exit 0".to_owned(), "box"),
        (
            "echo 'no shell for you' >&2; exit 1".to_owned(),
            "no shell for you",
        ),
        ("exec sleep 600".to_owned(), "--deadline"),
        ("exec cat /dev/zero".to_owned(), "1 MiB"),
        (
            "echo 'assay-counters 1 0 '; exec sleep 600".to_owned(),
            "/proc",
        ),
        (format!("{ready}; exec sleep 600"), "no counters came"),
        (format!("{ready}; exec cat /dev/zero"), "no answer"),
        (
            format!("{ready}; echo begin 7; exec sleep 600"),
            "no answer",
        ),
        (
            format!("{ready}; {ASKED}; echo begin 1; yes 'holds 1'"),
            "more than",
        ),
        (
            format!(
                "{ready}; {ASKED}; printf 'begin 1\\n\\033]0;owned\\007\\033[31mred\\nend 1\\n'; exec sleep 600"
            ),
            "no counter",
        ),
    ];
    std::thread::scope(|threads| {
        for (script, expected) in &all {
            threads.spawn(move || {
                let (Some(mut servers), Some(nginx)) = (Servers::new(), nginx()) else {
                    return;
                };
                let path = common::script(servers.dir.path(), "forced", script);
                servers.machine("box", &format!("ForceCommand {}", path.display()));
                let (home, config) = (Home::new(), servers.config());
                // All log in at once.
                let deadline = if script.contains("sleep") { "10" } else { "60" };
                let ran = web(
                    &home,
                    &config,
                    "box",
                    &nginx.url("/small"),
                    &["--deadline", deadline],
                );
                assert!(
                    matches!(ran.code, Some(2 | 3)),
                    "{script}: {:?} {}",
                    ran.code,
                    ran.stderr
                );
                assert!(ran.stderr.contains(expected), "{script}: {}", ran.stderr);
                assert!(
                    !ran.stderr.contains('\u{1b}') && ran.stderr.len() < 1000,
                    "{}",
                    ran.stderr
                );
            });
        }
    });
}

/// Impossible counters: the load is measured, and the server's CPU time is unknown.
#[test]
fn counters_that_cannot_be_are_no_cpu_time() {
    let (Some(mut servers), Some(nginx)) = (Servers::new(), nginx()) else {
        return;
    };
    let stands = "up() { echo up 5.00; echo up 5.00; }";
    let much = "up() { read now rest </proc/uptime; echo up $now; echo up $now; }";
    for (name, up, cpu, said) in [
        ("stands", stands, "$number", "its clock"),
        ("much", much, "$((number * 10000000000000000))", "CPU"),
    ] {
        let script = format!(
            "{up}\necho 'assay-counters 1 0 x'\nwhile read -r what number rest; do\n\
             case $what in listening | processes) ;; *) continue ;; esac\necho begin $number\n\
             case $what in\nlistening) echo sockets; echo holds 1 ;;\n\
             *) up; echo 'cpu  1 1 1 1 1 1 1 1'; echo cpus 1; echo t 1 1 {cpu} 0 ;;\nesac\necho end $number\ndone"
        );
        let path = common::script(servers.dir.path(), name, &script);
        servers.machine(name, &format!("ForceCommand {}", path.display()));
        let (home, config) = (Home::new(), servers.config());
        let short = ["--concurrency=1", "--at=", "--rounds=1", "--seconds=1s"];
        let ran = web(&home, &config, name, &nginx.url("/small"), &short);
        let all = steps(&ran);
        let why = all[0]["server"]["Err"].as_str().unwrap();
        assert!(why.contains(said) || why.contains("came"), "{why}");
    }
}
