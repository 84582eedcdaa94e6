//! Printed commands of remedies are executed unchanged, and clear their finding.

use super::bed::Bed;
use super::common::{ended, sent};
use serde_json::Value;
use std::fs;

/// A remedy whose commands are executed.
struct Case {
    rule: &'static str,
    /// Script that prepares the machine in a namespace whose changes are temporary. Files in `$bed`
    /// stay.
    places: &'static str,
    /// Script that creates the fault, once.
    plant: &'static str,
    /// Prefixes of the executed commands of the steps.
    steps: &'static [&'static str],
    /// Prefixes of the commands of the undo; afterwards the finding is there again.
    undo: &'static [&'static str],
}

const CASES: [Case; 4] = [
    Case {
        rule: "key-file-open",
        places: "",
        plant: r#"
file="/etc/nginx/site-key.pem"
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$file" 2>/dev/null
chmod 644 "$file"
printf 'server { listen 1; ssl_certificate_key "%s"; }\n' "$file" > /etc/nginx/conf.d/key.conf
"#,
        steps: &["chmod o-rwx"],
        undo: &["chmod o+r"],
    },
    Case {
        rule: "ssh-authorized-keys-open",
        places: r#"mkdir -p -m 700 "$bed/root"; mount --bind "$bed/root" /root"#,
        plant: r#"
mkdir -m 700 /root/.ssh
ssh-keygen -q -t ed25519 -N '' -f "$bed/key"
cp "$bed/key.pub" /root/.ssh/authorized_keys
chmod 666 /root/.ssh/authorized_keys
"#,
        steps: &["namei -l", "chmod go-w"],
        undo: &[],
    },
    Case {
        rule: "pam-systemd-off",
        places: r#"[ -d "$bed/pam.d" ] || cp -a /etc/pam.d "$bed/pam.d"; mount --bind "$bed/pam.d" /etc/pam.d"#,
        plant: r#"
sed -i '/pam_systemd/d' /etc/pam.d/common-session
printf '# pam_systemd.so makes sessions\n# session\toptional\tpam_systemd.so \n' >> /etc/pam.d/common-session
"#,
        steps: &["sed -i"],
        undo: &["sed -i"],
    },
    Case {
        rule: "sysctl-tcp-tw-recycle",
        places: r#"mkdir -p "$bed/sysctl.d"; mount --bind "$bed/sysctl.d" /etc/sysctl.d"#,
        plant: r#"printf 'vm.swappiness = 10\n# kept\nnet.ipv4.tcp_tw_recycle = 1\n' > /etc/sysctl.d/90-web.conf"#,
        steps: &["sed -i"],
        undo: &[],
    },
];

fn script(bed: &Bed, case: &Case, then: &str) -> super::Ran {
    let place = bed.home.dir.path().display();
    let script = format!(
        "set -e\nbed='{place}'\ncd \"$bed\"\n{}\n{then}",
        case.places
    );
    let mut command = bed.command(&["bash", "-c", &script]);
    command.env("BED_SCHEDULER", "none");
    ended(command)
}

/// Returns the finding of the rule with its steps; `None` if there is none.
fn finding(bed: &Bed, case: &Case) -> Option<Value> {
    let check = format!("'{}' check --only {} --json || true", sent(), case.rule);
    let ran = script(bed, case, &check);
    let document: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let found = document["findings"].as_array().unwrap();
    found
        .iter()
        .find(|one| one["certainty"] == "violated")
        .cloned()
}

/// Returns all texts below members with this name.
fn texts(value: &Value, name: &str) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(member, value)| match (member == name, value) {
                (true, Value::Array(all)) => all
                    .iter()
                    .filter_map(|one| one.as_str().map(str::to_owned))
                    .collect(),
                _ => texts(value, name),
            })
            .collect(),
        Value::Array(all) => all.iter().flat_map(|one| texts(one, name)).collect(),
        _ => Vec::new(),
    }
}

/// Executes the commands as a reader pastes them.
fn paste(bed: &Bed, case: &Case, steps: &[String], beginnings: &[&str]) {
    let codes: Vec<&str> = steps
        .iter()
        .flat_map(|step| step.split('`').skip(1).step_by(2))
        .collect();
    for beginning in beginnings {
        let command = codes.iter().find(|code| code.starts_with(beginning));
        let command =
            command.unwrap_or_else(|| panic!("{}: no {beginning} in {codes:?}", case.rule));
        let ran = script(bed, case, command);
        assert_eq!(
            ran.code,
            Some(0),
            "{}: {command}: {}",
            case.rule,
            ran.stderr
        );
    }
}

#[test]
fn every_command_that_is_carried_out_clears_its_finding() {
    for case in &CASES {
        let Some(bed) = Bed::new() else { return };
        let planted = script(&bed, case, case.plant);
        assert_eq!(planted.code, Some(0), "{}: {}", case.rule, planted.stderr);
        let found = finding(&bed, case).unwrap_or_else(|| panic!("{} is not found", case.rule));
        paste(&bed, case, &texts(&found, "steps"), case.steps);
        assert_eq!(finding(&bed, case), None, "{}", case.rule);
        if !case.undo.is_empty() {
            paste(&bed, case, &texts(&found, "undo"), case.undo);
            assert!(finding(&bed, case).is_some(), "{}", case.rule);
        }
        let place = bed.home.dir.path();
        if case.rule == "sysctl-tcp-tw-recycle" {
            let left = fs::read_to_string(place.join("sysctl.d/90-web.conf")).unwrap();
            assert_eq!(left, "vm.swappiness = 10\n# kept\n");
        }
    }
}

/// Read-only commands, and commands that create new files, run as printed.
#[test]
fn commands_that_look_run_as_they_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        let ran = std::process::Command::new("bash")
            .args(["-c", command])
            .current_dir(dir.path())
            .output();
        let ran = ran.unwrap();
        assert!(
            ran.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    run(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out a.pem -subj /CN=a.example -addext subjectAltName=DNS:a.example",
    );
    let catalogue = assay_advice::Catalogue::builtin().unwrap();
    let command = |page: &str, beginning: &str| {
        let remedy = catalogue
            .get(page)
            .unwrap()
            .check
            .as_ref()
            .unwrap()
            .remedy
            .as_ref()
            .unwrap();
        let all = remedy
            .steps
            .iter()
            .flat_map(|step| step.split('`').skip(1).step_by(2));
        let text = all
            .into_iter()
            .find(|code| code.starts_with(beginning))
            .unwrap();
        text.replace("{name}", "a.pem")
            .replace("{certificate}", "a.pem")
    };
    for (page, beginning, shows) in [
        ("certificate-chain-order", "openssl crl2pkcs7", "a.example"),
        ("certificate-other-name", "openssl x509", "a.example"),
        ("certificate-small-key", "openssl genpkey", ""),
    ] {
        let shown = run(&command(page, beginning));
        assert!(shown.contains(shows), "{page}: {shown}");
    }
    assert!(run("openssl pkey -in a.pem.new-key -noout -text").contains("256 bit"));
    // On this machine apt only reads.
    for beginning in ["apt-get check", "apt-get -s -f install"] {
        let text = command("dpkg-unmet-dependency", beginning);
        if rustix::process::geteuid().is_root() && std::path::Path::new("/usr/bin/apt-get").exists()
        {
            let lock = std::process::Command::new("bash")
                .args(["-c", &text])
                .output()
                .unwrap();
            let complaint = String::from_utf8_lossy(&lock.stderr).into_owned();
            assert!(
                lock.status.success() || complaint.contains("lock"),
                "{text}: {complaint}"
            );
        }
    }
}
