#![allow(clippy::disallowed_methods, reason = "tests run the script")]

use super::*;
use crate::redact::rule_of_file;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Runs an awk program on a text with each common awk; all must print the same.
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

/// Returns the first lines that differ between two awks.
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

/// Returns the text of each file after `clean.awk`, in order.
fn cleaned(files: &[(&str, &str, Vec<u8>)]) -> Vec<String> {
    let mut input = Vec::new();
    for (number, (class, _, text)) in files.iter().enumerate() {
        input.extend(format!("B {} /{number}\n", class).into_bytes());
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        for line in text.split(|&byte| byte == b'\n') {
            input.push(b'O');
            input.extend(line);
            input.push(b'\n');
        }
        input.extend(b".\n");
    }
    let output = awk(&clean_program(), &input);
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

/// Command lines of QEMU have the same meaning after the script; text that it adds has none.
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

/// Normalises lines: removes trailing blanks and repeated blanks between words.
fn normal(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Returns a sample of each kind of file, with text that must not pass.
fn samples() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let nginx = include_str!("../../fixtures/nginx-1.22.1-debian12.conf");
    let sshd = "Include /etc/ssh/sshd_config.d/*.conf\n# hunter2\nPort 2222\nListenAddress 10.1.2.3\n\
                UsePAM yes\nusedns=no\nPermitRootLogin prohibit-password # secret\nAllowUsers alice\n\
                Ciphers +aes128-cbc,aes256-ctr,evil@corp.example\nMACs hmac-sha1,umac-64@openssh.com\n\
                TrustedUserCAKeys /etc/ssh/ca.pub\nAuthorizedPrincipalsFile /home/alice/x\nRevokedKeys none\n\
                Match User bob\n  PasswordAuthentication YES\n\tBanner /etc/secret\nMatch all\n  MaxAuthTries 3\n\
                Subsystem sftp internal-sftp\nChallengeResponseAuthentication no\nKeyRegenerationInterval 3600\n\
                DenyUsers \"ro?t\" r*@10.0.0.1 alice@host\nAllowGroups w*l admins \"r*t\"\ndenygroups sales\n\
                AuthenticationMethods publickey,password publickey,keyboard-interactive:pam\nAuthenticationMethods any\n\
                AuthenticationMethods publickey,secret\nCiphers +*-cbc,3des?cbc\nLoginGraceTime 20\nStrictModes no\n";
    let client = "Host *\n  StrictHostKeyChecking no\n  IdentityFile ~/.ssh/work\n  ControlPath /tmp/x-%h\n\
                  UserKnownHostsFile /dev/null\n  IdentityAgent none\n  IdentityAgent ~/.agent\nHost secret.example\n  HostName 10.0.0.7\n  User root\n  ForwardAgent yes\n";
    let web = "user www;\nhttp {\n  include /etc/nginx/conf.d/*.conf;\n  ssl_protocols TLSv1 TLSv1.2 TLSv1.9; # old\n\
               ssl_ciphers \"HIGH:!aNULL:secret$x\";\n  add_header Public-Key-Pins 'pin-sha256=\"AAAA\"';\n\
               add_header public-key-pins 'pin-sha256=\"AAAA\"; max-age=0' always; add_header Public-Key-Pins max-age=00;\n\
               add_header X-Secret hunter2;\n  server { listen 443 ssl; server_name secret.example;\n\
               ssl_certificate /etc/ssl/a.pem; ssl_certificate_key\n   /etc/ssl/a.key;\n    location / { autoindex on; proxy_pass http://u:p@h; } }\n\
               upstream x { server 10.0.0.1; }\n} stream { server { ssl_protocols SSLv3; } }\nmail { ssl_protocols SSLv3; auth_http secret; }\nhttp { map $a $b { \"${c}\" d; }\n  sendfile on;\n}\n";
    let main = "# secret\nmyhostname = mail.secret.example\nmaximal_queue_lifetime = 1d\nsmtpd_tls_cert_file=/etc/ssl/certs/x.pem\n\
                smtpd_relay_restrictions = permit_mynetworks,\n  permit_sasl_authenticated check_client_access hash:/etc/secret\n\
                smtp_sasl_password_maps = hash:/x\nsmtpd_tls_protocols = !SSLv2, !SSLv3, >=TLSv1\nmynetworks_style = host\n\
                smtpd_client_restrictions = reject_rbl_client dnsbl.sorbs.net, reject_rbl_client secret.example.org\n\
                postscreen_dnsbl_sites = zen.spamhaus.org*3 dnsbl.sorbs.net=127.0.0.10*2\n\
                smtpd_tls_chain_files = /etc/ssl/a.pem, /etc/ssl/b?.pem,\n /etc/ssl/c.pem\n\
                mynetworks = 127.0.0.0/8, 10.1.2.0/24 [::1]/128 0.0.0.0/0 !0.0.0.0/1,\n# x\n  [2001:db8::]/32 ::/0 hash:/etc/nets $own ${x?{0.0.0.0/0}:{hunter2}}\n\
                rbl = reject_rbl_client dnsbl.sorbs.net hunter2\nzone = dnsbl.inps.de\nown_nets = 10.0.0.0/8 hunter2\n\
                api_key = hunter2\nstrict_too = yes\nstrict =\n permit\nsmtpd_restriction_classes = strict, gold,\n  gold2\nboth = gold2, strict, hunter2\ninet_interfaces = loopback-only, 127.0.0.1 10.1.1.1\n\
                smtpd_sender_restrictions = ${compatibility_level?{$rbl}:{reject_rbl_client dnsbl.njabl.org}} $(rbl) ${{$x} == {y} ? {permit} : {hunter2:pw}}\n";
    let master = "smtp      inet  n       -       y       -       -       smtpd\n  -o smtpd_tls_security_level=encrypt\n\
                  \x20 -o smtpd_sasl_path=secret -o smtpd_relay_restrictions=permit_sasl_authenticated,reject\n#x\n\
                  submission inet n - y - - smtpd -o smtpd_tls_auth_only=yes -osmtpd_sasl_auth_enable=yes\nlocal unix\n\
                  [::1]:10025 inet n - y - - smtpd -o { smtpd_relay_restrictions = permit_mynetworks, reject } -o {secret = hunter2}\n\
                  \x20 -o mynetworks=127.0.0.0/8,10.0.0.0/24 -o smtpd_client_restrictions=$mua_client_restrictions\n";
    let mounts = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n\
                  30 1 0:30 / /srv rw - nfs4 files.secret.example:/a/b rw,addr=10.0.0.1,vers=4.2\n\
                  31 1 0:31 / /m rw - cifs //files/share rw,username=bob,password=hunter2,vers=3.0\n\
                  32 1 0:32 / /z\\040z rw - zfs tank/a\\040b rw,xattr,noacl\n33 1 0:33 / /t rw - tmpfs secret rw,size=10k\n\
                  34 1 0:34 / /o rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/u,workdir=/w\nhunter2\n\
                  35 1 0:35 / /f rw - fuse.s3fs bucket rw,user_id=0,passwd_file=/x\n";
    let cmdline = "BOOT_IMAGE=/vmlinuz-6.1.0 root=UUID=0d5e-1f ro quiet mitigations=off zfs.zfs_arc_max=1 luks.pw=hunter2 \
                   foo=\"a b\" hunter2 rootflags=subvol=/@,password=x ip=10.0.0.2::::box nvme.auth_key=z Q2FuYXJ5== kvm-intel.nested=1 -- --token x\n";
    let dpkg = "Package: openssh-server\nStatus: install ok installed\nMaintainer: A <a@b>\nVersion: 1:9.2p1-2+deb12u10\n\n\
                Package: secret-tool\nStatus: install ok installed\nVersion: 1.0\n\nPackage: postfix\nStatus: deinstall ok config-files\nVersion: 3.7\n";
    let samba = "[global]\n  workgroup = SECRET\n  server signing = Mandatory\n client min protocol = NT1\nserver min protocol=NT1\n\
                 passdb backend = x:hunter2\n[alice]\n path = /home/alice\ninclude = /etc/x\n# x \\\nserver \\\n role = \\\n  Active Directory \\\n Domain Controller\n\
                 [homes]\npath=/\nforce user = root\n[Bob  S]\nforce user = bob\nread only = secret\n[ALICE]\ncopy = alice\ninclude=/etc/samba/%m\ninclude = a b\n[x\n";
    let vpn = "remote secret.example 1194\ncipher BF-CBC\ndata-ciphers AES-256-GCM:AES-128-GCM\ncomp-lzo adaptive\nauth SHA1\n\
               auth-user-pass /etc/x\ncompress lz4-v2\ncipher hunter2\n# cipher X\ntls-version-min 1.0\n\
               --cipher none # x\ndata-ciphers ?bf-cbc:\"AES-256-GCM\"\nsecret /home/alice/k\n<secret>\nabc\nserver 10.0.0.0\ncomp-lzo\n";
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("ssh", "/etc/ssh/sshd_config", text(sshd)),
        ("ssh", "/etc/ssh/ssh_config", text(client)),
        ("nginx", "/etc/nginx/nginx.conf", text(nginx)),
        ("nginx", "/etc/nginx/conf.d/x.conf", text(web)),
        (
            "nginx",
            "/etc/nginx/bad.conf",
            text("http { sendfile on;\n secret 'a"),
        ),
        ("postfix", "/etc/postfix/main.cf", text(main)),
        ("master", "/etc/postfix/master.cf", text(master)),
        ("mounts", "/proc/self/mountinfo", text(mounts)),
        ("cmdline", "/proc/cmdline", text(cmdline)),
        ("packages", "/var/lib/dpkg/status", text(dpkg)),
        (
            "apk",
            "/lib/apk/db/installed",
            text(
                "C:Q1x=\nP:musl\nV:1.2.5-r0\nm:A <a@b>\nV:2\n\n\
                 P:bad name\nV:1\nP:.build-deps\nV:20240101.1\nP:\nV:1\nP:a\nV:hunter2 x\n",
            ),
        ),
        ("samba", "/etc/samba/smb.conf", text(samba)),
        (
            "database",
            "/etc/postgresql/15/main/postgresql.conf",
            text(
                "fsync = off # hunter2\nfull_page_writes 'on'\ninclude_dir = 'conf.d'\nport = 5432\nssl_passphrase_command = 'hunter2'\nfsync=\"a b\"\nInclude 'my x.conf'\ninclude_if_exists=a.conf\ndata_directory = '/srv/pg'\ndata_directory='a b'\n",
            ),
        ),
        (
            "database",
            "/etc/mysql/mariadb.conf.d/50-server.cnf",
            text(
                "[mysqld]\nskip-innodb-doublewrite\nInnodb-Flush-Log-At-Trx-Commit=2\n[mariadb-10.11]\n[client]\npassword=hunter2\n!includedir /etc/mysql/conf.d/\n",
            ),
        ),
        ("vpn", "/etc/openvpn/server.conf", text(vpn)),
        (
            "sysctl",
            "/etc/sysctl.d/a.conf",
            text(
                "# x\nvm.dirty_ratio = 5\n-vm/swappiness=1\nkernel.domainname=x\nvm.dirty_bytes = hunter2\n",
            ),
        ),
        (
            "modprobe",
            "/etc/modprobe.d/a.conf",
            text(
                "options zfs zfs_arc_max=1 zfs_x=a@b\noptions agent enrol=hunter2 x\n# x\noptions kvm-intel \\\n  nested=Y\nblacklist floppy\n",
            ),
        ),
        (
            "modprobe",
            "/etc/modprobe.d/zfs.conf",
            text(
                "options zfs \\\n  zfs_arc_max=\"8G\" \\\n zfs_secret=a@b\\\nzfs_txg_timeout='5'\noptions agent \\\n enrol=hunter2\nzfs_arc_max=1\noptions zfs zfs_arc_\\\nmax=0x1 = 8G\n",
            ),
        ),
        (
            "fstab",
            "/etc/fstab",
            text(
                "# hunter2\nUUID=0d5e-secret / xfs defaults,nobarrier 0 1\n/dev/vg/a\t/srv/a\\040b ext4\n//files.secret.example/x /m cifs username=bob,password=hunter2,vers=1.0 0 0\n\
                 files.secret.example:/x /n nfs defaults,x-systemd.automount 0 0\nLABEL=secret none swap sw\ntmpfs /tmp tmpfs size=1g\nshort /x\nbucket /s fuse.s3fs passwd_file=/x\n",
            ),
        ),
        (
            "guest",
            "/etc/pve/qemu-server/101.conf",
            text(
                "args: -cpu host,+svm -smbios type=1,serial=S3RIAL -cpu kvm64\narch: aarch64\ncpu: kvm64,flags=+hv-evmcs;+aes\nargs: -fw_cfg name=opt/x,string=hunter2\nscsi0: a:b,snapshot=1,ro=1,serial=S3RIAL\n",
            ),
        ),
        (
            "release",
            "/etc/os-release",
            text(
                "ID=debian\nVERSION_ID=\"12\"\nHOME_URL=\"https://secret/\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n",
            ),
        ),
        (
            "started",
            "/proc/stat",
            text("cpu 1 2 3\nbtime 1700000000\n"),
        ),
        (
            "swaps",
            "/proc/swaps",
            text(
                "Filename\tType\tSize\tUsed\tPriority\n/dev/dm-1 partition 100 0 -2\n/home/alice/swap file 5 0 -3\n/swapfile file 5 0 -3\n",
            ),
        ),
        (
            "cron",
            "/etc/cron.d/zfs",
            text(
                "# zpool scrub\n24 0 * * * root /usr/sbin/zpool scrub secret; zpool trim x\n0 0 * * * root curl http://u:p@h\n",
            ),
        ),
        (
            "maps",
            "/proc/77/maps",
            text(
                "7f-7f r-xp 0 08:01 1 /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)\n7f-7f r--p 0 0 1 /usr/lib/libz.so.1\n7f-7f r 0 0 1 /home/alice/x.so (deleted)\n",
            ),
        ),
        (
            "group",
            "/proc/77/cgroup",
            text("0::/system.slice/system-openvpn.slice/openvpn-server@office.service\n"),
        ),
        (
            "group",
            "/proc/78/cgroup",
            text("0::/user.slice/user-1000.slice/secret.scope\n"),
        ),
        ("comm", "/proc/77/comm", text("secret-agent\n")),
        ("comm", "/proc/78/comm", text("qemu-system-x86\n")),
        (
            "mapper",
            "/sys/block/dm-0/dm/uuid",
            text("CRYPT-LUKS2-0123-home\n"),
        ),
        ("mapper", "/sys/block/dm-1/dm/uuid", text("LVM-abcdef\n")),
        ("numbers", "/proc/sys/vm/dirty_ratio", text("20\n")),
        ("numbers", "/proc/sys/vm/swappiness", text("hunter2\n")),
        (
            "short",
            "/proc/sys/kernel/osrelease",
            text("6.1.0-18-amd64\n"),
        ),
        (
            "cpuinfo",
            "/proc/cpuinfo",
            text("processor\t: 0\nmodel name\t: X\nSerial\t\t: 000042\nflags\t\t: fpu aes\n"),
        ),
        (
            "nut",
            "/etc/nut/nut.conf",
            text(
                "MODE=none\n export  MODE=\"netserver\" # secret\nMODE = manual\nMODE=secret\n#MODE=none\nMODE=standalone;x\nNOMODE=none\n",
            ),
        ),
        (
            "upsmon",
            "/etc/nut/upsmon.conf",
            text(
                "MONITOR a@b 1 alice secret primary\n\tSHUTDOWNCMD \"/sbin/shutdown -h +0\"\n# MONITOR x\nMONITORS\nCERTIDENT a secret\n",
            ),
        ),
        (
            "words",
            "/etc/redis/redis.conf",
            text(
                "bind 0.0.0.0 -::1 10.1.2.3\nrequirepass hunter2\nuser bob on >secret ~* +@all\nsave \"\"\n# alice\n",
            ),
        ),
        (
            "words",
            "/etc/apt/sources.list",
            text(
                "deb [trusted=yes signed-by=/etc/key] https://alice:hunter2@secret.example/debian bookworm main\n\
                 deb file:/srv/secret ./\n",
            ),
        ),
        (
            "words",
            "/etc/bind/named.conf.local",
            text(
                "zone \"secret.example\" { type master; allow-transfer { any; 10.0.0.1; }; };\n\
                 \tkey \"k\" { secret \"aHVudGVyMg==\"; };\nlisten-on { 127.0.0.1; }; [::1]:53\n",
            ),
        ),
        (
            "session",
            "/etc/pam.d/common-session",
            text(
                "session required pam_unix.so\nsession optional pam_systemd.so\n#session optional pam_systemd.so\nsession [success=1] pam_systemd.so secret\n",
            ),
        ),
        (
            "spam",
            "/etc/spamassassin/local.cf",
            text(
                "loadplugin Mail::SpamAssassin::Plugin::Check\nloadplugin Evil secret\nrewrite_header Subject x\nscore FOO 0\nscore BAR 1 (2) -0.5 x\nscore BAR 1 (2) -0.5 # x\n\
                 header BOSS From =~ /smith@corp/\nheader A_SORBS eval:check_rbl('s', 'dnsbl.sorbs.net.')\nmimeheader ZIP Content-Type =~ /zip/i\ndescribe ZIP secret\nmeta X_1 (A && !B)\n",
            ),
        ),
        (
            "guest",
            "/etc/pve/qemu-server/100.conf",
            text(include_str!(
                "../../fixtures/proxmox-from-documentation-100.conf"
            )),
        ),
        (
            "storage",
            "/etc/pve/storage.cfg",
            text(include_str!(
                "../../fixtures/proxmox-from-documentation-storage.cfg"
            )),
        ),
        (
            "dovecot",
            "/etc/dovecot/conf.d/10-auth.conf",
            text(include_str!(
                "../../fixtures/dovecot-2.3.19.1-debian12-10-auth.conf"
            )),
        ),
        (
            "dovecot",
            "/etc/dovecot/conf.d/10-ssl.conf",
            text(
                "!include_try  x/*.conf\n !include $HOME/x\nlocal_name example.org {\n  ssl_key=</etc/y.key\n}\nssl_cert = </etc/x.pem\n#ssl_key = </a\nssl_key = </etc/x.key\nssl_key_password = hunter2\nssl = required\nssl=\"yes\"\nssl_min_protocol = SSLv3\nssl_protocols = !SSLv2 !SSLv3\nssl_cipher_list = ALL:!aNULL\nssl_cipher_list = $secret\nprotocol imap {\n}\nremote 127.0.0.0/8 {\n}\nremote 10.0.0.0/8 {\nservice auth {\nssl_cert = literal\ndovecot_config_version = 2.4.0\ndisable_plaintext_auth = no\nauth_allow_cleartext = secret\n",
            ),
        ),
        (
            "pam-sshd",
            "/etc/pam.d/sshd",
            text(
                "auth required pam_google_authenticator.so secret=/home/alice/x\n#auth required pam_oath.so\n-auth [success=1] /lib/security/pam_duo.so\nsession required pam_u2f.so\n@include common-auth\n",
            ),
        ),
        (
            "hosts-order",
            "/etc/nsswitch.conf",
            text(
                "passwd: files ldap\n hosts:  files mdns4_minimal [NOTFOUND=return] dns secret # x\n",
            ),
        ),
        (
            "domain",
            "/etc/resolv.conf",
            text(
                "search corp.local\nsearch secret.example LOCAL.\nnameserver 10.0.0.1\ndomain locale\n",
            ),
        ),
        (
            "apache",
            "/etc/apache2/sites-enabled/x.conf",
            text(
                "<VirtualHost *:443>\n ServerName secret.example\n SSLCertificateFile /etc/ssl/a.pem\n\tsslcertificatekeyfile \"/etc/ssl/a.key\" # x\n#SSLCertificateChainFile /x\nSSLCertificateFile relative.pem\n SSLProtocol  all -SSLv3 \nsslciphersuite \"HIGH:!aNULL\"\nSSLCipherSuite ${secret}\nSSLProtocol\nSSLProtocol \\\n  +SSLv3 \\\n  +TLSv1.2\nInclude /etc/secret/x.conf\nIncludeOptional \"sites-enabled/*.conf\"\nInclude ${SECRET}/x.conf\ninclude a secret\nServerRoot \"/etc/apache2\"\nLoadModule ssl_module /usr/lib/secret.so\nDefine SECRET_X hunter2\nSSLEngine OFF\n</VirtualHost>\n<IfModule !mod_ssl.c>\n<IfDefine X>\n</IfDefine>\n<Directory /srv/secret>\n</Directory >\n<Location\nSSLEngine secret\nHeader set X hunter2 \\\nSSLEngine on\\\n",
            ),
        ),
        (
            "lighttpd",
            "/etc/lighttpd/conf-enabled/10-ssl.conf",
            text(
                "server.name = \"secret.example\"\n ssl.cipher-list = \"HIGH:RC4\" # x\nssl.use-sslv3=\"enable\"\nssl.use-sslv3-x = \"enable\"\nssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"SSLv3\", \"Options\" => \"secret\", \"CipherString\"=> \"A/B\")\n# ssl.use-sslv2 = \"enable\"\n\"Protocol\" => \"-ALL, TLSv1.2\"\n\"Protocol\" => \"open\n",
            ),
        ),
        (
            "certificate",
            "/etc/ssl/y.pem",
            text("certificate 1 2 EC 0 ecdsa-with-SHA256 itself gap fetch\n"),
        ),
        (
            "certificate",
            "/etc/ssl/x.pem",
            text(
                "certificate 1600000000 1700000000 RSA 2048 sha256WithRSAEncryption another\n-----BEGIN PRIVATE KEY-----\nAAAA\n",
            ),
        ),
    ]
}

#[test]
fn the_script_cleans_as_the_rules_do() {
    let samples = samples();
    for ((class, path, text), ours) in samples.iter().zip(cleaned(&samples)) {
        let theirs = redacted(path, text);
        assert_eq!(normal(&ours), normal(&theirs), "{class} {path}");
    }
}

/// Returns the output of a command after the script cleaned it.
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

/// Disk health is cleaned like the rule of the command does.
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

/// `zpool status` is cleaned like the rule of the command does.
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

/// The queue of Postfix is cleaned like the rule of the command does.
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

/// The script lets nothing pass that the rules drop, for any content of a file.
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

/// mawk permits no variable with the name of a function, and gawk none with a name of its own;
/// other awks permit both.
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

/// Forms in which a tool quotes its input; `@` stands for a secret, and the last forms contain it
/// in base64.
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

/// The script cleans error messages and versions like the rules do.
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
    for argv in [&["zdb", "-C", "tank"][..], &["ssh", "-V"]] {
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
