//! Properties of any configuration: the lines that take effect, their positions, and uncertain values. Hostile files
//! must also give a result.

#![allow(clippy::disallowed_methods, reason = "a test makes files")]

use assay_config::effective::files::{FileFault, Files};
use assay_config::effective::{Effective, Program, ScopeId, Trouble, read_effective};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Memory(BTreeMap<PathBuf, Result<Vec<u8>, FileFault>>);

impl Memory {
    fn of(files: &[(&str, &[u8])]) -> Self {
        let pair = |(path, text): &(&str, &[u8])| (PathBuf::from(path), Ok(text.to_vec()));
        Self(files.iter().map(pair).collect())
    }

    fn denied(mut self, path: &str) -> Self {
        let fault = FileFault::Unreadable("not for you".to_owned());
        self.0.insert(path.into(), Err(fault));
        self
    }
}

impl Files for Memory {
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault> {
        self.0.get(path).cloned().unwrap_or(Err(FileFault::Absent))
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, FileFault> {
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(dir).ok());
        let mut names: Vec<OsString> = inside
            .filter_map(|path| path.components().next())
            .map(|first| first.as_os_str().to_owned())
            .collect();
        names.dedup();
        if names.is_empty() {
            Err(FileFault::Absent)
        } else {
            Ok(names)
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, FileFault> {
        Ok(self.0.keys().any(|known| known.starts_with(path)))
    }
}

fn read(program: Program, files: &dyn Files) -> Effective {
    let main = match program {
        Program::Sshd => "/etc/ssh/sshd_config",
        Program::Ssh => "/root/.ssh/config",
        Program::Nginx => "/etc/nginx/nginx.conf",
        Program::Dovecot => "/etc/dovecot/dovecot.conf",
        Program::Postfix => "/etc/postfix/main.cf",
        Program::Sysctl => "/etc/sysctl.conf",
        Program::Systemd => "/etc/systemd/system.conf",
        Program::Nsswitch => "/etc/nsswitch.conf",
        Program::Samba => "/etc/samba/smb.conf",
    };
    read_effective(program, Path::new(main), files).unwrap()
}

/// Returns value, file and line of the setting that takes effect.
fn told(all: &Effective, scope: ScopeId, key: &str) -> Option<(String, String)> {
    let said = all.value(scope, key)?;
    Some((said.text(), said.place.to_string()))
}

fn pair(value: &str, place: &str) -> Option<(String, String)> {
    Some((value.to_owned(), place.to_owned()))
}

#[test]
fn the_first_line_of_sshd_with_its_place_and_what_it_overrides() {
    let files = Memory::of(&[
        (
            "/etc/ssh/sshd_config",
            b"# \xff\xfe\r\nInclude sshd_config.d/[0-9]*.conf\r\nUseDNS no\r\nBanner \"/\xff x\"\r\n\
              Match User a\r\n  Include /more\r\n  PermitTTY no\r\n",
        ),
        ("/etc/ssh/sshd_config.d/a.conf", b"UseDNS never\n"),
        ("/etc/ssh/sshd_config.d/10.conf", b"\n  usedns   yes # why\n"),
        ("/more", b"PermitTTY yes\nMatch Host b\nMaxSessions 3\n"),
    ]);
    let all = read(Program::Sshd, &files);
    assert!(all.problems.is_empty(), "{:?}", all.problems);
    let root = ScopeId::ROOT;
    let place = "/etc/ssh/sshd_config.d/10.conf:2";
    assert_eq!(told(&all, root, "UseDNS"), pair("yes", place));
    let said = all.value(root, "usedns").unwrap();
    let text = &files.read(&said.place.path).unwrap()[said.place.span.clone()];
    assert_eq!(text, b"usedns   yes");
    let over: Vec<String> = all
        .overridden(root, "UseDNS")
        .iter()
        .map(|said| said.place.to_string())
        .collect();
    assert_eq!(over, ["/etc/ssh/sshd_config:3"]);
    assert_eq!(all.value(root, "banner").unwrap().words, [b"/\xff x"]);
    let user = all.find(&["Match User a"])[0];
    assert_eq!(told(&all, user, "permittty"), pair("yes", "/more:1"));
    let both = all.find(&["Match User a", "Match Host b"])[0];
    assert_eq!(told(&all, both, "maxsessions"), pair("3", "/more:3"));
    assert_eq!(told(&all, user, "maxsessions"), None);
    assert_eq!(told(&all, both, "usedns"), pair("yes", place));
}

#[test]
fn what_cannot_be_read_makes_unknown_what_it_may_say() {
    let texts: &[(&str, &[u8])] = &[
        (
            "/etc/ssh/sshd_config",
            b"UseDNS no\nInclude x.d/*\nUsePAM no\nMatch all\nInclude y\n",
        ),
        (
            "/etc/nginx/nginx.conf",
            b"user x; http { sendfile on; server { include s; gzip on; } }",
        ),
        ("/etc/postfix/main.cf", b"a = 1\n"),
        ("/etc/sysctl.conf", b"b = 2\n"),
        ("/etc/sysctl.d/5.conf", b"a = 2\nb = 1\n"),
    ];
    let denied = [
        "/etc/ssh/x.d/1",
        "/etc/ssh/y",
        "/etc/nginx/s",
        "/etc/postfix/master.cf",
    ];
    let files = denied
        .iter()
        .fold(Memory::of(texts), |files, path| files.denied(path))
        .denied("/run/sysctl.d/9.conf");
    let root = ScopeId::ROOT;
    let all = read(Program::Sshd, &files);
    assert!(all.certain(root, "usedns").is_ok());
    for key in ["usepam", "maxsessions"] {
        let problem = all.certain(root, key).unwrap_err();
        assert_eq!(problem.place.line, 2);
        assert!(
            matches!(&problem.trouble, Trouble::Unread { include, .. } if include == "/etc/ssh/x.d/1")
        );
    }
    let all = read(Program::Nginx, &files);
    let [http, server] = [&["http"][..], &["http", "server"]].map(|path| all.find(path)[0]);
    assert!(all.certain(root, "user").is_ok() && all.certain(http, "sendfile").is_ok());
    assert!(all.certain(server, "gzip").is_err() && all.certain(server, "sendfile").is_err());
    let all = read(Program::Sysctl, &files);
    assert!(all.certain(root, "a").is_err() && all.certain(root, "b").is_ok());
    let missing = read_effective(Program::Dovecot, Path::new("/none"), &files);
    assert_eq!(missing, Err(FileFault::Absent));
    let unread = read_effective(Program::Dovecot, Path::new("/etc/ssh/y"), &files);
    assert!(matches!(unread, Err(FileFault::Unreadable(_))));
}

#[test]
fn what_an_nginx_location_inherits() {
    let files = Memory::of(&[(
        "/etc/nginx/nginx.conf",
        b"http { sendfile on; add_header A 1; return 1; map $a $b { sendfile off; }\n\
          server { add_header B 2; add_header C 3; location / { tcp_nodelay on; if ($a) { x y; } } } }",
    )]);
    let all = read(Program::Nginx, &files);
    let path = ["http", "server", "location /", "if ($a)"];
    let scope = all.find(&path)[0];
    assert_eq!(all.value(scope, "sendfile").unwrap().text(), "on");
    let headers: Vec<String> = all
        .get(scope, "add_header")
        .iter()
        .map(|said| said.text())
        .collect();
    assert_eq!(headers, ["B 2", "C 3"]);
    assert_eq!(all.overridden(scope, "add_header").len(), 1);
    assert_eq!(all.value(scope, "return"), None);
    let map = all.find(&["http", "map $a $b"])[0];
    assert_eq!(all.value(map, "add_header"), None);
}

#[test]
fn filters_of_dovecot_and_services_of_postfix() {
    let files = Memory::of(&[
        (
            "/etc/dovecot/dovecot.conf",
            b"protocol imap {\n a = 1\n service x {\n  b = 2\n }\n}\nremote 10.0.0.0/8 {\n protocol imap {\n \
              c = 3\n }\n}\na = 0\nservice x {\n b = 0\n d = 4\n}\npassdb {\n e = 5\n}\n!include_try gone\n",
        ),
        ("/etc/postfix/main.cf", b"a = 1\n b\na=\n 2\n"),
        (
            "/etc/postfix/master.cf",
            b"smtp inet n - y - - smtpd\n -o a=3\nsmtp unix n - y - - smtp\nsmtp inet n - y - - smtpd -ob=4\nx\n",
        ),
    ]);
    let all = read(Program::Dovecot, &files);
    assert!(all.problems.is_empty());
    let value =
        |path: &[&str], key: &str| all.value(all.find(path)[0], key).map(|said| said.text());
    assert_eq!(value(&["protocol imap"], "a").as_deref(), Some("1"));
    assert_eq!(
        value(&["protocol imap", "service x"], "b").as_deref(),
        Some("2")
    );
    assert_eq!(
        value(&["protocol imap", "service x"], "d").as_deref(),
        Some("4")
    );
    assert_eq!(
        value(&["remote 10.0.0.0/8", "protocol imap"], "a").as_deref(),
        Some("0")
    );
    assert_eq!(value(&["passdb"], "a"), None);
    let all = read(Program::Postfix, &files);
    assert_eq!(all.problems.len(), 1, "a service of one field");
    assert_eq!(
        all.problems[0].place.to_string(),
        "/etc/postfix/master.cf:5"
    );
    let value =
        |path: &[&str], key: &str| all.value(all.find(path)[0], key).map(|said| said.text());
    assert_eq!(value(&["smtp inet"], "b").as_deref(), Some("4"));
    // Of several lines for one service, the last takes effect.
    assert_eq!(value(&["smtp inet"], "a").as_deref(), Some("2"));
    assert_eq!(value(&["smtp unix"], "a").as_deref(), Some("2"));
    assert_eq!(all.overridden(ScopeId::ROOT, "a").len(), 1);
}

/// Files of random parts include each other. Reading must end quickly, and every position must be correct.
#[test]
fn attack_hostile_files() {
    const PARTS: [&[u8]; 40] = [
        b"Include *\n",
        b"include *;",
        b"!include *\n",
        b"!include_try {a,b}*\n",
        b"include [",
        b"Include \"",
        b"Match user a\n",
        b"Match",
        b"Host *\n",
        b"server {",
        b"http{",
        b"}",
        b"}\n",
        b"{",
        b";",
        b"\"",
        b"'",
        b"\\",
        b"\\\n",
        b"#",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\xff",
        b" ",
        b"\t",
        b"=",
        b" = ",
        b"$a",
        b"a = b\n",
        b"a b;",
        b"ForceCommand x # y\n",
        b"a_by_lua_block {",
        b"passdb {\n",
        b"smtp inet n - y - - x -o",
        b"[x]\n",
        b"-o { a = b",
        b"${",
        b"<",
    ];
    let programs = Program::USUAL;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % limit
    };
    let (mut tried, mut held) = (0, 0);
    for _ in 0..1000 * assay_testing::attack_factor() {
        let (program, main) = programs[below(programs.len())];
        let dir = Path::new(main).parent().unwrap();
        let mut files = Memory::default();
        let others = ["a", "b", "master.cf"].map(|name| dir.join(name));
        for path in others
            .into_iter()
            .chain([PathBuf::from(main), "/etc/sysctl.d/a.conf".into()])
        {
            let parts = (0..below(20)).flat_map(|_| PARTS[below(PARTS.len())]);
            files.0.insert(path, Ok(parts.copied().collect()));
        }
        let all = read(program, &files);
        let right = all.settings().iter().all(|said| {
            let text = files.read(&said.place.path).unwrap();
            let before = text.get(..said.place.span.start).unwrap_or_default();
            let lines = before.iter().filter(|&&byte| byte == b'\n').count();
            // Every lookup ends.
            let counts = all.get(said.scope, &said.key);
            text.get(said.place.span.clone())
                .is_some_and(|bytes| !bytes.is_empty())
                && said.place.line == lines + 1
                && counts.len() + all.overridden(said.scope, &said.key).len() > 0
        });
        tried += 1;
        held += u64::from(right && all.files.len() <= 4096);
    }
    assay_testing::attacked("configurations made to confuse", tried, held);
}

#[test]
fn blocks_without_end_are_refused() {
    for (program, path, open) in [
        (Program::Nginx, "/etc/nginx/nginx.conf", "a {\n"),
        (Program::Dovecot, "/etc/dovecot/dovecot.conf", "a {\n"),
    ] {
        let text = open.repeat(300_000) + &"}\n".repeat(300_000);
        let all = read(program, &Memory::of(&[(path, text.as_bytes())]));
        let problem = &all.problems[0];
        assert!(matches!(problem.trouble, Trouble::Syntax(_)) && problem.place.line > 100);
    }
}

/// The files of a machine contain masks, dangling symbolic links and directories.
#[test]
fn a_live_machine() {
    let dir = tempfile::tempdir().unwrap();
    let drop_ins = dir.path().join("etc/sysctl.d");
    std::fs::create_dir_all(drop_ins.join("directory.conf")).unwrap();
    std::os::unix::fs::symlink("/dev/null", drop_ins.join("1.conf")).unwrap();
    std::os::unix::fs::symlink("nowhere", drop_ins.join("2.conf")).unwrap();
    let main = dir.path().join("etc/sysctl.conf");
    std::fs::write(&main, "a = 1\n").unwrap();
    let files = assay_config::effective::files::OfHost(&assay_host::LiveHost);
    let all = read_effective(Program::Sysctl, &main, &files).unwrap();
    assert!(all.certain(ScopeId::ROOT, "a").is_ok());
    let unread: Vec<&Path> = all
        .problems
        .iter()
        .map(|problem| &*problem.place.path)
        .collect();
    assert_eq!(unread, [&*main], "{:?}", all.problems);
    // glob(3) finds the link, but nginx cannot open it.
    let main = dir.path().join("nginx.conf");
    std::fs::write(&main, "include etc/sysctl.d/[2]*;").unwrap();
    let all = read_effective(Program::Nginx, &main, &files).unwrap();
    assert!(matches!(
        &all.problems[..],
        [assay_config::effective::ConfigProblem {
            trouble: Trouble::Unread {
                fault: FileFault::Absent,
                ..
            },
            ..
        }]
    ));
}

#[test]
fn a_long_line_and_many_lines_take_no_time() {
    let value = vec![b'x'; 4 << 20];
    let long = [b"Banner ", &value[..], b"\n"].concat();
    let files = Memory::of(&[("/etc/ssh/sshd_config", &long)]);
    let all = read(Program::Sshd, &files);
    assert_eq!(
        all.value(ScopeId::ROOT, "banner").unwrap().value.len(),
        4 << 20
    );
    let many: Vec<u8> = (0..100_000)
        .flat_map(|at| format!("a{at} = b\n").into_bytes())
        .collect();
    let files = Memory::of(&[("/etc/dovecot/dovecot.conf", &many)]);
    let all = read(Program::Dovecot, &files);
    assert_eq!(all.settings().last().unwrap().place.line, 100_000);
    // Looks up a key in each of many blocks, as a check does.
    let many: Vec<u8> = (0..20_000)
        .flat_map(|at| format!("server {{ listen {at}; gzip on; root /srv; }}\n").into_bytes())
        .collect();
    let many = [b"http { sendfile on;\n", &many[..], b"}\n"].concat();
    let files = Memory::of(&[("/etc/nginx/nginx.conf", &many)]);
    let all = read(Program::Nginx, &files);
    let asked = all.scopes().map(|(id, _)| {
        ["listen", "sendfile", "absent"]
            .map(|key| all.get(id, key).len() + all.overridden(id, key).len())
    });
    let found: usize = asked.flatten().sum();
    assert_eq!(found, 20_000 + 20_001);
}

/// The key of a returned setting finds this setting. One leading hyphen is not part of a name, but a second one is.
#[test]
fn a_setting_is_found_by_its_own_key() {
    let text = b"-vm.a = 1\n--vm.b = 2\n- net/ipv4/conf/eth0.1/c = 3\n/d = 4\n";
    let files = Memory::of(&[("/etc/sysctl.conf", &text[..])]);
    let all = read(Program::Sysctl, &files);
    let keys: Vec<_> = all.settings().iter().map(|said| &said.key[..]).collect();
    assert_eq!(keys, ["vm.a", "-vm.b", "net.ipv4.conf.eth0/1.c", ".d"]);
    for said in all.settings() {
        assert_eq!(all.get(said.scope, &said.key), [said]);
    }
    let slashes = all.value(ScopeId::ROOT, "net/ipv4/conf/eth0.1/c").unwrap();
    assert_eq!(slashes.value, b"3");
}

/// If long files include each other, reading must stop before the memory is full.
#[test]
fn attack_includes_that_take_all_memory() {
    struct Long(Vec<u8>);
    impl Files for Long {
        fn read(&self, _: &Path) -> Result<Vec<u8>, FileFault> {
            Ok(self.0.clone())
        }
        fn list(&self, _: &Path) -> Result<Vec<std::ffi::OsString>, FileFault> {
            Ok(vec!["a".into(), "b".into()])
        }
        fn exists(&self, _: &Path) -> Result<bool, FileFault> {
            Ok(true)
        }
    }
    let (mut tried, mut held) = (0, 0);
    for (program, include) in [
        (Program::Sshd, "Include *\n"),
        (Program::Ssh, "Include *\n"),
        (Program::Nginx, "include *;\n"),
        (Program::Dovecot, "!include *\n"),
    ] {
        let mut text = include.as_bytes().to_vec();
        text.extend(b"# x\n".repeat(1 << 18));
        text.extend(include.as_bytes());
        let all = read(program, &Long(text));
        tried += 1;
        held += u64::from(all.files.len() <= 20);
    }
    assay_testing::attacked("includes that take all memory", tried, held);
}

/// Each file includes a file that is one directory deeper. The case was found with mutated inputs. The second case took
/// minutes, because its paths are similar from their ends.
#[test]
fn attack_includes_that_go_deeper_each_time() {
    struct Deep(&'static str);
    impl Files for Deep {
        fn read(&self, _: &Path) -> Result<Vec<u8>, FileFault> {
            Ok(self.0.into())
        }
        fn list(&self, _: &Path) -> Result<Vec<std::ffi::OsString>, FileFault> {
            Ok(vec!["a.conf".into(), "b.conf".into()])
        }
        fn exists(&self, _: &Path) -> Result<bool, FileFault> {
            Ok(true)
        }
    }
    for text in [
        "!include  80; location / { sendfile on; } } }\na = b\n",
        "!include ://*\na = b\n",
    ] {
        let all = read(Program::Dovecot, &Deep(text));
        let longest = all.files.iter().map(|path| path.as_os_str().len()).max();
        assert!(longest < Some(4096), "{longest:?}");
        assert!(!all.problems.is_empty());
    }
    assay_testing::attacked("includes that go deeper each time", 2, 2);
}

/// A value that contains its own name twice doubles with every line.
#[test]
fn attack_values_that_take_all_memory() {
    let path = PathBuf::from("/etc/dovecot/dovecot.conf");
    let text = format!("a = x\n{}b = 1\n", "a = $a $a\n".repeat(200));
    let all = read(
        Program::Dovecot,
        &Memory([(path, Ok(text.into_bytes()))].into()),
    );
    let kept: usize = all.settings().iter().map(|said| said.value.len()).sum();
    assert!(kept < 64 << 20, "{kept}");
    let told = all
        .problems
        .iter()
        .any(|problem| problem.trouble == Trouble::Endless);
    assert_eq!(all.settings().iter().any(|said| said.key == "b"), !told);
    assay_testing::attacked("values that take all memory", 1, u64::from(told));
}
