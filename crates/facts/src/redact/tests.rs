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
            "UseDNS yes\nAllowUsers left-out\nMatch (left out)\nUsePAM withheld",
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
    // A serial number is no secret, but it names the device.
    let named = Redacted::new(&host, true);
    assert!(named.read(Path::new("/sys/block/vda/serial")).is_ok());
    assert!(named.read(Path::new("/etc/shadow")).is_err());
}

#[test]
fn what_commands_print_keeps_no_names() {
    // Recorded: OpenZFS 2.1.11, cryptsetup 2.6.1.
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
    let host = Recorded::new().command_with(&argv, 1, "", "zdb: cannot open http://u:pw@h/x: no\n");
    let words = argv.map(OsStr::new);
    let output = Redacted::new(&host, false).run(&words, Limits::default());
    let complaint = output.unwrap().complaint();
    assert!(
        !complaint.contains("pw") && complaint.contains("cannot open"),
        "{complaint}"
    );
}
