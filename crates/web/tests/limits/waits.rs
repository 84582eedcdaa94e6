//! Tests servers that wait for another component, built from real programs. The reported cause must be this component.

use super::*;
use assay_judge::web::judge;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A program that ends when the test drops the value.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // A master process that receives SIGTERM ends its workers too.
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Returns the first of these programs that is installed.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let found = names
        .iter()
        .find_map(|name| assay_testing::servers::find(name));
    if found.is_none() {
        assay_testing::skipped(names[0], "it is not installed");
    }
    found
}

/// Starts nginx as a proxy for a backend, and finds the server by its port.
fn proxy(location: &str) -> Option<(Nginx, Target, ServerProcesses)> {
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx"], false) {
        assay_testing::skipped(&lacking, "it is a part of the stage");
        return None;
    }
    let nginx = Nginx::start(&format!("location /app {{ {location} }}")).unwrap();
    let target = target(&nginx.url("/app"), &asked());
    let server = ServerProcesses::listening(&target.addresses[0]);
    Some((nginx, target, server))
}

fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn wait_for(path: &Path) {
    for _ in 0..200 {
        if path.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{} does not appear", path.display());
}

/// Returns the upstream for which most sockets waited.
fn upstream(step: &Step) -> &assay_model::web::Upstream {
    let sockets = step.server.as_ref().unwrap().sockets.as_ref().unwrap();
    sockets.upstreams.first().unwrap()
}

#[test]
fn a_proxy_whose_backend_sleeps() {
    let _alone = alone();
    let backend = slow(Duration::from_millis(20));
    let backend = backend.trim_end_matches('/').to_owned();
    let Some((_nginx, target, server)) = proxy(&format!("proxy_pass {backend};")) else {
        return;
    };
    let step = measured(&target, &server, &settings(8, None), Limited::Backend);
    let upstream = upstream(&step);
    assert_eq!(format!("http://{}", upstream.address), backend);
    assert!(
        upstream.waiting > 4.0 && upstream.used.is_ok(),
        "{upstream:?}"
    );
}

#[test]
fn a_server_that_compresses_is_the_limit_itself() {
    let _alone = alone();
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx"], false) {
        return assay_testing::skipped(&lacking, "it is a part of the stage");
    }
    let compressing = "gzip on; gzip_comp_level 9; gzip_min_length 1; gzip_types *;";
    let nginx = Nginx::start(compressing).unwrap();
    nginx.file("text", 400_000).unwrap();
    let asked = ConsentRequest {
        headers: vec![("Accept-Encoding".to_owned(), "gzip".to_owned())],
        ..asked()
    };
    let target = target(&nginx.url("/text"), &asked);
    let server = ServerProcesses::listening(&target.addresses[0]);
    let step = measured(&target, &server, &settings(8, None), Limited::Server);
    assert!(step.server.unwrap().sockets.unwrap().upstreams.is_empty());
}

#[test]
fn a_full_pool_of_php_behind_a_local_socket() {
    let _alone = alone();
    let Some(program) = installed(&["php-fpm", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2"]) else {
        return;
    };
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx"], true) {
        return assay_testing::skipped(&lacking, "php-fpm starts as root here");
    }
    let directory = open_directory();
    let path = directory.path();
    let (socket, script) = (path.join("socket"), path.join("app.php"));
    fs::write(
        &script,
        "<?php for ($i = 0; $i < 40000; $i++) { md5($i); } echo 'done';",
    )
    .unwrap();
    let config = path.join("fpm.conf");
    let text = format!(
        "[global]\nerror_log = {0}/log\ndaemonize = no\n[www]\nuser = nobody\ngroup = nogroup\nlisten = {0}/socket\n\
         listen.mode = 0666\npm = static\npm.max_children = 1\n",
        path.display()
    );
    fs::write(&config, text).unwrap();
    let child = Command::new(program)
        .arg("-F")
        .arg("-y")
        .arg(&config)
        .spawn()
        .unwrap();
    let _fpm = Program(child);
    wait_for(&socket);
    let location = format!(
        "fastcgi_pass unix:{}; fastcgi_param SCRIPT_FILENAME {}; fastcgi_param REQUEST_METHOD $request_method;",
        socket.display(),
        script.display()
    );
    let Some((_nginx, target, server)) = proxy(&location) else {
        return;
    };
    let step = measured(&target, &server, &settings(8, None), Limited::Backend);
    let upstream = upstream(&step);
    assert_eq!(Path::new(&upstream.address), socket);
    let used = upstream.used.as_ref().unwrap();
    assert!(
        used.cpu.0 > 0 && used.what.starts_with("php-fpm"),
        "{used:?}"
    );
}

#[test]
fn a_full_worker_of_gunicorn() {
    let _alone = alone();
    let Some(program) = installed(&["gunicorn"]) else {
        return;
    };
    let directory = open_directory();
    let path = directory.path();
    let application = "def application(environ, start):\n    sum(range(60000))\n    start('200 OK', \
                       [('Content-Length', '4')])\n    return [b'done']\n";
    fs::write(path.join("app.py"), application).unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let child = Command::new(program)
        .current_dir(path)
        .args([
            "--workers",
            "1",
            "--log-level",
            "error",
            "--pid",
            "pid",
            "--bind",
        ])
        .args([&format!("127.0.0.1:{port}"), "app:application"])
        .spawn()
        .unwrap();
    let _gunicorn = Program(child);
    wait_for(&path.join("pid"));
    let Some((_nginx, target, server)) = proxy(&format!("proxy_pass http://127.0.0.1:{port};"))
    else {
        return;
    };
    let step = measured(&target, &server, &settings(8, None), Limited::Backend);
    let used = upstream(&step).used.as_ref().unwrap();
    assert!(used.cpu.0 > 0, "{used:?}");
}

/// A control group with a CPU quota, in the version that this machine supports; `None` if it cannot be created.
struct Group(PathBuf);

impl Group {
    /// Creates a group that may use this fraction of a CPU. The fraction must be less than the CPU time that a program
    /// gets anyway on a machine with much other work.
    fn with_quota(share: f64) -> Option<Self> {
        let name = format!("assay-web-{}", std::process::id());
        let quota = (share * 100_000.0) as u64;
        for (root, file, text) in [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", quota.to_string()),
            ("/sys/fs/cgroup", "cpu.max", format!("{quota} 100000")),
        ] {
            let group = Self(Path::new(root).join(&name));
            let file = group.0.join(file);
            if fs::create_dir(&group.0).is_ok() && file.exists() && fs::write(file, text).is_ok() {
                return Some(group);
            }
        }
        assay_testing::skipped("CPU quota", "no control group with one can be made here");
        None
    }

    fn take(&self, server: &ServerProcesses) {
        let ServerProcesses::Processes(pids) = server else {
            panic!("{server:?}");
        };
        for pid in pids {
            fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group is empty when its processes have ended, which takes a moment.
        for _ in 0..100 {
            if !self.0.exists() || fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_server_with_a_cpu_quota() {
    let _alone = alone();
    let Some(group) = Group::with_quota(0.02) else {
        return;
    };
    let Some(nginx) = Nginx::with_files("") else {
        return;
    };
    let target = target(&nginx.url("/small"), &asked());
    let server = ServerProcesses::listening(&target.addresses[0]);
    group.take(&server);
    let step = measured(&target, &server, &settings(8, None), Limited::Quota);
    let quota = step.server.unwrap().quota.unwrap();
    assert_eq!(quota.cpus, Some(0.02));
    assert!(quota.throttled > 0 && quota.throttled <= quota.periods && quota.time.0 > 0);
    drop(nginx);
}

#[test]
fn a_backend_with_a_cpu_quota() {
    let _alone = alone();
    let Some(group) = Group::with_quota(0.02) else {
        return;
    };
    let Some(behind) = Nginx::with_files("") else {
        return;
    };
    group.take(&ServerProcesses::listening(
        &([127, 0, 0, 1], behind.port()).into(),
    ));
    let location = format!("proxy_pass http://127.0.0.1:{}/small;", behind.port());
    let Some((_nginx, target, server)) = proxy(&location) else {
        return;
    };
    let step = measured(&target, &server, &settings(8, None), Limited::Backend);
    let used = upstream(&step).used.as_ref().unwrap();
    let quota = used.quota.as_ref().unwrap();
    assert!(quota.throttled > 0, "{quota:?}");
    drop(behind);
}

#[test]
fn a_server_that_shares_its_cpu() {
    let _alone = alone();
    let Some(nginx) = Nginx::with_files("") else {
        return;
    };
    let target = target(&nginx.url("/small"), &asked());
    let server = ServerProcesses::listening(&target.addresses[0]);
    let ServerProcesses::Processes(pids) = &server else {
        panic!("{server:?}");
    };
    let mut cpus = CpuSet::new();
    cpus.set(0);
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(*pid as i32);
        rustix::thread::sched_setaffinity(pid, &cpus).unwrap();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = assay_testing::Stop(&stop);
        scope.spawn(|| {
            rustix::thread::sched_setaffinity(None, &cpus).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let step = measured(&target, &server, &settings(8, None), Limited::Server);
        let used = step.server.unwrap();
        assert!(
            used.cpu.0 < used.window.0 && used.busiest.unwrap() > 0.5,
            "{used:?}"
        );
    });
}

#[test]
fn a_link_whose_speed_nobody_knows() {
    let _alone = alone();
    if !namespaces() {
        return;
    }
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx", "tc"], true) {
        return assay_testing::skipped(&lacking, "it is a part of the stage");
    }
    let (near, far) = linked("200mbit");
    let consent = "assay-consent 1\nuntil 2026-12-31\nmost-connections 100\n";
    let nginx = far.within(|| nginx_at("10.77.0.2", consent));
    let steps = near.within(|| {
        let target = find_at("http://10.77.0.2:8080/big", &asked()).unwrap();
        let server = ServerProcesses::process(nginx.nginx.id()).unwrap();
        [4, 16].map(|connections| {
            measured(
                &target,
                &server,
                &settings(connections, None),
                Limited::Network,
            )
        })
    });
    for step in &steps {
        assert_eq!(step.link.as_ref().unwrap().speed, None);
        let sockets = step.server.as_ref().unwrap().sockets.as_ref().unwrap();
        assert!(
            sockets.sending > 0.5 * sockets.clients && sockets.clients >= 3.0,
            "{sockets:?}"
        );
    }
    let judged = judge(&steps, 1);
    assert!(
        judged
            .steps
            .iter()
            .all(|step| step.limit.who == Limited::Network)
    );
    let flat = "bodies with 4 connections as with 16";
    assert!(
        judged
            .steps
            .iter()
            .all(|step| step.limit.evidence.contains(flat))
    );
}
