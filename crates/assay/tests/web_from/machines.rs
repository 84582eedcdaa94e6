//! Network namespaces without names: one with an nginx, three with a route to it. A login to one of the three reaches
//! a sshd that ssh starts there, so no port of this machine is used.

use super::common::servers::Servers;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Machines {
    servers: Servers,
    /// Processes that hold the namespaces: that of the server, and those of the generators.
    holders: Vec<Child>,
    nginx: Child,
    aliases: u16,
    pub config: String,
}

impl Drop for Machines {
    fn drop(&mut self) {
        for child in self.holders.iter_mut().chain([&mut self.nginx]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for a condition.
pub fn until(what: &str, there: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !there() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn namespace(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

fn done(program: &str, words: &str) {
    let status = Command::new(program)
        .args(words.split(' '))
        .status()
        .unwrap();
    assert!(status.success(), "{program} {words}");
}

fn hold() -> Child {
    let child = Command::new("unshare")
        .args(["--net", "sleep", "3600"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let own = namespace(std::process::id());
    until("a namespace", || {
        // It is this program or `unshare` until it executes its command.
        let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id()));
        name.is_ok_and(|name| name.trim() == "sleep") && namespace(child.id()) != own
    });
    child
}

/// Adds a name for a machine: a login reaches a sshd that ssh starts in its namespace.
fn way(servers: &mut Servers, name: &str, pid: u32, port: u16, more: &str) {
    let sshd = assay_host::Host::which(&assay_host::LiveHost, "sshd".as_ref()).unwrap();
    let key = servers.public("host");
    let file = servers.path(&format!("{name}.sshd"));
    let at = |name: &str| servers.path(name).display().to_string();
    let config = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n{more}\n",
        at("host"),
        at("id.pub")
    );
    std::fs::write(&file, config).unwrap();
    let proxy = format!(
        "  ProxyCommand nsenter -t {pid} -n {} -i -f {} -E {}\n",
        sshd.display(),
        file.display(),
        at(&format!("{name}.log"))
    );
    servers.name(name, port, &proxy);
    let _ = writeln!(servers.known, "[127.0.0.1]:{port} {key}");
}

impl Machines {
    pub fn new() -> Option<Self> {
        let needs = ["nginx", "ip", "unshare", "nsenter"];
        if let Some(lacking) = assay_testing::servers::find_missing(&needs, true) {
            assay_testing::skipped("namespaces", format_args!("lacks {lacking}"));
            return None;
        }
        let mut servers = Servers::new()?;
        let holders: Vec<Child> = (0..4).map(|_| hold()).collect();
        let server = holders[0].id();
        done("nsenter", &format!("-t {server} -n ip link set lo up"));
        done(
            "nsenter",
            &format!("-t {server} -n ip addr add 10.77.0.1/32 dev lo"),
        );
        for (which, holder) in (1_u16..).zip(&holders[1..]) {
            let pid = holder.id();
            let there = format!("-t {server} -n ip");
            done(
                "nsenter",
                &format!("{there} link add v{which} type veth peer name eth0 netns {pid}"),
            );
            done(
                "nsenter",
                &format!("{there} addr add 10.77.{which}.1/24 dev v{which}"),
            );
            done("nsenter", &format!("{there} link set v{which} up"));
            let here = format!("-t {pid} -n ip");
            done("nsenter", &format!("{here} link set lo up"));
            done(
                "nsenter",
                &format!("{here} addr add 10.77.{which}.2/24 dev eth0"),
            );
            done("nsenter", &format!("{here} link set eth0 up"));
            done(
                "nsenter",
                &format!("{here} route add default via 10.77.{which}.1"),
            );
            way(&mut servers, &format!("gen{which}"), pid, which, "");
        }
        let nginx = nginx(&servers, server);
        let config = servers.config();
        Some(Self {
            servers,
            holders,
            nginx,
            aliases: 0,
            config,
        })
    }

    /// Adds another name for the third generator's machine, with these lines for its sshd.
    pub fn alias(&mut self, name: &str, more: &str) {
        let port = 100 + self.aliases;
        self.aliases += 1;
        way(&mut self.servers, name, self.holders[3].id(), port, more);
        self.config = self.servers.config();
    }

    /// Replaces the key of the machine that was added last.
    pub fn change_key(&mut self) {
        let other = self.servers.public("other");
        let known = self.servers.known.trim_end();
        let last = known.rfind('\n').map_or(0, |at| at + 1);
        let place = known[last..].split(' ').next().unwrap().to_owned();
        self.servers.known.truncate(last);
        let _ = writeln!(self.servers.known, "{place} {other}");
        self.config = self.servers.config();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.servers.path(name)
    }

    /// 80 gives consent to a load, 81 does not, 82 up to 300 requests per second; 83 is like 80 and
    /// keeps a log.
    pub fn url(&self, port: u16) -> String {
        format!("http://10.77.0.1:{port}/")
    }

    fn log(&self, port: u16) -> String {
        std::fs::read_to_string(self.servers.path(&format!("access-{port}"))).unwrap_or_default()
    }

    /// Returns the requested paths of a port.
    pub fn asked(&self, port: u16) -> Vec<String> {
        let log = self.log(port);
        let all = log.lines().filter_map(|line| line.split(' ').nth(1));
        all.map(str::to_owned).collect()
    }

    /// Returns the number of requests of a generator.
    pub fn loads(&self, port: u16, which: usize) -> usize {
        let from = format!("10.77.{which}.2 ");
        self.log(port)
            .lines()
            .filter(|line| line.starts_with(&from))
            .count()
    }

    /// Returns the processes in a generator's namespace, except its holder.
    fn processes(&self, which: usize) -> Vec<(u32, String)> {
        let holder = self.holders[which].id();
        let own = namespace(holder);
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != holder && namespace(*pid) == own)
            .map(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                (pid, String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }

    /// Returns the process that generates load.
    pub fn generator(&self, which: usize) -> Option<Pid> {
        let all = self.processes(which);
        let found = all.iter().find(|(_, line)| line.contains(" --generate"))?;
        Pid::from_raw(i32::try_from(found.0).ok()?)
    }

    /// Checks that no process is left, and so none that uses the directory.
    pub fn nothing_left(&self) {
        until("nothing is left", || {
            (1..=3).all(|which| self.processes(which).is_empty())
        });
    }
}

fn nginx(servers: &Servers, namespace: u32) -> Child {
    let dir = servers.dir.path().display();
    let server = |port: u16, consent: &str| {
        let consent = match consent {
            "" => "return 404;".to_owned(),
            lines => format!("return 200 \"assay-consent 1\\nuntil 2099-12-31\\n{lines}\";"),
        };
        let log = match port {
            81 | 83 => format!("access_log {dir}/access-{port} short;"),
            _ => "access_log off;".to_owned(),
        };
        format!(
            "server {{ listen {port}; {log} default_type text/plain;
               location = /.well-known/assay-consent {{ {consent} }}
               location / {{ return 200 \"hello\\n\"; }} }}\n"
        )
    };
    let all = [
        server(80, "\n"),
        server(81, ""),
        server(82, "most-requests-per-second 300\\n"),
        server(83, "\n"),
    ];
    let config = format!(
        "user root; daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/nginx.error;
         events {{ worker_connections 1024; }}
         http {{ log_format short '$remote_addr $request_uri'; keepalive_requests 1000000;
           client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
           uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
           {} }}",
        all.concat()
    );
    let file = servers.path("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let log = servers.path("nginx.error");
    let pid = servers.path("nginx.pid");
    let child = Command::new("nsenter")
        .args(["-t", &namespace.to_string(), "-n", "nginx", "-e"])
        .arg(&log)
        .arg("-c")
        .arg(&file)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("nginx", || {
        std::fs::read_to_string(&pid).is_ok_and(|text| !text.trim().is_empty())
    });
    child
}

/// Limits the CPU time: by a control group, else by stopping it most of the time.
pub struct Capped(Option<PathBuf>);

impl Drop for Capped {
    fn drop(&mut self) {
        if let Some(group) = &self.0 {
            let _ = std::fs::remove_dir(group);
        }
    }
}

impl Capped {
    pub fn new() -> Self {
        let name = format!("assay-test-{}", std::process::id());
        // Version 2, else version 1.
        let ways = [
            ("/sys/fs/cgroup", [("cpu.max", "4000 100000"); 2]),
            (
                "/sys/fs/cgroup/cpu",
                [
                    ("cpu.cfs_period_us", "100000"),
                    ("cpu.cfs_quota_us", "4000"),
                ],
            ),
        ];
        for (root, settings) in ways {
            let dir = PathBuf::from(root).join(&name);
            if std::fs::create_dir(&dir).is_err() {
                continue;
            }
            let set = |(file, value): &(&str, &str)| {
                // It exists only where the controller is available.
                let file = dir.join(file);
                file.exists() && std::fs::write(file, value).is_ok()
            };
            let all = settings.iter().all(set);
            let group = Self(Some(dir));
            if all {
                return group;
            }
        }
        Self(None)
    }

    pub fn take(&self, pid: Pid) {
        let number = pid.as_raw_nonzero().to_string();
        match &self.0 {
            Some(group) => std::fs::write(group.join("cgroup.procs"), number).unwrap(),
            None => drop(std::thread::spawn(move || {
                let wait = |ms| std::thread::sleep(Duration::from_millis(ms));
                while kill_process(pid, Signal::STOP).is_ok() {
                    wait(60);
                    let _ = kill_process(pid, Signal::CONT);
                    wait(5);
                }
            })),
        }
    }
}
