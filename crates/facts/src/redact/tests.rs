use super::*;
use assay_host::Recorded;

fn kept(path: &str, text: &str) -> String {
    let host = Recorded::new().file(path, text);
    let once = Redacted::new(&host, false).read(Path::new(path)).unwrap();
    let host = Recorded::new().file(path, once.clone());
    let redacted = Redacted::new(&host, false);
    assert_eq!(redacted.read(Path::new(path)).unwrap(), once, "read twice");
    assert!(redacted.withheld().is_empty());
    String::from_utf8(once).unwrap()
}

fn printed(argv: &[&str], text: &str) -> String {
    let ask = |text: &str| {
        let host = Recorded::new().command(argv, text);
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let output = Redacted::new(&host, false).run(&words, Limits::default());
        output.unwrap().text()
    };
    let once = ask(text);
    assert_eq!(ask(&once), once, "asked twice");
    once
}

#[test]
fn of_a_configuration_stays_what_the_facts_say() {
    for (path, text, expected) in [
        (
            "/etc/ssh/sshd_config.d/10.conf",
            "UseDNS yes\nAllowUsers bob\nMatch User bob\nUsePAM p assword",
            "UseDNS yes\nAllowUsers left-out\nMatch User other-than-root\nUsePAM withheld",
        ),
        (
            "/etc/ssh/sshd_config.d/20.conf",
            "Match User=bob,ro* Address 192.0.2.1\nMatch Address 192.0.2.1\nMatch user bob,!root",
            "Match (left out)\nMatch (left out)\nMatch User other-than-root",
        ),
        (
            "/etc/postfix/main.cf",
            "soft_bounce=Yes\nsmtpd_tls_security_level = ENCRYPT",
            "soft_bounce = yes\nsmtpd_tls_security_level = encrypt",
        ),
        (
            "/etc/nginx/nginx.conf",
            "worker_processes 2; env API_KEY=x;\nhttp {\n  auth_basic \"x\"; sendfile on;\n}",
            "worker_processes 2;\nhttp {\nsendfile on;\n}",
        ),
        (
            "/etc/dovecot/conf.d/10-auth.conf",
            "auth_realms = example.org\n!include auth-sql.conf.ext",
            "\n!include auth-sql.conf.ext",
        ),
        (
            "/etc/sysctl.d/90.conf",
            "# mine\nkernel.domainname = x\nvm.dirty_ratio = 5\nvm.dirty_bytes = Canary",
            "\n\nvm.dirty_ratio = 5\n",
        ),
        (
            "/etc/modprobe.d/a.conf",
            "options zfs zfs_arc_max=1\noptions agent enrol=Canary x\n# Canary",
            "options zfs zfs_arc_max=1\noptions agent enrol=(withheld) (withheld)=(withheld)\n",
        ),
        (
            "/etc/os-release",
            "ID=debian\nHOME_URL=\"https://canary.example/\"\nPRETTY_NAME=\"Debian\"",
            "ID=debian\n\nPRETTY_NAME=\"Debian\"",
        ),
        (
            "/etc/ssl/private/canary.pem",
            "-----BEGIN PRIVATE KEY-----\nQ2FuYXJ5\n-----END PRIVATE KEY-----\n",
            "",
        ),
        (
            "/etc/cron.d/canary",
            "0 3 * * * root /usr/sbin/zpool scrub canary --password=x",
            "zpool scrub",
        ),
        (
            "/proc/77/cgroup",
            "0::/user.slice/user-1000.slice/canary.scope",
            "",
        ),
        ("/proc/77/comm", "secret-agent", "(left out)"),
        (
            "/sys/block/dm-0/dm/uuid",
            "CRYPT-LUKS2-0123-home",
            "CRYPT-LUKS2-",
        ),
        ("/sys/block/dm-1/dm/uuid", "LVM-abcdef", "LVM-"),
    ] {
        assert_eq!(kept(path, text), expected);
    }
}

#[test]
fn what_no_rule_names_is_not_read() {
    let host = Recorded::new()
        .file("/etc/shadow", "root:x")
        .file("/proc/1/environ", "A=b")
        .file("/sys/block/vda/serial", "S3RIAL")
        .file("/etc/ssh/../shadow", "root:x")
        .command(&["env"], "A=b");
    let redacted = Redacted::new(&host, false);
    let paths = [
        "/etc/shadow",
        "/proc/1/environ",
        "/sys/block/vda/serial",
        "/etc/ssh/../shadow",
    ];
    for path in paths {
        let error = redacted.read(Path::new(path)).unwrap_err();
        assert!(matches!(error, HostError::Withheld { .. }), "{error}");
    }
    assert!(redacted.list(Path::new("/root")).is_err());
    let error = redacted.run(&[OsStr::new("env")], Limits::default());
    assert!(matches!(error, Err(HostError::Withheld { .. })));
    let notes = redacted.withheld();
    assert_eq!(notes.len(), paths.len() + 2);
    // A serial number is not a secret, but it identifies the device.
    let named = Redacted::new(&host, true);
    assert!(named.read(Path::new("/sys/block/vda/serial")).is_ok());
    assert!(named.read(Path::new("/etc/shadow")).is_err());
}

#[test]
fn what_commands_print_keeps_no_names() {
    // Recorded with OpenZFS 2.1.11 and cryptsetup 2.6.1.
    let zdb = include_str!("../../fixtures/zfs-2.1.11/zdb-mirror.txt");
    let kept = printed(&["zdb", "-C", "tank"], zdb);
    assert!(!kept.contains("host") && !kept.contains("guid") && !kept.contains("virtio"));
    let ashifts = crate::zpool::ashifts(&kept);
    assert_eq!(ashifts.by_id, crate::zpool::ashifts(zdb).by_id);
    let get = include_str!("../../fixtures/zfs-2.1.11/get-pool.txt");
    let own = "backup:note\tsecret\tlocal\nkeylocation\thttps://u:pw@h/k\tlocal\nsharenfs\trw=@10.0.0.0/8\tlocal\nnewprop\tsecret\tlocal\n";
    let argv = [
        "zpool",
        "get",
        "-Hp",
        "-o",
        "property,value,source",
        "all",
        "tank",
    ];
    let kept = printed(&argv, &format!("{get}{own}"));
    assert!(kept.contains("ashift\t12\tlocal") && !kept.contains("guid\t"));
    assert!(!kept.contains("secret") && !kept.contains("pw@") && !kept.contains("10.0.0"));
    let whole =
        |line: &&str| !["guid", "load_guid", "comment"].contains(&line.split('\t').next().unwrap());
    for line in get.lines().filter(whole) {
        assert!(kept.contains(line), "{line}");
    }
    for get in [
        include_str!("../../fixtures/zfs-2.1.11/get-dataset.txt"),
        include_str!("../../fixtures/zfs-2.1.11/get-zvol.txt"),
    ] {
        let kept = printed(&argv, get);
        let gone = ["objsetid", "createtxg", "guid", "creation"];
        let whole = |line: &&str| !gone.contains(&line.split('\t').next().unwrap());
        for line in get.lines().filter(whole) {
            assert!(kept.contains(line), "{line}");
        }
    }
    let status = include_str!("../../fixtures/zfs-2.1.11/status-mirror.txt");
    assert_eq!(printed(&["zpool", "status", "-LP", "tank"], status), status);
    let table = include_str!("../../fixtures/dmsetup-1.02.185-table.txt");
    let raw = "raw: 0 8 crypt aes-xts-plain64 00ff00ff00ff00ff 0 9:0 32768\n";
    let kept = printed(&["dmsetup", "table"], &format!("{table}{raw}"));
    assert!(
        kept.contains(" :64:") && kept.contains("sector_size:4096"),
        "{kept}"
    );
    assert!(
        !kept.contains("47bf48cc") && !kept.contains("ff00"),
        "{kept}"
    );
    let dump = include_str!("../../fixtures/cryptsetup-2.6.1-luksdump.txt");
    let kept = printed(&["cryptsetup", "luksDump", "/dev/vda"], dump);
    assert_eq!(crate::crypt::pbkdf(&kept), ["pbkdf2"]);
    assert!(!kept.contains("Salt") && !kept.contains("UUID"));
    let dump = include_str!("../../fixtures/dumpe2fs-1.47.0.txt");
    let kept = printed(&["dumpe2fs", "-h", "/dev/vda"], dump);
    assert!(kept.contains("Block size:") && !kept.contains("UUID"));
    let xfs = include_str!("../../fixtures/xfs_info-from-documentation.txt");
    assert_eq!(printed(&["xfs_info", "/srv"], xfs), xfs);
    let lvs = include_str!("../../fixtures/lvm-2.03.16-lvs.json");
    let kept = printed(&crate::lvm::LVS, lvs);
    assert_eq!(crate::lvm::rows(&kept), crate::lvm::rows(lvs));
}

#[test]
fn what_a_tool_complains_about_is_cleaned() {
    let argv = ["zdb", "-C", "tank"];
    let ask = |stderr: &str| {
        let host = Recorded::new().command_with(&argv, 1, "", stderr);
        let output = Redacted::new(&host, false).run(&argv.map(OsStr::new), Limits::default());
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    // Recorded with OpenZFS 2.1.11, Postfix 3.7.11, smartctl 7.3, cryptsetup 2.6.1 and LVM 2.03.16.
    for (said, kept) in [
        ("", ""),
        ("\n", ""),
        (
            "zdb: can't open 'tank': No such file or directory\n",
            "no such file or directory\n",
        ),
        (
            "postqueue: fatal: /etc/postfix/main.cf, line 3: missing '=' after attribute name: \"hunter2\"\n",
            "syntax error in /etc/postfix/main.cf line 3\n",
        ),
        (
            "postqueue: fatal: Queue report unavailable - mail system is down\n",
            "mail system is down\n",
        ),
        (
            "/etc/ssh/sshd_config: line 7: Bad configuration option: hunter2\n/etc/ssh/sshd_config: terminating, 1 bad configuration options\n",
            "unknown option in /etc/ssh/sshd_config line 7\nunknown option in /etc/ssh/sshd_config\n",
        ),
        (
            "  /dev/sda: open failed: No medium found\n  WARNING: hunter2\n",
            "no medium found\n",
        ),
        (
            "Device /dev/hunter2 does not exist or access denied.\n",
            "permission denied\n",
        ),
        ("hunter2\n", "a complaint that is not repeated here\n"),
        (
            "/etc/postfix/main.cf:hunter2: bad value",
            "bad value in /etc/postfix/main.cf\n",
        ),
        ("/etc/postfix/main.cf.hunter2: bad value", "bad value\n"),
    ] {
        assert_eq!(ask(said), kept, "{said}");
        assert_eq!(ask(kept), kept);
    }
}

/// Only the kind of an error is kept. The test puts a secret into error messages of each tool, in each form in which
/// tools quote input.
#[test]
fn attack_what_a_tool_quotes_is_not_kept() {
    let forms = crate::script::FORMS;
    let tools: [&[&str]; 16] = [
        &["zdb", "-C", "tank"],
        &["zpool", "status", "-LP"],
        &["zfs", "list", "-H", "-o", "name", "-t", "volume"],
        &["dmsetup", "table"],
        &["cryptsetup", "luksDump", "/dev/sda"],
        &["dumpe2fs", "-h", "/dev/sda"],
        &["xfs_info", "/srv"],
        &["btrfs", "property", "get", "-t", "inode", "/srv"],
        &["postqueue", "-j"],
        &["systemd-detect-virt", "--vm"],
        &["smartctl", "-n", "standby", "-H", "-A", "/dev/sda"],
        &["stat", "--dereference", "--format=%a", "--", "/etc/x"],
        &["nginx", "-v"],
        &["ssh", "-V"],
        &["fio", "--version"],
        &crate::lvm::LVS,
    ];
    let mut tried = 0;
    for argv in tools {
        for form in forms {
            for words in [
                "",
                "fatal: ",
                "permission denied: ",
                "/etc/postfix/main.cf, line 3: missing '=': ",
            ] {
                let said = format!("{words}{form}\nusage: {form}\n").replace('@', "Canary5ecret");
                let host = Recorded::new().command_with(argv, 1, "", &said);
                let list: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
                let output = Redacted::new(&host, false)
                    .run(&list, Limits::default())
                    .unwrap();
                let kept = String::from_utf8(output.stderr).unwrap();
                assert!(
                    !kept.contains("Canary5ecret") && !kept.contains("Q2FuYXJ5"),
                    "{argv:?}: {said}{kept}"
                );
                tried += 1;
            }
        }
    }
    assay_testing::attacked("secrets in complaints", tried, tried);
}

/// Redacting a version keeps its numbers, and words that belong to versions.
#[test]
fn versions_are_kept_and_nothing_beside_them() {
    for (said, kept) in [
        ("fio-3.33", "fio-3.33"),
        (
            "qemu-img version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)",
            "qemu-img version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)",
        ),
        ("btrfs-progs v6.2", "btrfs-progs v6.2"),
        ("mke2fs 1.47.0 (5-Feb-2023)", "mke2fs 1.47.0 (5-Feb-2023)"),
        (
            "mkfs.btrfs, part of btrfs-progs v6.2",
            "mkfs.btrfs, part of btrfs-progs v6.2",
        ),
        ("nginx version: nginx/1.22.1", "nginx version: nginx/1.22.1"),
        (
            "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026",
            "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026",
        ),
        ("2.3.19.1 (9b53102964)", "2.3.19.1 (9b53102964)"),
        (
            "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
            "mariadbd Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
        ),
        (
            "pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
            "pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
        ),
        ("zfs-2.1.11-1+deb12u1", "zfs-2.1.11-1+deb12u1"),
        (
            "fio-3.33 built by alice@box for token=hunter2 hunter2",
            "fio-3.33 built for",
        ),
    ] {
        assert_eq!(printed(&["fio", "--version"], said).trim_end(), kept);
    }
}
