//! A separate machine: copies of the services' configurations in a mount namespace.

use super::common::{Home, Ran, ended, sent};
use crate::common::schemas::holds;
use serde_json::Value;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Mounts the copies for this process and its children. cron and atd of the namespace end with the
/// started process.
const INSIDE: &str = r#"set -e
bed=$1; shift
mount --bind "$bed/etc" /etc
[ -n "${BED_KERNEL:-}" ] || { mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys; }
PATH="$bed/bin:$PATH"
mkdir -p -m 700 "$bed/lib" "$bed/cron.d" "$bed/crontabs" /var/lib/assay
mount --bind "$bed/lib" /var/lib/assay
mount --bind "$bed/cron.d" /etc/cron.d
mount --bind "$bed/crontabs" /var/spool/cron/crontabs
: > "$bed/crontab"
mount --bind "$bed/crontab" /etc/crontab
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/lock
# The wish to die with the parent counts only when it is there before the parent is gone.
serve() { setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$0" ] && exec "$@"' $$ "$@" > /dev/null 2>&1 & }
case ${BED_SCHEDULER:-cron} in
cron) serve cron -f ;;
at)
    for one in atjobs atspool; do
        [ -d "$bed/$one" ] || { cp -a "/var/spool/cron/$one" "$bed/$one"; find "$bed/$one" -type f -name 'a*' -delete; }
        mount --bind "$bed/$one" "/var/spool/cron/$one"
    done
    serve atd -f ;;
esac
exec "$@"
"#;

/// A machine with the default configurations of its packages.
pub struct Bed {
    pub home: Home,
}

impl Bed {
    /// Creates it; `None` if a requirement is missing.
    pub fn new() -> Option<Self> {
        let usable = Command::new("unshare")
            .args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/run"])
            .stderr(Stdio::null())
            .status();
        if !usable.is_ok_and(|status| status.success()) {
            assay_testing::skipped("root", "needs mount namespaces");
            return None;
        }
        for (part, path) in [
            ("sshd", "/etc/ssh/sshd_config"),
            ("nginx", "/etc/nginx/nginx.conf"),
            ("postfix", "/etc/postfix/main.cf"),
            ("dovecot", "/etc/dovecot/conf.d/10-auth.conf"),
            ("samba", "/etc/samba/smb.conf"),
            ("cron", "/usr/sbin/cron"),
            ("at", "/usr/sbin/atd"),
        ] {
            if !Path::new(path).exists() {
                assay_testing::skipped(part, format!("{path} is not there"));
                return None;
            }
        }
        let home = Home::in_memory();
        let etc = home.dir.path().join("etc");
        let copied = Command::new("cp").arg("-a").arg("/etc").arg(&etc).status();
        assert!(copied.unwrap().success());
        let bed = Self { home };
        bed.add_apache_command();
        Some(bed)
    }

    /// Writes apache2ctl where only Apache itself is installed: the package apache2 has the command.
    fn add_apache_command(&self) {
        if Path::new("/usr/sbin/apache2ctl").exists() {
            return;
        }
        let bin = self.home.dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let text = "#!/bin/sh\nexec /usr/sbin/apache2 -f /etc/apache2/apache2.conf \"$@\"\n";
        std::fs::write(bin.join("apache2ctl"), text).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join("apache2ctl"), mode).unwrap();
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.home.dir.path().join("etc").join(file)
    }

    pub fn edit(&self, file: &str, edit: impl FnOnce(String) -> String) {
        let path = self.path(file);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, edit(text)).unwrap();
    }

    /// Returns a command that runs inside.
    pub fn command(&self, argv: &[&str]) -> Command {
        self.command_in(&["-m"], argv)
    }

    /// Returns a command that runs inside, in these namespaces.
    pub fn command_in(&self, namespaces: &[&str], argv: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(namespaces)
            .args(["sh", "-c", INSIDE, "sh"])
            .arg(self.home.dir.path())
            .args(argv)
            .env("ASSAY_STATE", self.home.state())
            .env_remove("ASSAY_LOCKS")
            .env("XDG_CONFIG_HOME", self.home.dir.path().join("config"))
            .env("COLUMNS", "80")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, argv: &[&str]) -> Ran {
        ended(self.command(argv))
    }

    pub fn assay(&self, words: &[&str]) -> Ran {
        self.run(&[&[sent()], words].concat())
    }

    /// Returns all findings of a check as rule and certainty. Processes of the machine come and go, so the check
    /// sees none of them.
    pub fn findings(&self) -> Vec<String> {
        let alone = ["-m", "-p", "--fork", "--mount-proc"];
        let ran = ended(self.command_in(&alone, &[sent(), "check", "--json"]));
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        let all = document["findings"].as_array().unwrap();
        let one = |one: &Value| format!("{} {}", one["rule"], one["certainty"]);
        // Guests of other users do not belong to this machine.
        let runs = |one: &&Value| {
            one["subject"]
                .as_str()
                .is_some_and(|of| of.starts_with("vm."))
        };
        let mut all: Vec<String> = all.iter().filter(|one| !runs(one)).map(one).collect();
        all.sort();
        all
    }

    /// Applies a fix with `--yes`; confirms it if necessary.
    pub fn mend(&self, rule: &str) -> Ran {
        let args = [
            "check",
            "--fix",
            rule,
            "--yes",
            "--json",
            "--confirm-within",
            "60s",
        ];
        let argv = [&[sent()], &args[..]].concat();
        let command = self.command(&argv);
        let done = std::thread::spawn(move || ended(command));
        while !done.is_finished() {
            let waits = self.waits();
            if waits {
                let confirmed = self.assay(&["check", "--confirm", "--json"]);
                assert_eq!(confirmed.code, Some(0), "{}", confirmed.stderr);
                holds("check-confirm", &confirmed.stdout, &[]);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let ran = done.join().unwrap();
        if !ran.stdout.is_empty() {
            holds("check-fix", &ran.stdout, &[]);
        }
        ran
    }

    /// Returns the remaining orders to revert changes from outside of their sessions.
    pub fn armed(&self) -> Vec<PathBuf> {
        let within = |dir: &str| {
            let all = std::fs::read_dir(self.home.dir.path().join(dir));
            all.into_iter().flatten().flatten().map(|one| one.path())
        };
        let jobs = within("atjobs").filter(|one| !one.ends_with(".SEQ"));
        within("lib/undo")
            .chain(within("cron.d"))
            .chain(jobs)
            .collect()
    }

    /// Whether a session waits for its confirmation.
    pub fn waits(&self) -> bool {
        let sessions = self.home.state().join("journal/sessions");
        let mut all = std::fs::read_dir(sessions).into_iter().flatten().flatten();
        all.any(|one| one.path().join("waits").exists() && !one.path().join("confirmed").exists())
    }

    /// Returns everything about a file except its access time.
    pub fn look(&self, file: &str) -> (Vec<u8>, u32, u32, u32, i64, i64, Vec<u8>) {
        let path = self.path(file);
        let path = path.canonicalize().unwrap_or(path);
        let found = std::fs::metadata(&path).unwrap();
        let mut value = vec![0; 256];
        let length = rustix::fs::getxattr(&path, "user.assay", &mut value[..]).unwrap_or(0);
        value.truncate(length);
        (
            std::fs::read(&path).unwrap(),
            found.mode(),
            found.uid(),
            found.gid(),
            found.mtime(),
            found.mtime_nsec(),
            value,
        )
    }

    /// Sets an unusual owner, mode, attribute and time.
    pub fn adorn(&self, file: &str) {
        let path = self.path(file);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::chown(&path, None, Some(54321)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        let _ = rustix::fs::setxattr(&path, "user.assay", b"x", flags);
        let time = std::time::UNIX_EPOCH + Duration::new(900_000_000, 123_456_789);
        let file = std::fs::File::open(&path).unwrap();
        file.set_times(std::fs::FileTimes::new().set_modified(time))
            .unwrap();
    }
}
