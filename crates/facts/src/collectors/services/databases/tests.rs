use super::*;
use assay_host::Recorded;

fn facts(host: &Recorded) -> assay_model::Facts {
    let mut g = Gather::new(host);
    collect(&mut g);
    g.facts
}

#[test]
fn the_last_word_of_a_cluster_counts_and_is_named() {
    let conf = "/etc/postgresql/15/main/postgresql.conf";
    let host = Recorded::new()
        .file(
            conf,
            "#fsync = off\nfsync 'on' # x\ninclude_dir = 'conf.d'\nFull_Page_Writes=no\n",
        )
        .file(
            "/etc/postgresql/15/main/conf.d/a.conf",
            "fsync = off\nport=1\n",
        )
        .file("/etc/postgresql/15/main/conf.d/b.conf.old", "fsync = on\n");
    let found = facts(&host);
    let key = "postgresql.cluster.15/main.fsync";
    assert_eq!(found.str(key), Some("off"));
    assert_eq!(
        found.map[key].place.to_string(),
        "/etc/postgresql/15/main/conf.d/a.conf:1"
    );
    let full = "postgresql.cluster.15/main.full_page_writes";
    assert_eq!(found.str(full), Some("off"));
    // The file of ALTER SYSTEM is read last; if it is unreadable, the settings are unknown.
    let altered = "/var/lib/postgresql/15/main/postgresql.auto.conf";
    let host = host.file(altered, "# Do not edit\nfsync = 'on'\n");
    assert_eq!(facts(&host).str(key), Some("on"));
    let found = facts(&host.denied(altered));
    assert!(!found.map.contains_key(key) && found.map.contains_key("postgresql.cluster.15/main"));
}

#[test]
fn groups_prefixes_and_dashes_of_mariadb() {
    let text = "[client]\ninnodb_doublewrite=0\n!includedir /etc/mysql/mariadb.conf.d/\n";
    let host = with_version("1:10.11.6-0+deb12u1")
        .file("/etc/mysql/my.cnf", text)
        .file(
            "/etc/mysql/mariadb.conf.d/50-server.cnf",
            "[mariadb-10.11]\nskip-innodb-doublewrite\n[mysqldump]\nskip_innodb_doublewrite=0\n\
         [mysqld]\nloose-innodb_flush_log_at_trx_commit = 2 # fast\n",
        );
    let found = facts(&host);
    assert_eq!(found.str("mariadb.innodb_doublewrite"), Some("off"));
    assert_eq!(
        found.str("mariadb.innodb_flush_log_at_trx_commit"),
        Some("2")
    );
    let bare = facts(&Recorded::new().file("/etc/my.cnf", "[mysqld]\n"));
    assert_eq!(bare.str("mariadb.innodb_doublewrite"), Some("on"));
    assert!(facts(&Recorded::new()).map.is_empty());
}

#[test]
fn a_capture_says_the_same_and_nothing_else() {
    let text = "!includedir /etc/mysql/conf.d/\n!include /home/a b\n[client-server]\npassword = hunter2\n[mysqld]\n\
                skip-innodb-doublewrite # hunter2\ninnodb_flush_log_at_trx_commit='2' # hunter2\n\
                bind-address = 10.0.0.1\n";
    let kept: Vec<String> = text.lines().map(redact).collect();
    let again: Vec<String> = kept.iter().map(|line| redact(line)).collect();
    assert_eq!(again, kept);
    let kept = kept.join("\n");
    assert!(
        !kept.contains("hunter2") && !kept.contains("10.0"),
        "{kept}"
    );
    let (one, other) = (
        Recorded::new().file("/etc/my.cnf", text),
        Recorded::new().file("/etc/my.cnf", kept),
    );
    let (one, other) = (facts(&one), facts(&other));
    // Both settings, the missing included file, and the unknown file system.
    assert_eq!(one.map.len(), 4);
    for (key, fact) in &one.map {
        assert_eq!(fact.value, other.map[key].value, "{key}");
        let line = |fact: &assay_model::Fact| fact.place.to_string();
        assert_eq!(line(fact), line(&other.map[key]), "{key}");
    }
    assert_eq!(
        redact("fsync = a-secret-that-is-long"),
        "fsync = (withheld)"
    );
}

fn with_version(version: &str) -> Recorded {
    let status =
        format!("Package: mariadb-server\nStatus: install ok installed\nVersion: {version}\n");
    Recorded::new().file(packages::STATUS, &*status)
}

fn is_unknown(found: &assay_model::Facts, key: &str) -> bool {
    found.map.contains_key(key) && found.get(key).is_none()
}

/// Expected values are the output of `mariadbd --print-defaults`, 10.11.19.
#[test]
fn groups_of_other_versions_are_not_read() {
    let commit = "mariadb.innodb_flush_log_at_trx_commit";
    let ask = |host: Recorded, groups: &str| {
        let text: String = groups
            .lines()
            .map(|line| line.replace('=', "\ninnodb_flush_log_at_trx_commit = ") + "\n")
            .collect();
        facts(&host.file("/etc/mysql/my.cnf", text))
    };
    for (version, groups, expected) in [
        ("1:10.11.6-0+deb12u1", "[mariadb-10.3]=2", "1"),
        ("1:10.11.6-0+deb12u1", "[mariadb-10.11]=2", "2"),
        ("1:10.11.6-0+deb12u1", "[mariadbd-10.11]=2", "2"),
        (
            "1:10.11.6-0+deb12u1",
            "[mysqld-10.11]=0\n[mysqld-5.7]=1",
            "0",
        ),
        ("1:10.11.6-0+deb12u1", "[server-10.11]=2", "1"),
        ("1:10.11.6-0+deb12u1", "[galera-10.11]=2", "1"),
        ("1:10.11.6-0+deb12u1", "[mariadb-10.11.6]=2", "1"),
        ("1:10.11.6-0+deb12u1", "[mariadb-10.1]=2", "1"),
        ("1:10.11.6-0+deb12u1", "[ mysqld]=2", "1"),
        ("1:10.3.39-0+deb10u1", "[mariadb-10.3]=2", "2"),
        ("", "[mysqld]=2", "2"),
        // The version does not matter if a later line decides, or if all lines agree.
        ("", "[mariadb-10.3]=2\n[mysqld]=1", "1"),
        ("", "[mariadb-10.3]=1", "1"),
    ] {
        let host = if version.is_empty() {
            Recorded::new()
        } else {
            with_version(version)
        };
        assert_eq!(
            ask(host, groups).str(commit),
            Some(expected),
            "{version} {groups}"
        );
    }
    assert!(is_unknown(
        &ask(Recorded::new(), "[mariadb-10.3]=2"),
        commit
    ));
    assert!(is_unknown(
        &ask(Recorded::new(), "[mysqld]=1\n[mariadb-10.11]=0"),
        commit
    ));
    let status = "Package: mysql-server-8.0\nStatus: install ok installed\nVersion: 8.0.36-0ubuntu0.22.04.1\n";
    let mysql = || Recorded::new().file(packages::STATUS, status);
    assert_eq!(ask(mysql(), "[mariadb]=2").str(commit), Some("1"));
    assert_eq!(ask(mysql(), "[mysqld-8.0]=2").str(commit), Some("2"));
}

#[test]
fn what_a_missing_file_may_say_is_unknown() {
    let conf = "/etc/postgresql/15/main/postgresql.conf";
    let subject = "postgresql.cluster.15/main";
    let key = "postgresql.cluster.15/main.fsync";
    for (text, known) in [
        ("fsync = off\ninclude 'missing.conf'\n", None),
        ("include_dir 'nowhere'\n", None),
        ("INCLUDE = '/etc/other.conf'\n", None),
        ("include 'my file.conf'\n", None),
        ("include 'denied.conf'\n", None),
        ("include_if_exists 'denied.conf'\n", None),
        ("include 'missing.conf'\nfsync = on\n", None),
        ("include_dir 'nowhere'\nfsync = on\n", None),
        ("include 'denied.conf'\nfsync = on\n", Some("on")),
        ("include 'missing.conf'\nfsync = of\n", Some("off")),
        (
            "fsync = fals\ninclude_if_exists 'missing.conf'\n",
            Some("off"),
        ),
        ("fsync = YE\n", Some("on")),
    ] {
        let host = Recorded::new()
            .file(conf, text)
            .denied("/etc/postgresql/15/main/denied.conf");
        let host = crate::Redacted::new(&host, false);
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str(key), known, "{text}");
        let hidden = text.to_lowercase().starts_with("include '") || known.is_none();
        assert_eq!(is_unknown(&g.facts, subject), hidden, "{text}");
        if let Some(fact) = g.facts.map.get(subject) {
            let line = 1 + text
                .lines()
                .position(|line| line.to_lowercase().starts_with("include"))
                .unwrap();
            assert_eq!(fact.place.line(), Some(line), "{text}");
        }
    }
    // The cluster's configuration contains the directory of the ALTER SYSTEM file.
    let host = Recorded::new()
        .file(conf, "data_directory = '/srv/pg'\nfsync = on\n")
        .file("/srv/pg/postgresql.auto.conf", "fsync = 'off'\n");
    assert_eq!(facts(&host).str(key), Some("off"));
    // A path relative to the working directory of the server, and a missing directory.
    for line in [
        "!include x.cnf",
        "!includedir /nowhere",
        "!include /etc/none.cnf",
        "!include /etc/a b",
    ] {
        let host = Recorded::new().file("/etc/my.cnf", format!("[mysqld]\n{line}\n"));
        let found = facts(&host);
        assert!(
            is_unknown(&found, "mariadb") && found.map.len() == 1,
            "{line}: {:?}",
            found.map
        );
    }
    let host = Recorded::new()
        .file("/etc/my.cnf", "[mysqld]\n!includedir /etc/my.cnf.d\n")
        .file(
            "/etc/my.cnf.d/.hidden.cnf",
            "[mysqld]\ninnodb_doublewrite=0\n",
        );
    assert_eq!(facts(&host).str("mariadb.innodb_doublewrite"), Some("off"));
}

#[test]
fn file_systems_that_write_whole_pages() {
    let key = "postgresql.cluster.15/main.whole_pages";
    let conf = "/etc/postgresql/15/main/postgresql.conf";
    let root = "1 1 0:20 / / rw - ext4 /dev/vda1 rw\n";
    let on = |mounts: &str, more: &str| {
        let host = Recorded::new().file(conf, format!("full_page_writes = off\n{more}"));
        let host = match mounts {
            "" => host,
            mounts => host.file(crate::mountinfo::MOUNTINFO, format!("{root}{mounts}")),
        };
        facts(&host)
    };
    let zfs = "2 1 0:30 / /var/lib/postgresql rw - zfs tank/pg rw,xattr\n";
    assert_eq!(on(zfs, "").get(key), Some(&true.into()));
    assert_eq!(
        on(zfs, "data_directory = '/srv/pg'\n").get(key),
        Some(&false.into())
    );
    assert_eq!(
        on("3 1 0:31 / /srv rw - xfs /dev/vdb rw\n", "").get(key),
        Some(&false.into())
    );
    // Copy-on-write is an attribute of each file.
    assert!(is_unknown(
        &on("2 1 0:30 / /var/lib rw - btrfs /dev/vdb rw,ssd\n", ""),
        key
    ));
    let nodatacow = "2 1 0:30 / /var/lib rw - btrfs /dev/vdb rw,nodatacow\n";
    assert_eq!(on(nodatacow, "").get(key), Some(&false.into()));
    assert!(is_unknown(&on("", ""), key));
    let safe = facts(&Recorded::new().file(conf, "full_page_writes = on\n"));
    assert!(!safe.map.contains_key(key));
}
