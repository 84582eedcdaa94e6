//! Creates a temporary machine for a fixture: the fixture's files over the programs of this machine, in a separate
//! mount namespace. The module `cases` contains the remedies that are executed there.

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use assay_model::advice::Advice;
use assay_model::finding::{Certainty, Finding};
use assay_model::{FactPlace, Facts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Directories of services. If the fixture has such a directory, the files of this machine in it are hidden.
const OWN: &str = "etc/apache2 etc/dovecot etc/fstab etc/initramfs-tools etc/libvirt etc/lighttpd etc/modprobe.d \
    etc/mysql etc/nginx etc/openvpn etc/postfix etc/postgresql etc/samba etc/spamassassin etc/ssh etc/sysctl.d \
    etc/sysctl.conf root/.ssh";

/// Script that copies the files of a fixture over the files of this machine.
const FURNISH: &str = r#"
for one in $OWN; do [ ! -e "$TREE/$one" ] || rm -rf "$DIR/root/$one"; done
cp -a --remove-destination "$TREE/." "$DIR/root/"
rm -f "$DIR/root/ORIGIN"
mkdir -p "$DIR/root/host"
"#;

/// Script that runs another script in the root directory. The real machine is below /host, for files that a fixture
/// lacks. The script cannot change the machine, because it has no devices, no network, and only its own processes.
const ENTER: &str = r#"
mount --bind / "$DIR/root/host"
mount -o remount,bind,ro "$DIR/root/host"
mount -t tmpfs tmpfs "$DIR/root/dev"
mkdir -m 1777 "$DIR/root/dev/shm"
for one in null zero random urandom; do : > "$DIR/root/dev/$one"; mount --bind /dev/$one "$DIR/root/dev/$one"; done
mkdir "$DIR/root/dev/net"
: > "$DIR/root/dev/net/tun"
[ ! -e /dev/net/tun ] || mount --bind /dev/net/tun "$DIR/root/dev/net/tun"
if [ ! -e "$DIR/up/proc" ]; then
    mount -t proc proc "$DIR/root/proc"
    mount -o remount,bind,ro "$DIR/root/proc"
fi
ip link set lo up
exec chroot "$DIR/root" sh -ec "$SCRIPT"
"#;

const MOUNT: &str = r#"set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$DIR/up,workdir=$DIR/work" "$DIR/root"
"#;

/// The root directory of a machine that was created from a fixture.
pub struct Machine {
    dir: TempDir,
    wireless: bool,
}

impl Machine {
    /// Returns whether this machine supports such root directories. They need root rights, mount namespaces, and an
    /// overlay on tmpfs.
    pub fn is_possible() -> bool {
        let tree = tempfile::tempdir().unwrap();
        let made = Self::place().is_ok_and(|dir| Self::make(dir, tree.path(), false).is_ok());
        if !made {
            assay_testing::skipped("overlay", "needs root, mount namespaces and /dev/shm");
        }
        made
    }

    /// Returns a directory for the upper layer. It must not be below the lower layer, which is the root file system.
    fn place() -> std::io::Result<TempDir> {
        let dir = tempfile::tempdir_in("/dev/shm")?;
        for layer in ["up", "work", "root"] {
            std::fs::create_dir(dir.path().join(layer))?;
        }
        Ok(dir)
    }

    fn make(dir: TempDir, tree: &Path, wireless: bool) -> Result<Self, String> {
        let machine = Self { dir, wireless };
        machine.namespace(FURNISH, tree, "", &[])?;
        Ok(machine)
    }

    /// Creates the machine for a fixture of a page.
    pub fn of(page: &Advice, tree: &Path) -> Result<Self, String> {
        Self::make(Self::place().unwrap(), tree, assay_wifi::judges(page))
    }

    fn namespace(
        &self,
        then: &str,
        tree: &Path,
        script: &str,
        variables: &[(&str, String)],
    ) -> Result<String, String> {
        let ran = Command::new("timeout")
            .args(["100", "unshare", "-mnpf", "--kill-child", "sh", "-c"])
            .arg(format!("{MOUNT}{then}"))
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8")
            // No service is started or stopped in this root.
            .env("SYSTEMD_OFFLINE", "1")
            .env("DIR", self.dir.path())
            .env("OWN", OWN)
            .env("TREE", tree)
            .env("SCRIPT", script)
            .env("ISSUE", super::cases::ISSUING)
            .env("CHAIN", super::cases::CHAIN)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match ran.status.success() {
            true => Ok(text(&ran.stdout)),
            false => {
                let first = script.trim().lines().next().unwrap_or("no script");
                Err(format!(
                    "{first}: {} {}",
                    text(&ran.stdout),
                    text(&ran.stderr)
                ))
            }
        }
    }

    /// Runs a shell script in the root directory of the machine.
    pub fn run(&self, script: &str, variables: &[(&str, String)]) -> Result<String, String> {
        self.namespace(ENTER, Path::new("/"), script, variables)
    }

    fn up(&self) -> PathBuf {
        self.dir.path().join("up")
    }

    fn facts(&self) -> Facts {
        if self.wireless {
            return wireless(&self.up());
        }
        let options = CollectOptions {
            services: true,
            accounts: true,
            ..CollectOptions::default()
        };
        collect(&Root::open(&self.up()).unwrap(), &options)
    }

    /// Returns the findings of all pages. Pages about wireless networks read files of their own.
    pub fn findings(&self) -> Vec<Finding> {
        static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::builtin().unwrap());
        let mut pages = CATALOGUE.all();
        pages.retain(|page| page.check.is_some() && assay_wifi::judges(page) == self.wireless);
        findings(pages, &self.facts()).findings
    }

    /// Returns the findings of one page whose violation is certain.
    pub fn found(&self, page: &Advice) -> Vec<Finding> {
        let mut found = findings([page], &self.facts()).findings;
        found.retain(|finding| finding.certainty == Certainty::Violated);
        found
    }
}

/// Returns the facts of the wireless networks in the files of a directory, with the names of the files.
fn wireless(dir: &Path) -> Facts {
    let mut files: Vec<(String, assay_wifi::Reading)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let reading = assay_wifi::read(&std::fs::read(&path).unwrap());
            let reading = reading.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (name, reading)
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let named: Vec<assay_wifi::WifiFile<'_>> = files
        .iter()
        .map(|(path, reading)| assay_wifi::WifiFile { path, reading })
        .collect();
    assay_wifi::facts(&named, &[])
}

/// Returns the first file and line of a finding.
pub fn marked(finding: &Finding) -> (String, String) {
    let place = finding.places.iter().find_map(|place| match place {
        FactPlace::File { path, line, .. } => Some((path.clone(), line.unwrap_or(0).to_string())),
        _ => None,
    });
    place.unwrap_or_default()
}

/// Counts the findings of each page, separately for certain and uncertain violations.
pub fn count(findings: &[Finding]) -> BTreeMap<(String, Certainty), usize> {
    let mut counts = BTreeMap::new();
    for finding in findings {
        *counts
            .entry((finding.rule.clone(), finding.certainty))
            .or_default() += 1;
    }
    counts
}
