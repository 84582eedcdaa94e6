//! Tests `assay run nfs://…` with a real NFS server, nfs-ganesha, in network and mount namespaces of their own.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

#[path = "common/mod.rs"]
mod common;

use assay_host::process::{Dies, Running};
use common::{Home, Ran, ended};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Programs of the tests.
const NEEDS: [&str; 7] = [
    "ganesha.nfsd",
    "rpcbind",
    "rpcinfo",
    "unshare",
    "nsenter",
    "setpriv",
    "ip",
];

/// Prepares the namespaces, and becomes the server. $1 is the directory of the test, $2 the size of the file system
/// that is exported.
const SERVE: &str = r#"
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /run/ganesha /var/lib/nfs
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/ganesha
mount -t tmpfs -o "size=$2" tmpfs "$1/export"
chmod 755 "$1/export"
mkdir "$1/export/below"
chown 7001:7001 "$1/export/below"
setpriv --pdeathsig KILL rpcbind -f -w &
until rpcinfo -p 127.0.0.1 > /dev/null 2>&1; do sleep 0.05; done
exec ganesha.nfsd -F -f "$1/conf" -L "$1/log" -p /run/ganesha.pid
"#;

/// An NFS server whose export is a file system in memory.
struct Ganesha {
    dir: tempfile::TempDir,
    server: Running,
}

/// What a server offers.
struct Offer {
    /// Versions of NFS.
    versions: &'static str,
    /// Settings of the export.
    export: &'static str,
    size: &'static str,
}

const PLAIN: Offer = Offer {
    versions: "3",
    export: "Squash = No_Root_Squash; Access_Type = RW;",
    size: "96m",
};

impl Ganesha {
    fn start(offer: &Offer) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let (versions, export) = (offer.versions, offer.export);
        let config = format!(
            "NFS_CORE_PARAM {{ Protocols = {versions}; MNT_Port = 20048; Enable_NLM = false; \
             Enable_RQUOTA = false; }}\n\
             EXPORT {{ Export_Id = 1; Path = {path}/export; Pseudo = /export; Protocols = {versions}; SecType = sys; \
             {export} FSAL {{ Name = VFS; }} }}\n"
        );
        std::fs::write(dir.path().join("conf"), config).unwrap();
        std::fs::create_dir(dir.path().join("export")).unwrap();
        let mut command = Command::new("unshare");
        command
            .args([
                "--net", "--mount", "sh", "-c", SERVE, "sh", &path, offer.size,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Running::start(command, Dies::WithThread).unwrap();
        let this = Self { dir, server };
        let begin = Instant::now();
        while !this.log().contains("NFS SERVER INITIALIZED") {
            let is_late = begin.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "the server does not start: {}", this.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        this
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn export(&self) -> PathBuf {
        self.dir.path().join("export")
    }

    /// Returns a command that runs beside the server.
    fn inside(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.server.pid().to_string();
        command.args(["--target", &pid, "--net", "--mount", "--wd=/", "--"]);
        command.args(argv);
        command
    }

    /// Measures the export; `end` follows its path in the URL.
    fn measure(&self, home: &Home, host: &str, end: &str, more: &[&str]) -> Ran {
        let url = format!("nfs://{host}{}{end}", self.export().display());
        let own = home.command(&[&["run", &url, "-q", "--rounds", "2"], more].concat());
        let words = std::iter::once(own.get_program()).chain(own.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        let mut command = self.inside(&words);
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        ended(command)
    }

    /// Lists the files of the export.
    fn files(&self) -> String {
        let export = self.export().display().to_string();
        let out = self.inside(&["find", &export, "-type", "f"]).output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    }
}

#[test]
fn an_export_of_a_real_server_is_measured_and_left_as_it_was() {
    if assay_testing::servers::skip(&NEEDS, true) {
        return;
    }
    let server = Ganesha::start(&PLAIN);
    let home = Home::new();
    // Through the port mapper, to a given port over IPv6, and a directory below the export.
    for (host, end) in [
        ("127.0.0.1", ""),
        ("[::1]", "?mountport=20048"),
        ("127.0.0.1:2049", "/below?uid=7001&gid=7001"),
    ] {
        let out = server.measure(&home, host, end, &["--size", "5MB", "--json"]);
        assert!(
            matches!(out.code, Some(0 | 1)),
            "{end}: {}{}",
            out.stdout,
            out.stderr
        );
        common::schemas::holds("run-share", &out.stdout, &["/transfers/0", "/link"]);
        let value: Value = serde_json::from_str(&out.stdout).unwrap();
        let one = &value["transfers"][0];
        for rates in [&one["writes"], &one["reads"]] {
            let rates = rates.as_array().unwrap();
            assert_eq!(rates.len(), 2, "{value:#}");
            assert!(
                rates.iter().all(|rate| rate.as_f64().unwrap() > 0.0),
                "{value:#}"
            );
        }
        assert_eq!(server.files(), "", "{end}");
    }
}

#[test]
fn a_refusal_of_a_real_server_names_its_reason_and_leaves_no_file() {
    if assay_testing::servers::skip(&NEEDS, true) {
        return;
    }
    let home = Home::new();
    let read_only = Offer {
        export: "Squash = No_Root_Squash; Access_Type = RO;",
        ..PLAIN
    };
    let squashed = Offer {
        export: "Squash = Root_Squash; Access_Type = RW;",
        ..PLAIN
    };
    let newer = Offer {
        versions: "4",
        ..PLAIN
    };
    let full = Offer {
        size: "2m",
        ..PLAIN
    };
    for (offer, end, expected) in [
        (&read_only, "", "read-only"),
        (&squashed, "", "?uid="),
        (&PLAIN, "/missing", "showmount -e"),
        (&newer, "", "mount -t nfs"),
        (&full, "", "--size"),
    ] {
        let server = Ganesha::start(offer);
        let out = server.measure(&home, "127.0.0.1", end, &["--size", "5MB"]);
        assert_eq!(
            out.code,
            Some(2),
            "{expected}: {}{}",
            out.stdout,
            out.stderr
        );
        assert!(out.stderr.contains(expected), "{expected}: {}", out.stderr);
        assert_eq!(server.files(), "", "{expected}");
    }
}
