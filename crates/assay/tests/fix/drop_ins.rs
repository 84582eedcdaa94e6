//! Fixes that create a file: the program reads it, the finding is gone, and undo removes it.

use super::bed::Bed;
use super::common::{self, Ran, ended, sent};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

/// A rule with the file that its fix creates.
struct DropIn {
    rule: &'static str,
    /// Script that plants the fault in /etc; it runs once. `$bed` is the directory of the machine.
    plant: &'static str,
    /// Script that prepares the machine for each command.
    places: &'static str,
    /// The created file.
    file: &'static str,
    /// The last line of the created file.
    line: &'static str,
    /// Script that fails unless the program reads the file and works with it.
    accepted: &'static str,
}

const CASES: [DropIn; 3] = [
    DropIn {
        rule: "apt-no-security-source",
        plant: "rm -rf /etc/apt/sources.list.d
printf 'deb http://deb.debian.org/debian bookworm main contrib\\n' > /etc/apt/sources.list",
        places: "",
        file: "/etc/apt/sources.list.d/assay-security.list",
        line: "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
               http://security.debian.org/debian-security bookworm-security main contrib",
        // This command reads no network.
        accepted: "apt-get update --print-uris | grep -qF bookworm-security/main",
    },
    DropIn {
        rule: "nginx-worker-processes",
        plant: "sed -i '/^worker_processes/d' /etc/nginx/nginx.conf
rm -f /etc/nginx/sites-enabled/default",
        places: "",
        file: "/etc/nginx/modules-enabled/90-assay-worker-processes.conf",
        line: "worker_processes auto;",
        accepted: "nginx
trap 'nginx -s quit' EXIT
test \"$(pgrep -c -P \"$(cat /run/nginx.pid)\")\" = \"$(nproc)\"",
    },
    DropIn {
        rule: "sysctl-aslr-off",
        plant: "mkdir \"$bed/packaged\"
cp -a /usr/lib/sysctl.d/. \"$bed/packaged\"
printf 'kernel.randomize_va_space = 0\\n' > \"$bed/packaged/90-vendor.conf\"",
        places: "[ ! -d \"$bed/packaged\" ] || mount --bind \"$bed/packaged\" /usr/lib/sysctl.d",
        file: "/etc/sysctl.d/99-assay-kernel.randomize_va_space.conf",
        line: "kernel.randomize_va_space = 2",
        accepted: "/usr/lib/systemd/systemd-sysctl --cat-config | grep randomize_va_space | tail -n 1 | grep -q '= 2'",
    },
];

/// Returns the rules that are fixed here and nowhere else.
pub fn rules() -> impl Iterator<Item = &'static str> {
    let all = CASES.iter().map(|case| case.rule);
    all.filter(|rule| *rule != "sysctl-aslr-off")
}

impl DropIn {
    fn new_bed(&self) -> Option<Bed> {
        let bed = Bed::new()?;
        let ran = self.sh(&bed, self.plant);
        assert_eq!(ran.code, Some(0), "{}: {}", self.rule, ran.stderr);
        Some(bed)
    }

    fn command(&self, bed: &Bed, then: &str) -> std::process::Command {
        self.command_in(bed, &["-m"], then)
    }

    fn command_in(&self, bed: &Bed, namespaces: &[&str], then: &str) -> std::process::Command {
        let place = bed.home.dir.path().display();
        let script = format!("set -e\nbed='{place}'\n{}\n{then}", self.places);
        let mut command = bed.command_in(namespaces, &["bash", "-c", &script]);
        command.env("BED_SCHEDULER", "none");
        command
    }

    fn sh(&self, bed: &Bed, then: &str) -> Ran {
        ended(self.command(bed, then))
    }

    fn assay(&self, bed: &Bed, words: &str) -> Ran {
        self.sh(bed, &format!("exec '{}' {words}", sent()))
    }

    fn fix(&self, bed: &Bed) -> Ran {
        self.assay(bed, &format!("check --fix {} --yes --json", self.rule))
    }

    /// Returns all findings of a check as rule and certainty. The check sees no processes of the machine.
    fn findings(&self, bed: &Bed) -> Vec<String> {
        let alone = ["-m", "-p", "--fork", "--mount-proc"];
        let check = format!("exec '{}' check --json", sent());
        let ran = ended(self.command_in(bed, &alone, &check));
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        let all = document["findings"].as_array().unwrap();
        let one = |one: &Value| format!("{} {}", one["rule"], one["certainty"]);
        let mut all: Vec<String> = all.iter().map(one).collect();
        all.sort();
        all
    }

    fn path(&self, bed: &Bed) -> std::path::PathBuf {
        bed.path(self.file.strip_prefix("/etc/").unwrap())
    }
}

/// Returns all paths below a directory, with the mode, owner and content of each.
fn tree(dir: &Path) -> Vec<(String, u32, u32, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let found = fs::symlink_metadata(&path).unwrap();
            let bytes = match found.file_type() {
                kind if kind.is_dir() => {
                    open.push(path.clone());
                    Vec::new()
                }
                kind if kind.is_file() => fs::read(&path).unwrap(),
                _ => Vec::new(),
            };
            let shown = path.to_string_lossy().into_owned();
            all.push((shown, found.mode(), found.uid(), bytes));
        }
    }
    all.sort();
    all
}

#[test]
fn created_files_clear_their_findings_and_are_removed_by_undo() {
    for case in &CASES {
        let rule = case.rule;
        let Some(bed) = case.new_bed() else { return };
        let etc = bed.path("");
        let (before, found) = (tree(&etc), case.findings(&bed));
        let own = format!("\"{rule}\" \"violated\"");
        assert!(found.contains(&own), "{rule}: {found:?}");
        assert!(!case.path(&bed).exists(), "{rule}");
        // Whatever the umask is.
        let fix = format!(
            "umask 077; exec '{}' check --fix {rule} --yes --json",
            sent()
        );
        let ran = case.sh(&bed, &fix);
        assert_eq!(ran.code, Some(0), "{rule}: {}{}", ran.stdout, ran.stderr);
        common::schemas::holds("check-fix", &ran.stdout, &[]);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["became"], "kept", "{document}");
        let files = document["files"].as_array().unwrap();
        assert_eq!(files.len(), 1, "{document}");
        assert_eq!(files[0]["path"], case.file);
        assert_eq!(files[0]["new"], true);
        let text = fs::read_to_string(case.path(&bed)).unwrap();
        assert_eq!(text.lines().next_back(), Some(case.line));
        let made = fs::metadata(case.path(&bed)).unwrap();
        assert_eq!(made.permissions().mode() & 0o7777, 0o644, "{rule}");
        assert_eq!((made.uid(), made.gid()), (0, 0), "{rule}");
        let above = fs::metadata(case.path(&bed).parent().unwrap()).unwrap();
        assert_eq!(above.permissions().mode() & 0o7777, 0o755, "{rule}");
        let left: Vec<String> = found.into_iter().filter(|one| *one != own).collect();
        assert_eq!(case.findings(&bed), left, "{rule}");
        let accepted = case.sh(&bed, case.accepted);
        assert_eq!(accepted.code, Some(0), "{rule}: {}", accepted.stderr);
        let undone = case.assay(&bed, &format!("check --undo {rule} --yes --json"));
        common::schemas::holds("check-undo", &undone.stdout, &[]);
        assert_eq!(
            undone.code,
            Some(0),
            "{rule}: {}{}",
            undone.stdout,
            undone.stderr
        );
        assert_eq!(tree(&etc), before, "{rule}: as before");
    }
}

/// A dry run writes nothing, undo keeps what somebody wrote, and a file of that name is never overwritten.
#[test]
fn files_of_others_are_kept() {
    let case = &CASES[0];
    let Some(bed) = case.new_bed() else { return };
    let (etc, file) = (bed.path(""), case.path(&bed));
    let before = tree(&etc);
    let dry = case.assay(&bed, &format!("check --fix {} --dry-run", case.rule));
    assert_eq!(dry.code, Some(0), "{}{}", dry.stdout, dry.stderr);
    assert!(
        dry.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        dry.stdout
    );
    assert_eq!(tree(&etc), before);

    let ran = case.fix(&bed);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}# ours now\n")).unwrap();
    let refused = case.assay(&bed, "check --undo --yes");
    assert_eq!(
        refused.code,
        Some(1),
        "{}{}",
        refused.stdout,
        refused.stderr
    );
    assert!(file.exists());
    fs::write(&file, &text).unwrap();
    let undone = case.assay(&bed, "trial --recover");
    assert_eq!(undone.code, Some(0), "{}{}", undone.stdout, undone.stderr);
    assert_eq!(tree(&etc), before);

    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "# theirs\n").unwrap();
    let ran = case.fix(&bed);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(fs::read(&file).unwrap(), b"# theirs\n");
}

/// Killed at any time: the file is complete or absent, and recovery or undo removes it with its directory.
#[test]
fn attack_kills_while_a_file_is_created() {
    let case = &CASES[0];
    let Some(bed) = case.new_bed() else { return };
    let before = tree(&bed.path(""));
    let script = format!(
        "'{}' check --fix {} --yes --json > /dev/null 2>&1 &\npid=$!\nsleep \"$wait\"\n\
         kill -9 $pid || true\nwait || true",
        sent(),
        case.rule
    );
    // The time of a whole fix, so that the kills are spread over its end, when it writes.
    let begun = std::time::Instant::now();
    let ran = case.fix(&bed);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let whole = begun.elapsed();
    let rounds = 8 * u32::try_from(assay_testing::attack_factor()).unwrap();
    let (mut tried, mut held) = (0, 0);
    for round in 0..rounds {
        bed.assay(&["check", "--undo", "--yes"]);
        let wait = whole * (round + 1) / rounds;
        let mut command = case.command(&bed, &script);
        command.env("wait", format!("{:.3}", wait.as_secs_f64()));
        ended(command);
        std::thread::sleep(Duration::from_millis(10));
        let text = fs::read_to_string(case.path(&bed)).unwrap_or_default();
        let complete = text.is_empty() || text.lines().next_back() == Some(case.line);
        let recovered = case.assay(&bed, "trial --recover");
        if case.path(&bed).exists() {
            bed.assay(&["check", "--undo", "--yes"]);
        }
        tried += 1;
        let is_back = recovered.code == Some(0) && tree(&bed.path("")) == before;
        held += u64::from(complete && is_back);
    }
    assay_testing::attacked("kills while a fix creates a file", tried, held);
}
