#![allow(clippy::disallowed_methods, reason = "tests run the script")]

mod sample_files;

use super::*;
use crate::redact::rule_of_file;
use sample_files::samples;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Runs an awk program on a text with each installed awk (mawk, gawk, busybox, original-awk). All must print the same
/// output.
fn awk(program: &str, input: &[u8]) -> Vec<u8> {
    let mut said: Option<(&str, Vec<u8>)> = None;
    for name in ["mawk", "gawk", "busybox", "original-awk"] {
        if assay_testing::servers::skip(&[name], false) {
            continue;
        }
        let ours = awk_of(name, program, input);
        if let Some((other, theirs)) = &said {
            let differ = differing(theirs, &ours);
            assert!(differ.is_empty(), "{other} and {name}: {differ:#?}");
        }
        said = Some((name, ours));
    }
    said.expect("no awk is installed").1
}

/// Returns the first lines in which the outputs of two awk programs differ.
fn differing(one: &[u8], other: &[u8]) -> Vec<(String, String)> {
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        text.split('\n').map(str::to_owned).collect()
    };
    let (one, other) = (lines(one), lines(other));
    let most = one.len().max(other.len());
    let line = |all: &[String], at: usize| all.get(at).cloned().unwrap_or_default();
    (0..most)
        .map(|at| (line(&one, at), line(&other, at)))
        .filter(|(one, other)| one != other)
        .take(5)
        .collect()
}

fn awk_of(name: &str, program: &str, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new(name);
    if name == "busybox" {
        command.arg("awk");
    }
    let mut child = command
        .arg(program)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn clean_program() -> String {
    CLEAN.replace("@@TABLES@@\n", &table::tables())
}

/// A line that ends the text of a file. No file of the tests contains this line.
const MARK: &str = "0123456789abcdefghijklmnopqrstuv";

/// The random way to the root that the script puts in front of the names that `head` prints.
const WAY: &str = "/.//././//";

/// Returns what `head` prints about several files.
fn headed<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut output = Vec::new();
    for (name, text) in files.chain([("/dev/null", &b""[..])]) {
        let break_before = if output.is_empty() { "" } else { "\n" };
        output.extend(format!("{break_before}==> {WAY}{name} <==\n").as_bytes());
        output.extend(text);
    }
    output
}

/// Returns the text of each file after `clean.awk`, in order. Feeds each text in the three forms that the script uses:
/// with a letter before each line, unchanged up to a mark, and with other texts as `head` prints them. All forms must
/// give the same output.
fn cleaned(files: &[(&str, &str, Vec<u8>)]) -> Vec<String> {
    let (mut input, mut marked) = (Vec::new(), Vec::new());
    for (number, (class, _, text)) in files.iter().enumerate() {
        let head = format!("B {class} /{number}\n");
        marked.extend(format!("{head}R{MARK}\n").as_bytes());
        marked.extend(text);
        marked.extend(format!("\n{MARK}\n.\n").as_bytes());
        input.extend(head.as_bytes());
        let lines = text.strip_suffix(b"\n").unwrap_or(text);
        let lines = lines.split(|&byte| byte == b'\n');
        for line in lines.filter(|_| !text.is_empty()) {
            input.push(b'O');
            input.extend(line);
            input.push(b'\n');
        }
        input.extend(b".\n");
    }
    let mut batches = Vec::new();
    let names: Vec<String> = (0..files.len())
        .map(|number| format!("/{number}"))
        .collect();
    for (files, names) in files.chunks(64).zip(names.chunks(64)) {
        for ((class, _, _), name) in files.iter().zip(names) {
            batches.extend(format!("M {class} {name}\n").as_bytes());
        }
        batches.extend(format!("H{WAY} {MARK}\n").as_bytes());
        let texts = files.iter().map(|(_, _, text)| &text[..]);
        batches.extend(headed(names.iter().map(String::as_str).zip(texts)));
        batches.extend(format!("\n{MARK}\nV\n").as_bytes());
    }
    let output = awk(&clean_program(), &input);
    for form in [&marked, &batches] {
        let differ = differing(&output, &awk(&clean_program(), form));
        assert!(differ.is_empty(), "{differ:#?}");
    }
    let output = String::from_utf8_lossy(&output).into_owned();
    let mut found = vec![String::new(); files.len()];
    let mut at = None;
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("F /") {
            at = name.parse::<usize>().ok();
        } else if let (Some(text), Some(at)) = (line.strip_prefix('='), at) {
            found[at].push_str(text);
            found[at].push('\n');
        }
    }
    found
}

/// The text of a file that imitates the script's own record format is still treated as text.
#[test]
fn attack_a_file_of_records_is_text_until_the_mark() {
    let records =
        "listen 80;\n\n.\n-\nF /etc/shadow\n=root:secret\nB nginx /x\nOsecret\nR\nsecret\n\n";
    let input = format!("B nginx /1\nR{MARK}\n{records}\n{MARK}\n.\nD /proc\n");
    let output = awk(&clean_program(), input.as_bytes());
    let output = String::from_utf8_lossy(&output);
    // Braces that do not match leave nothing of a configuration but its lines.
    let lines = "=\n".repeat(records.lines().count());
    assert_eq!(output, format!("F /1\n{lines}D /proc\n"));
}

/// Of files that are read together, each has its own text, in the order of the script. A text that is not whole is left
/// out. The name of another file in a text, which only somebody who watches processes can know, hides no text silently.
#[test]
fn attack_a_file_in_a_batch_cannot_speak_for_another_one() {
    let batch = |one: &str, verdict: &str| {
        let texts = [("/1", one.as_bytes()), ("/3", b"3"), ("/4", b"\n4\n\n")];
        let output = String::from_utf8(headed(texts.into_iter())).unwrap();
        let input = format!(
            "M whole /1\nL /a\t/b\nM whole /2\nM whole /3\nB whole /x\nOx\n.\nM whole /4\n\
             H{WAY} {MARK}\n{output}\n{MARK}\n\
             N/2\t: Permission denied\n{verdict}\nD /proc\n"
        );
        String::from_utf8(awk(&clean_program(), input.as_bytes())).unwrap()
    };
    let kept = |one: &str| {
        format!(
            "F /1\n{one}L /a\t/b\nY/2\t: Permission denied\nF /3\n=3\nF /x\n=x\nF /4\n=\n=4\n=\nD /proc\n"
        )
    };
    assert_eq!(batch("1\n", "V"), kept("=1\n"));
    assert_eq!(batch("", "V"), kept(""));
    assert_eq!(batch("1", "N/3\t: Input/output error\nV"), {
        kept("=1\n").replace("F /3\n=3\n", "Y/3\t: Input/output error\n")
    });
    // The script reads all of them again.
    assert_eq!(batch("1", "G"), "L /a\t/b\nF /x\n=x\nD /proc\n");
    // A guess at the way is text, like any other line.
    assert_eq!(batch("==> /./3 <==\nV\n", "V"), kept("===> /./3 <==\n=V\n"));
    for forged in ["/3", "/2", "/1", "/9", "/dev/null"] {
        let output = batch(&format!("==> {WAY}{forged} <==\nforged\n"), "V");
        assert!(!output.contains("forged"), "{output}");
        let unknown: Vec<&str> = output
            .lines()
            .filter_map(|line| line.strip_prefix("X ")?.split('\t').next())
            .collect();
        // The file that does it can hide nothing but itself.
        let expected = ["/1", "/2", "/3", "/4"];
        assert!(
            unknown == expected || (forged == "/2" && unknown.is_empty()),
            "{forged}: {output}"
        );
    }
}

/// Command lines of QEMU have the same meaning after the script has redacted them as after the rules in Rust. Secrets
/// in them do not remain.
#[test]
fn command_lines_of_qemu_are_cleaned_as_the_rules_do() {
    let lines = [
        include_str!("../../fixtures/qemu-7.2-libvirt-9.0-cmdline.txt"),
        include_str!("../../fixtures/qemu-7.2-plain-cmdline.txt"),
        "qemu-system-x86_64\n-object\nsecret,id=s,data=hunter2\n-object\n{\"qom-type\":\"throttle-group\",\"id\":\"slow\",\"limits\":{\"iops-total\":500}}\n-object\nthrottle-group,id=t,x-bps-read=1048576\n-drive\nfile=a.img,if=none,id=d,driver=throttle,throttle-group=slow\n-device\nvirtio-blk-pci,drive=d\n",
        include_str!("../../fixtures/qemu-7.2-controllers-without-id-cmdline.txt"),
        "kvm\n-name\nmail.example.org,debug-threads=on\n-object\nsecret,id=s,data=hunter2\n-drive\n\
         file=/srv/vm/secret.qcow2,format=qcow2,serial=S3RIAL,if=virtio,cache=none\n-drive\n\
         file=nbd:files.example.org:10809,if=virtio\n-blockdev\n\
         {\"driver\":\"rbd\",\"server\":[{\"host\":\"10.0.0.1\"}],\"node-name\":\"n\",\"key-secret\":\"s\"}\n-device\n\
         virtio-blk-pci,drive=n,mac=52:54:00:12:34:56\n-hda\n/dev/disk/by-id/ata-S3RIAL\n/dev/sdb\n-cpu\nhost,+aes\n-snapshot",
    ];
    let files: Vec<(&str, &str, Vec<u8>)> = lines
        .iter()
        .map(|text| ("qemu", "/proc/77/cmdline", text.as_bytes().to_vec()))
        .collect();
    for (text, ours) in lines.iter().zip(cleaned(&files)) {
        let kernel = |text: &str| text.trim_end().replace('\n', "\0") + "\0";
        let ours = ours.trim_end_matches('\n').replace('\u{2}', "\0") + "\n";
        let whole = crate::qemu::redact(kernel(text).as_bytes(), false);
        let again = crate::qemu::redact(ours.as_bytes(), false);
        let (whole, again) = (crate::qemu::argv(&whole), crate::qemu::argv(&again));
        let (whole, again) = (crate::qemu::parse(&whole), crate::qemu::parse(&again));
        assert_eq!(
            (again.disks, again.settings),
            (whole.disks, whole.settings),
            "{ours}"
        );
        for secret in [
            "hunter2",
            "S3RIAL",
            "example.org",
            "10.0.0.1",
            "secret.qcow2",
            "52:54",
        ] {
            assert!(!ours.contains(secret), "{secret}: {ours}");
        }
    }
}

fn redacted(path: &str, text: &[u8]) -> String {
    let rule = rule_of_file(path).unwrap_or_else(|| panic!("no rule for {path}"));
    String::from_utf8_lossy(&rule(text)).into_owned()
}

/// Normalises lines: collapses repeated blanks, and removes empty lines at the end of the text.
fn normal(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[test]
fn the_script_cleans_as_the_rules_do() {
    let samples = samples();
    for ((class, path, text), ours) in samples.iter().zip(cleaned(&samples)) {
        let theirs = redacted(path, text);
        assert_eq!(normal(&ours), normal(&theirs), "{class} {path}");
    }
}

/// Returns the output of a command as the script redacts it.
fn printed<'a>(class: &str, argv: &[&str], lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut input = format!("C {class}\n");
    for word in argv {
        let _ = writeln!(input, "A{word}");
    }
    for line in lines {
        let _ = writeln!(input, "O{line}");
    }
    input.push_str("O0\nZ\n");
    let output = awk(&clean_program(), input.as_bytes());
    let ours = String::from_utf8_lossy(&output).into_owned();
    let ours = ours.lines().filter_map(|line| line.strip_prefix('O'));
    ours.map(str::to_owned).collect()
}

/// The script redacts disk health like the rule of the command.
#[test]
fn the_health_of_disks_is_cleaned_as_the_rules_do() {
    let nvme = include_str!("../../fixtures/smartctl-7.3-nvme-qemu.txt");
    let ata = include_str!("../../fixtures/smartctl-7.3-ata-qemu.txt");
    let odd = [
        "SMART Health Status: FAILURE PREDICTION THRESHOLD EXCEEDED [asc=5d, ascq=10]",
        "197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       8 (0 1)",
        "  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       x",
        "Critical Warning:  0xfF",
        "Critical Warning:  0xfg",
        "Percentage Used: 103%",
        "Media and Data Integrity Errors:    1,234",
        "Device is in STANDBY mode, exit(2)",
        "Smartctl open device: /dev/sda failed: Permission denied",
        "197 Bogus_Current_Pend_Sect 0x0032   100   100   000    Old_age   Always       -       1",
        "187 Reported_Uncorrect      0x0032   001   001   000    Old_age   Always       -       4295032833",
        "197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       8",
        "177 Wear_Leveling_Count     0x0013   001   001   000    Pre-fail  Always       -       3604",
        "230 Media_Wearout_Indicator 0x0032   001   001   ---    Old_age   Always       -       0x002c00a8002c",
        "202 Percent_Lifetime_Remain 0x0030   000   000   001    Old_age   Offline  FAILING_NOW 100",
        "233 Media_Wearout_Indicator 0x0032   000   000   000    Old_age   Always       -       0",
        "231 SSD_Life_Left           0x0013   253   253   010    Pre-fail  Always       -       0",
        "  5 Reallocated_Sector_Ct   0x0033   001   001   036    Pre-fail  Always   FAILING_NOW 4095",
        "  1 Raw_Read_Error_Rate     0x000f   100   006   044    Pre-fail  Always   In_the_past 0",
        "190 Airflow_Temperature_Cel 0x0022   055   041   045    Old_age   Always   In_the_past 45",
        "Elements in grown defect list: 24",
        "Percentage used endurance indicator: 3%",
        "read:   2097523480       22         0  2097523502         22     122346.221           3",
        "write:         0        0         0         0          0      56346.221           0",
        "SMART Health Status: WARNING - TEMPERATURE EXCEEDED [asc=b, ascq=1]",
        "failed SSD_Life_Left old",
        "failed secret@x old",
        "counter life_left 3",
        "health hot",
        "Serial Number: secret",
        "counter secret 1",
        "counter media_errors 1",
        "health secret",
        "sleeps",
    ];
    let lines = || ata.lines().chain(nvme.lines()).chain(odd);
    let argv = ["smartctl", "-n", "standby", "-H", "-A", "/dev/sda"];
    let ours = printed("smart", &argv, lines());
    let keep = crate::collectors::services::smart::redact;
    let theirs: Vec<String> = lines().filter_map(keep).collect();
    assert_eq!(ours.join("\n"), theirs.join("\n"));
    assert!(ours.len() >= 12 && !ours.join(" ").contains("secret"));
}

/// The script redacts `zpool status` like the rule of the command.
#[test]
fn the_status_of_pools_is_cleaned_as_the_rules_do() {
    let status = include_str!("../../fixtures/zfs-2.1.11/status-mirror.txt");
    let odd = [
        "errors: 3 data errors, use '-v' for a list",
        "errors: 1.5K data errors, use '-v' for a list",
        "errors: secret data errors",
        "errors: No known data errors",
        "errors: List of errors unavailable (insufficient privileges)",
        "errors: Permanent errors have been detected in the following files:",
        "        /tank/secret/file",
        "  scan: resilver in progress since Mon Dec  5 19:00:01 2022",
        "status: secret",
        "\t    123456     UNAVAIL      0     0     0  was /dev/sda1",
    ];
    let lines = || status.lines().chain(odd);
    let ours = printed("status", &["zpool", "status", "-LP", "tank"], lines());
    let argv = ["zpool", "status", "-LP", "tank"];
    let text: Vec<&str> = lines().collect();
    let theirs = crate::redact::answer_of_command(&argv, &text.join("\n"));
    assert_eq!(ours.join("\n"), theirs);
    assert!(!ours.join(" ").contains("secret"));
}

/// The script redacts the queue of Postfix like the rule of the command.
#[test]
fn the_queue_is_cleaned_as_the_rules_do() {
    let list = include_str!("../../fixtures/postfix-3.7.11-postqueue.jsonl");
    let odd = [
        r#"{"queue_name": "hold", "arrival_time": 17, "recipients": [{"address": "a@b.example"}, {"address": "c@b.example"}]}"#,
        r#"{"queue_name": "active", "arrival_time": 17, "recipients": [{"address": "a@b.example", "delay_reason": "x"}]}"#,
        r#"{"queue_name": "deferred", "arrival_time": 17, "recipients": [{"address": "a@b.example"}]}"#,
        r#"{"queue_name": "deferred", "arrival_time": 17, "recipients": [{"address": "a@b.example", "delay_reason": "host \"x\" said: 421-4.7.0 no"}, {"address": "c", "delay_reason": "y"}]}"#,
        "waits 17 connection -",
        "waits 17 secret -",
        "waits 17 connection 1-2",
        "secret@example.org",
    ];
    let ours = printed("queue", &["postqueue", "-j"], list.lines().chain(odd));
    let keep = crate::collectors::services::mail_queue::redact;
    let theirs: Vec<String> = list.lines().chain(odd).filter_map(keep).collect();
    assert_eq!(ours.join("\n"), theirs.join("\n"));
    assert!(ours.len() >= 10 && !ours.join(" ").contains("example"));
}

/// For any file content, the script drops everything that the rules in Rust drop.
#[test]
fn attack_nothing_gets_through_that_the_rules_leave_out() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let seeds = samples();
    let words: Vec<&[u8]> = seeds
        .iter()
        .flat_map(|(_, _, text)| text.split(|byte| b" \n=".contains(byte)))
        .collect();
    let mut tried = Vec::new();
    for _ in 0..100 * assay_testing::attack_factor() {
        for (class, path, text) in &seeds {
            let mut text = text.clone();
            for _ in 0..1 + next(4) {
                let at = next(text.len().max(1)).min(text.len());
                let to = (at + next(12)).min(text.len());
                let word = words[next(words.len())];
                let odd: &[&[u8]] = &[
                    b"\"", b"'", b"{", b"}", b";", b"\\", b"#", b" ", b"\n", b"=", b"\xff", b"\t",
                    b",", b":", b"//",
                ];
                let new = match next(3) {
                    0 => word,
                    1 => odd[next(odd.len())],
                    _ => b"",
                };
                text.splice(at..to, new.iter().copied());
            }
            text.retain(|byte| *byte != 0);
            tried.push((*class, *path, text));
        }
    }
    let mut lost = 0;
    let mut more: Vec<String> = Vec::new();
    for ((class, path, text), ours) in tried.iter().zip(cleaned(&tried)) {
        let again = redacted(path, ours.as_bytes());
        let joined = |text: &str| normal(text).join(if *class == "cmdline" { " " } else { "\n" });
        if joined(&ours) != joined(&again) {
            let given = String::from_utf8_lossy(text);
            more.push(format!(
                "{class} {path}: {given}\n--- kept\n{ours}\n--- may be kept\n{again}"
            ));
        }
        lost += usize::from(joined(&ours) != joined(&redacted(path, text)));
    }
    more.dedup_by_key(|one| one.split(' ').next().map(str::to_owned));
    assert!(
        more.is_empty(),
        "the rules leave out more:\n{}",
        more.join("\n")
    );
    // The script may keep less for malformed text; this is rare.
    let all = tried.len();
    assert!(lost * 8 < all, "{lost} of {all}");
    assay_testing::attacked("texts through the collector", all as u64, all as u64);
}

#[test]
fn what_it_is_made_of_can_stand_in_a_script() {
    for part in [&clean_program(), PACK] {
        assert!(
            !part.contains('\''),
            "a quotation mark ends the text for awk"
        );
    }
    let script = script("1.0");
    let places: Vec<&str> = script.split("@@").skip(1).collect();
    assert!(places.is_empty(), "{places:?}");
    // Linux permits no longer argument (MAX_ARG_STRLEN).
    assert!(clean_program().len() < 120_000);
}

/// No variable in the awk programs has the name of a function. mawk rejects a variable with the name of another
/// function, and gawk rejects one with the name of a built-in function. Other awk programs accept both.
#[test]
fn names_of_the_programs_for_awk_are_free() {
    const OF_GAWK: [&str; 12] = [
        "BINMODE",
        "ERRNO",
        "FIELDWIDTHS",
        "FPAT",
        "FUNCTAB",
        "IGNORECASE",
        "LINT",
        "PREC",
        "PROCINFO",
        "RT",
        "SYMTAB",
        "TEXTDOMAIN",
    ];
    let web = include_str!("../../../web/src/remote_counters/script.sh");
    for (name, program) in [
        ("clean.awk", CLEAN),
        ("pack.awk", PACK),
        ("collector.sh", SHELL),
        ("script.sh", web),
    ] {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let heads: Vec<(&str, &str)> = program
            .split("function ")
            .skip(1)
            .filter_map(|rest| rest.split_once(')')?.0.split_once('('))
            .collect();
        let functions: Vec<&str> = heads.iter().map(|(name, _)| *name).collect();
        for (function, parameters) in &heads {
            let taken = parameters
                .split(',')
                .map(str::trim)
                .find(|one| functions.contains(one));
            assert_eq!(taken, None, "{name}: {function}");
        }
        // A word before an assignment sign is a variable.
        for line in program
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
        {
            for (at, _) in line
                .match_indices(" = ")
                .chain(line.match_indices("++"))
                .chain(line.match_indices('['))
            {
                let word = line[..at]
                    .rsplit(|c| !is_name(c))
                    .next()
                    .unwrap_or_default();
                assert!(
                    !functions.contains(&word) && !OF_GAWK.contains(&word),
                    "{name}: {line}"
                );
            }
        }
    }
}

/// Forms in which a tool quotes its input. `@` stands for a secret; the last forms contain the secret in base64.
pub(crate) const FORMS: [&str; 24] = [
    "@",
    "password=@",
    "password: @",
    "smtp_sasl_password_maps = static:@",
    "relayhost = [@]:587",
    "https://user:@§h.example/x",
    "cannot open http://h.example/x?token=@",
    "'@'",
    "\"@\"",
    "`@`",
    "Authorization: Bearer @",
    "--password @",
    "-p@",
    "{\"key\":\"@\"}",
    "name@corp.example",
    "\t@\t1.0",
    "line 3: @",
    "/home/@/x: not a directory",
    "\u{1b}[31m@",
    "(@)",
    "no such pool '@'",
    "-----BEGIN PRIVATE KEY-----\n@\n-----END PRIVATE KEY-----",
    "Q2FuYXJ5NWVjcmV0",
    "key Q2FuYXJ5NWVjcmV0==",
];

/// The script redacts error messages and versions like the rules in Rust.
#[test]
fn complaints_are_cleaned_as_the_rules_do() {
    let others = [
        "zdb: can't open 'tank': No such file or directory",
        "postqueue: fatal: /etc/postfix/main.cf, line 3: missing '=' after attribute name: \"x\"",
        "/etc/ssh/sshd_config line 7: bad configuration option",
        "/etc/ssh/sshd_config.d/x: line 7: Bad configuration option",
        "/etc/postfix/main.cf:12345678: bad value",
        "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026",
        "2.3.19.1 (9b53102964)",
        "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
        "mke2fs 1.47.0 (5-Feb-2023)",
        "usage: x",
        "",
    ];
    let forms: Vec<String> = FORMS
        .iter()
        .map(|form| form.replace('@', "Canary5ecret"))
        .collect();
    let lines: Vec<&str> = others
        .into_iter()
        .chain(forms.iter().map(String::as_str))
        .collect();
    for argv in [&["zdb", "-C", "tank"][..], &["zdb", "-C"], &["ssh", "-V"]] {
        for some in lines.windows(2) {
            let said = some.join("\n") + "\n";
            let class = if argv[0] == "ssh" { "version" } else { "zdb" };
            let mut input = format!("C {class}\n");
            for word in argv {
                let _ = writeln!(input, "A{word}");
            }
            for line in said.lines() {
                let _ = writeln!(input, "E{line}");
            }
            input.push_str("O1\nZ\n");
            let output = String::from_utf8(awk(&clean_program(), input.as_bytes())).unwrap();
            let ours: Vec<&str> = output
                .lines()
                .filter_map(|line| line.strip_prefix('E'))
                .collect();
            let host = assay_host::Recorded::new().command_with(argv, 1, "", &said);
            let words: Vec<&std::ffi::OsStr> = argv.iter().map(std::ffi::OsStr::new).collect();
            let redacted = crate::Redacted::new(&host, false);
            let theirs =
                assay_host::Host::run(&redacted, &words, assay_host::Limits::default()).unwrap();
            let theirs = String::from_utf8(theirs.stderr).unwrap();
            assert_eq!(ours.join("\n").trim_end(), theirs.trim_end(), "{said}");
        }
    }
}
