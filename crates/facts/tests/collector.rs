//! Compares the shell collector with the collectors of this crate. Both must give the same facts for the same machine.
#![allow(clippy::disallowed_methods, reason = "tests run the script")]

use assay_facts::{CollectOptions, collect, script};
use assay_host::{Bundle, Host, LiveHost, Root};
use assay_model::{FactValue, Facts};
use assay_testing::servers::shells;
use std::collections::BTreeSet;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const OPTIONS: CollectOptions<'static> = CollectOptions {
    with_identity: false,
    services: true,
    accounts: false,
    targets: &[],
};

/// Runs the script on standard input, like `ssh host sh < script`.
fn run(shell: Command) -> Bundle {
    run_script(shell, script("test"))
}

fn run_script(mut shell: Command, script: String) -> Bundle {
    let name = format!("{shell:?}");
    let mut child = shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    read_bundle(&name, &output)
}

/// Runs the script from a file on standard input. bash reads a pipe byte by byte, which takes as long as the script
/// itself if there is little to collect.
fn run_script_in_file(mut shell: Command, script: &str) -> Bundle {
    let name = format!("{shell:?}");
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(script.as_bytes()).unwrap();
    file.rewind().unwrap();
    read_bundle(&name, &shell.stdin(file).output().unwrap())
}

fn read_bundle(name: &str, output: &Output) -> Bundle {
    let text = String::from_utf8_lossy(&output.stderr);
    // In a tree whose ld.so.preload is a fault, the loader complains about each program.
    let complaints: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("ERROR: ld.so: "))
        .collect();
    assert!(complaints.is_empty(), "{name}: {complaints:#?}");
    let bundle = Bundle::read(&output.stdout[..], "the bundle");
    bundle.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The test reads a file that fails like a file on a broken disk: /sys returns EINVAL for the speed of the loopback
/// device. mawk, the awk of Debian, stops at such a file. All later sources must still be collected.
#[test]
fn attack_a_file_that_cannot_be_read_hides_nothing_else() {
    let dir = Path::new("/etc/sysctl.d");
    let (broken, speed) = (dir.join("99-sysctl.conf"), "/sys/class/net/lo/speed");
    if !broken.is_file() || !Path::new(speed).is_file() {
        return assay_testing::skipped("read error", "there is no file to put over another one");
    }
    let says =
        "mount --bind /sys/class/net/lo/speed /etc/sysctl.d/99-sysctl.conf || exit 9; exec sh";
    let over = |then: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", &says.replace("exec sh", then)]);
        shell
    };
    if !over("exit 0").status().is_ok_and(|status| status.success()) {
        return assay_testing::skipped("read error", "mounting is not permitted");
    }
    let bundle = run(over("exec sh"));
    let error = bundle.read_text(&std::fs::canonicalize(&broken).unwrap());
    assert!(error.is_err_and(|error| error.errno() == Some(22)));
    // Certificates are read last.
    let facts = collect(&bundle, &OPTIONS);
    let here = collect(&LiveHost, &OPTIONS);
    let those = |facts: &Facts| -> Vec<String> {
        let keys = facts
            .map
            .keys()
            .filter(|key| key.starts_with("certificate"));
        keys.cloned().collect()
    };
    assert_eq!(those(&facts), those(&here));
    assert!(!those(&facts).is_empty());
}

/// If a collector stops early, its bundle shows this. Sources that the collector did not reach are not treated as
/// missing.
#[test]
fn attack_a_collector_that_is_killed_half_way() {
    let whole = script("test");
    for ends in ["    mounts\n", "    processes\n", "    mail\n"] {
        assert_eq!(whole.matches(ends).count(), 1, "{ends}");
        let killed = whole.replace(ends, "    exit 9\n");
        let mut child = Command::new("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(killed.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(
            Bundle::read(&output.stdout[..], "the bundle").is_err(),
            "{ends}"
        );
    }
}

fn differences(here: &Facts, there: &Facts, ignored: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut keys: Vec<&String> = here.map.keys().chain(there.map.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter(|key| !ignored(key) && here.map.get(*key) != there.map.get(*key))
        .map(|key| format!("{key}: {:?} / {:?}", here.map.get(key), there.map.get(key)))
        .collect()
}

#[test]
fn this_machine_in_a_bundle_gives_the_same_facts() {
    // Whether a value changes over time, or by other tests.
    let volatile = |key: &str| {
        let starts = [
            "disk.loop",
            "mapped",
            "mount.",
            "btrfs.",
            "vm.",
            "cgroup",
            "dm.",
        ];
        starts.iter().any(|start| key.starts_with(start))
            || [
                "memory.available",
                "memory.swap_free",
                "memory.dirty",
                "sysctl.fs.aio-nr",
            ]
            .contains(&key)
            // Collected from bundles only.
            || key.starts_with("not_asked")
            || key.starts_with("packages.unmet")
    };
    let links = tempfile::tempdir().unwrap();
    for pair in shells::each_shell_and_awk() {
        let name = &pair.name;
        let shell = pair.command(links.path()).unwrap();
        let bundle = run_script(shell, pair.before(links.path()) + &script("test"));
        assert_eq!(bundle.collector(), Some("test"));
        let (here, there) = (collect(&LiveHost, &OPTIONS), collect(&bundle, &OPTIONS));
        assert!(here.map.len() > 100);
        let differ = differences(&here, &there, &volatile);
        assert!(differ.is_empty(), "{name}: {differ:#?}");
    }
}

/// Trees that depend on a file or a name that the collector does not send: the boot loader's command line, a table of
/// Postfix, a drop-in of a package, and the unit of a guest.
const LESS_OVER_SSH: [&str; 5] = [
    "images/guest-cpu-old-model/fires/unit",
    "kernel/sysctl-aslr-off/fires/command-line",
    "mail/postfix-open-relay/fires/networks-cidr",
    "mail/postfix-open-relay/fires/networks-file",
    "system/journald-lost-at-boot/fires/vendor",
];

/// The test reads file trees of the catalogue. Each is the root directory of a machine with only busybox and with tools
/// that print the recorded output. The test reads one tree with a fault for half of the pages, and a sixth of all other
/// trees. ASSAY_LAB_ALL=1 reads all trees.
#[test]
fn trees_of_the_catalogue_give_the_same_facts() {
    let Some(busybox) = busybox() else { return };
    if LiveHost.exists(Path::new("/root/.")).is_err() {
        return assay_testing::skipped("chroot", "needs root");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let mut trees = Vec::new();
    find(&directory, 0, &mut trees);
    assert!(trees.len() > 100, "{}", trees.len());
    let all = std::env::var_os("ASSAY_LAB_ALL").is_some();
    let mut pages_with_fault = BTreeSet::new();
    let mut is_first_fault = |tree: &Path| {
        let kind = tree.parent().filter(|kind| kind.ends_with("fires"));
        kind.is_some_and(|kind| pages_with_fault.insert(kind.to_owned()))
    };
    let chosen: Vec<(usize, &PathBuf)> = trees
        .iter()
        .enumerate()
        .filter(|(number, tree)| is_first_fault(tree) && number % 2 == 0 || all || number % 6 == 0)
        .filter(|(_, tree)| !LESS_OVER_SSH.iter().any(|known| tree.ends_with(known)))
        .collect();
    let catalogue = assay_advice::Catalogue::builtin().unwrap();
    let mut pages = catalogue.all();
    pages.retain(|page| page.check.is_some() && page.domain != "network");
    let pairs = shells::shell_awk_pairs();
    let next = AtomicUsize::new(0);
    let read = || {
        let (mut known, mut wrong) = (0, Vec::new());
        while let Some((number, tree)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            // The trees are distributed over all pairs of shell and awk.
            let pair = &pairs[number % pairs.len()];
            let (facts, differ) = compare_tree(tree, pair, &busybox, &pages);
            if !differ.is_empty() {
                let first = &differ[..differ.len().min(3)];
                wrong.push(format!("{} with {}: {first:#?}", tree.display(), pair.name));
            }
            known += facts;
        }
        (known, wrong)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (known, wrong) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        let mut all = (0, Vec::new());
        for reader in readers {
            let (known, wrong) = reader.join().unwrap();
            all.0 += known;
            all.1.extend(wrong);
        }
        all
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known > 1000, "{known}");
}

/// Returns the number of facts of a tree, and the differences between a local read and the collector with this shell.
fn compare_tree(
    tree: &Path,
    pair: &shells::Pair,
    busybox: &Path,
    pages: &[&assay_model::advice::Advice],
) -> (usize, Vec<String>) {
    let root = Root::open(tree).unwrap();
    let here = collect(&root, &OPTIONS);
    let dir = tempfile::tempdir().unwrap();
    furnish(dir.path(), tree, busybox);
    let shell = pair.furnish(dir.path()).unwrap();
    if let Some(openssl) = assay_testing::servers::find("openssl") {
        shells::copy_program(&openssl, dir.path()).unwrap();
    }
    let script = pair.before(Path::new("/bin")) + &script("test");
    let there = collect(&run_script_in_file(shell, &script), &OPTIONS);
    // The shell collector does not read some sources; certificates need openssl; this kernel's page
    // size and the tools of the test exist although the tree lacks them.
    let ignored = |key: &str| {
        let unknown = |prefix: &str| {
            there.map.iter().any(|(key, fact)| {
                key.starts_with(prefix) && matches!(fact.value, FactValue::Unknown(_))
            })
        };
        // A fact that is unknown for the tree must stay unknown; the reason may differ.
        let is_known = |facts: &Facts| {
            let fact = facts.map.get(key);
            fact.is_some_and(|fact| matches!(fact.value, FactValue::Known(_)))
        };
        !is_known(&here) && !is_known(&there)
            || key == "kernel.page_size"
            || key.starts_with("libvirt") && unknown("libvirt")
            || key.starts_with("vm.") && unknown("vm.")
            || key.starts_with("certificate") && unknown("certificate")
            // Permissions of keys come from the file system, but trees have only recorded
            // permissions.
            || key.starts_with("key_file")
            // Collected on this side only.
            || key.starts_with("not_asked")
            || key.starts_with("packages.unmet")
    };
    let mut differ = differences(&here, &there, &ignored);
    let all = CollectOptions {
        accounts: true,
        ..OPTIONS
    };
    differ.extend(judged_differently(pages, &collect(&root, &all), &there));
    (here.map.len(), differ)
}

/// Returns the findings and unknown facts that only one side has. Leaves out rules that the other side reports as not
/// asked.
fn judged_differently(
    pages: &[&assay_model::advice::Advice],
    here: &Facts,
    there: &Facts,
) -> Vec<String> {
    use assay_model::finding::{Certainty, Checked};
    let (here, there) = (
        assay_advice::findings(pages.iter().copied(), here),
        assay_advice::findings(pages.iter().copied(), there),
    );
    let of = |checked: &Checked, certainty: Certainty| -> BTreeSet<String> {
        let all = checked
            .findings
            .iter()
            .filter(|finding| finding.certainty == certainty);
        // A removed source is reported with its way out.
        let all = all.filter(|finding| !finding.text.contains("not taken by the collector"));
        all.map(|finding| finding.fingerprint()).collect()
    };
    let rule = |name: &String| name.split('@').next().unwrap_or_default().to_owned();
    let not_asked: BTreeSet<&str> = there
        .not_asked
        .iter()
        .map(|one| one.rule.as_str())
        .collect();
    let (found_here, found_there) = (
        of(&here, Certainty::Violated),
        of(&there, Certainty::Violated),
    );
    let (unknown_here, unknown_there) = (
        of(&here, Certainty::Unknown),
        of(&there, Certainty::Unknown),
    );
    // A tree of files cannot run commands, in contrast to a machine.
    let open: BTreeSet<String> = unknown_here.iter().map(rule).collect();
    let missing = found_here
        .difference(&found_there)
        .filter(|name| !not_asked.contains(rule(name).as_str()))
        .map(|name| format!("only here: {name}"));
    let more = found_there
        .difference(&found_here)
        // Trees have no permissions of keys unless they were recorded.
        .filter(|name| !open.contains(&rule(name)) && rule(name) != "key-file-open")
        .map(|name| format!("only there: {name}"));
    let unknown = unknown_there
        .iter()
        .filter(|name| !open.contains(&rule(name)));
    let why = |name: &String| {
        let finding = there
            .findings
            .iter()
            .find(|finding| finding.fingerprint() == *name);
        finding.map_or("", |finding| finding.text.as_str())
    };
    let unknown = unknown.map(|name| format!("unknown only there: {name}: {}", why(name)));
    missing.chain(more).chain(unknown).collect()
}

fn busybox() -> Option<PathBuf> {
    let found = assay_testing::servers::busybox::is_static();
    if found.is_none() {
        assay_testing::skipped("busybox", "a static busybox is not installed");
    }
    found
}

/// Adds the directories under `fires`, `quiet` and `not-applicable` to `trees`.
fn find(dir: &Path, depth: usize, trees: &mut Vec<PathBuf>) {
    let mut inside: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    inside.sort();
    for path in inside {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if ["fires", "quiet", "not-applicable"].contains(&name.as_str()) {
            let cases = std::fs::read_dir(&path).unwrap();
            let cases = cases.map(|entry| entry.unwrap().path());
            let mut cases: Vec<_> = cases.filter(|path| path.is_dir()).collect();
            cases.sort();
            trees.extend(cases);
        } else if depth < 2 {
            find(&path, depth + 1, trees);
        }
    }
}

/// Adds a shell to the tree, and programs that print the recorded output of tools.
fn furnish(dir: &Path, tree: &Path, busybox: &Path) {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(tree.join("."))
        .arg(dir)
        .status()
        .unwrap();
    assert!(copied.success());
    assay_testing::servers::busybox::furnish(dir, busybox).unwrap();
    let index = dir.join("assay-capture.json");
    let Ok(text) = std::fs::read_to_string(&index) else {
        return;
    };
    let index: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (number, command) in index["commands"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let argv: Vec<&str> = command["argv"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        // The script also runs `stat` with other arguments to test for existence.
        if let ["stat", _, "--format=%a", _, path] = argv[..]
            && let Ok(mode) =
                u32::from_str_radix(command["stdout"].as_str().unwrap_or_default().trim(), 8)
        {
            let path = dir.join(path.trim_start_matches('/'));
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
        }
        if argv[0] == "stat" {
            continue;
        }
        let file = dir.join(format!("answer-{number}"));
        std::fs::write(&file, command["stdout"].as_str().unwrap_or_default()).unwrap();
        let program = dir.join("bin").join(argv[0]);
        let before = std::fs::read_to_string(&program).unwrap_or_else(|_| "#!/bin/sh\n".to_owned());
        let words = argv[1..].join(" ");
        let status = command["status"].as_i64().unwrap_or(0);
        let complaint = command["stderr"]
            .as_str()
            .unwrap_or_default()
            .replace('\'', "");
        let body = format!(
            "{before}[ \"$*\" != '{words}' ] || {{ printf '%s' '{complaint}' >&2; cat /answer-{number}; exit {status}; }}\n"
        );
        std::fs::write(&program, body).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    // The script lists all pools; the recorded output covers each of them.
    let zpool = dir.join("bin/zpool");
    if let Ok(before) = std::fs::read_to_string(&zpool) {
        let pools: Vec<&str> = before
            .split("status -LP ")
            .skip(1)
            .filter_map(|rest| rest.split('\'').next())
            .collect();
        std::fs::write(
            &zpool,
            format!(
                "{before}[ \"$1\" != list ] || echo '{}'\n",
                pools.join("\n")
            ),
        )
        .unwrap();
    }
}

const SECRET: &str = "Canary5ecret";

/// Private texts that must not leave a machine. `@` stands for a secret.
const PLANTS: [(&str, &str); 39] = [
    ("etc/shadow", "root:@:1:0\n"),
    (
        "etc/ssh/ssh_host_ed25519_key",
        "-----BEGIN PRIVATE KEY-----\n@\n-----END PRIVATE KEY-----\n",
    ),
    (
        "etc/ssh/sshd_config",
        "# @\nUsePAM yes\nAllowUsers @\nBanner /etc/@\nMatch User @\n  PasswordAuthentication yes\n",
    ),
    ("etc/ssh/sshd_config.d/a.conf", "@ @\nMaxAuthTries @\n"),
    (
        "etc/ssh/own",
        "-----BEGIN PRIVATE KEY-----\n@\n-----END PRIVATE KEY-----\n",
    ),
    (
        "etc/nginx/nginx.conf",
        "http { server { server_name @.example; set $a @; add_header X-Key @; sendfile on; } } # @\n",
    ),
    ("etc/nginx/private.key", "@"),
    ("etc/nginx/htpasswd", "admin:@\n"),
    (
        "etc/nginx/tls.pem",
        "-----BEGIN PRIVATE KEY-----\n@\n-----END PRIVATE KEY-----\n",
    ),
    ("etc/nginx/conf.d/broken.conf", "http { password '@\n"),
    (
        "etc/postfix/main.cf",
        "smtp_sasl_password_maps = static:@\nmyhostname = @\nsmtpd_tls_ciphers = @=1\n",
    ),
    (
        "etc/postfix/master.cf",
        "@= unix - - - - - pipe argv=@ -o smtp_password=@\n",
    ),
    ("etc/sysctl.d/a.conf", "kernel.x = @\nvm.swappiness = @\n"),
    (
        "etc/modprobe.d/a.conf",
        "options nvme dhchap_secret=@\noptions own key=@\n",
    ),
    (
        "etc/samba/smb.conf",
        "[@]\npasswd = @\n[global]\nserver signing = @\n",
    ),
    (
        "etc/openvpn/a.conf",
        "auth-user-pass @\ncipher @\n<key>\n@\n</key>\n",
    ),
    ("etc/openvpn/server/static.key", "@"),
    ("etc/spamassassin/local.cf", "dbpass @\nloadplugin @\n"),
    (
        "etc/pam.d/common-session",
        "session optional pam_systemd.so @\n",
    ),
    (
        "etc/dovecot/conf.d/10-auth.conf",
        "passdb {\n args = @\n}\n!include @=?\n",
    ),
    (
        "etc/dovecot/conf.d/10-ssl.conf",
        "ssl_key_password = @\nssl_key = </etc/nginx/tls.pem\nssl_cert = </etc/nginx/tls.pem\n",
    ),
    ("etc/os-release", "ID=debian\nHOME_URL=https://@/\n"),
    (
        "etc/crontab",
        "0 0 * * * root curl -u a:@ http://x; zpool scrub @\n",
    ),
    ("etc/cron.daily/own", "#!/bin/sh\nPASSWORD=@\n"),
    (
        "etc/libvirt/qemu/web.xml",
        "<domain><secret>@</secret></domain>",
    ),
    (
        "etc/pve/qemu-server/100.conf",
        "cipassword: @\nname: @\nscsi0: a:b,serial=@\n#@\n",
    ),
    ("etc/pve/storage.cfg", "cifs: x\n\tpassword @\n\tserver @\n"),
    (
        "var/lib/dpkg/status",
        // A bundle contains names and versions of packages, but not their maintainers and
        // descriptions.
        "Package: own\nMaintainer: @\nVersion: 1\n\nPackage: nginx\nStatus: install ok installed\nDescription: @\nVersion: 1\n",
    ),
    (
        "lib/apk/db/installed",
        "C:@\nP:musl\nV:1.2.5-r0\nm:@\nT:@\nP:x @\nV:@ y\n",
    ),
    ("proc/cmdline", "root=/dev/vda luks.pw=@ @ @=x\n"),
    (
        "proc/self/mountinfo",
        "30 1 0:30 / /m rw - cifs //h/s rw,username=u,password=@,@\n31 1 0:31 / /n rw - davfs https://u:@x@h/ rw\n",
    ),
    ("proc/self/mounts", "//h/s /m cifs rw,password=@ 0 0\n"),
    ("proc/77/comm", "qemu-system-x86\n"),
    ("proc/77/cmdline", "qemu\0-object\0secret,data=@\0"),
    ("proc/77/environ", "KEY=@\0"),
    ("proc/77/maps", "7f-7f r 0 0 1 /home/@/lib.so (deleted)\n"),
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/home/@/s file 1 0 -2\n",
    ),
    ("sys/class/dmi/id/product_uuid", "@"),
    ("sys/class/dmi/id/product_serial", "@"),
];

/// No byte of a bundle contains a planted secret, wherever the secret is on the machine.
#[test]
fn attack_planted_secrets_are_in_no_bundle() {
    let Some(busybox) = busybox() else { return };
    if LiveHost.exists(Path::new("/root/.")).is_err() {
        return assay_testing::skipped("chroot", "needs root");
    }
    let (dir, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (path, text) in PLANTS {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace('@', SECRET)).unwrap();
    }
    furnish(dir.path(), tree.path(), &busybox);
    // Without a compressor the archive can be searched.
    std::fs::remove_file(dir.path().join("bin/gzip")).unwrap();
    let file = tree.path().join("script");
    std::fs::write(&file, script("test")).unwrap();
    let output = Command::new("chroot")
        .arg(dir.path())
        .args(["/bin/busybox", "sh"])
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert!(output.stdout.starts_with(b"assay-bundle 1 plain\n"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("UsePAM yes") && text.contains("zpool scrub"),
        "{text}"
    );
    let out: Vec<&str> = text.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(out.is_empty(), "{out:#?}");
    assert!(Bundle::read(&output.stdout[..], "it").is_ok());
    let tried = PLANTS.len() as u64;
    assay_testing::attacked("secrets and the collector", tried, tried);
}
