//! Places of the planted secrets: each is unique, so an output with one reveals its place.

use std::path::{Path, PathBuf};

/// The secrets of one test.
#[derive(Default)]
pub struct Plant {
    planted: Vec<(String, String)>,
    mounted: String,
}

impl Plant {
    /// Returns a new secret: a plain word that does not look like a secret.
    pub fn secret(&mut self, place: &str) -> String {
        let secret = format!("Cn{:03}aryQ7", self.planted.len());
        self.planted.push((place.to_owned(), secret.clone()));
        secret
    }

    pub fn secrets(&self) -> &[(String, String)] {
        &self.planted
    }

    /// Returns what facts of the planted machine must still contain.
    pub fn harmless(&self) -> [&'static str; 5] {
        [
            "mitigations=off",
            "zfs.zfs_arc_max=8589934592",
            "noatime",
            "aes-xts-plain64",
            "UUID=0d5e1f",
        ]
    }

    /// Replaces each `@` by a new secret.
    fn fill(&mut self, place: &str, text: &str) -> String {
        let mut parts = text.split('@');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for (number, part) in parts.enumerate() {
            out += &self.secret(&format!("{place}, number {number}"));
            out += part;
        }
        out.replace('§', "@")
    }

    pub fn cmdline(&mut self) -> String {
        let text = "BOOT_IMAGE=/vmlinuz root=UUID=0d5e1f ro quiet mitigations=off zfs.zfs_arc_max=8589934592 \
             netconsole=6666§10.0.0.1/eth0,514§10.9.9.9/@ vendor.api_key=@ luks.pw=@ agent.enrol=@ \
             ds=nocloud;s=http://u:@§h/;h=@ proxy=http://u:@§h:3128/ systemd.setenv=A=@ \
             rd.iscsi.password=@ root=live:http://u:@§h/x?t=@ foo=\"two @ words\" @ @=1 \
             ip=10.0.0.2::::box -- --token @\n";
        self.mounted = self.secret("the source of a mount");
        self.fill("the kernel's command line", text)
    }

    pub fn mounted(&self) -> &str {
        &self.mounted
    }

    pub fn environment(&mut self) -> Vec<(String, String)> {
        let names = [
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "HARMLESS_NAME",
            "http_proxy",
        ];
        let mut value = |name: &str| self.secret(&format!("the environment's {name}"));
        names.map(|name| (name.to_owned(), value(name))).into()
    }

    /// Creates a captured machine, packed by hand without cleaning.
    pub fn machine(&mut self, dir: &Path) {
        let line = self.cmdline();
        self.put(dir, "proc/cmdline", &line);
        for (path, text) in MACHINE {
            let text = self.fill(path, text);
            self.put(dir, path, &text.replace('|', "\0"));
        }
        let mut commands = Vec::new();
        for (argv, stdout, stderr) in COMMANDS {
            let argv: Vec<&str> = argv.split(' ').collect();
            let (stdout, stderr) = (self.fill(argv[0], stdout), self.fill(argv[0], stderr));
            let status = i32::from(!stderr.is_empty() && stdout.is_empty());
            commands.push(serde_json::json!({
                "argv": argv, "status": status, "stdout": stdout, "stderr": stderr,
            }));
        }
        let lvm = [
            assay_facts::lvm::LVS.to_vec(),
            assay_facts::lvm::VGS.to_vec(),
        ];
        for argv in lvm {
            let stdout = self.fill(
                "a report of LVM",
                r#"{"report":[{"lv":[{"vg_name":"vg","lv_name":"lv","lv_tags":"@","segtype":"linear"}],"seg":[{"vg_name":"vg","lv_name":"lv","lv_tags":"@","segtype":"linear"}],"vg":[{"vg_name":"vg","vg_tags":"@"}]}],"log":"@"}"#,
            );
            commands.push(serde_json::json!({ "argv": argv, "status": 0, "stdout": stdout }));
        }
        let index = serde_json::json!({ "schema": 1, "commands": commands });
        self.put(dir, "assay-capture.json", &index.to_string());
    }

    fn put(&self, dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Creates files of a user: the verb, the file, whether it is accepted.
    pub fn files(&mut self, dir: &Path) -> Vec<(&'static str, PathBuf, bool)> {
        let mut files = Vec::new();
        for (verb, name, text, taken) in FILES {
            let text = self.fill(name, text);
            self.put(dir, name, &text);
            // The folder of advice pages is passed.
            let named = name.split_once('/').map_or(name, |(top, _)| top);
            files.push((verb, dir.join(named), taken));
        }
        let result = std::fs::read(dir.join("result.json")).unwrap();
        let documents = assay_fio::json::parse(result).unwrap();
        let about = assay_fio::import::Context {
            file: "other.json".to_owned(),
            uid: "5eed".to_owned(),
            version: "0".to_owned(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        // As written by an older assay without these rules.
        let (mut run, mut samples) = assay_fio::import::run(&documents[0], &about);
        let line = self.cmdline();
        let kind = assay_model::FactKind::Runtime;
        run.facts
            .known("kernel.cmdline", line, kind, "/proc/cmdline");
        let options = self.fill("an exported mount", "rw,noatime,password=@,@");
        run.facts.known(
            "mount.1.options",
            options.clone(),
            kind,
            "/proc/self/mountinfo",
        );
        let value = self.secret("an exported module parameter");
        run.facts.known(
            "module.agent.enrol.configured",
            value,
            kind,
            "/etc/modprobe.d/a.conf:1",
        );
        run.remarks
            .push(self.fill("an exported remark", "cannot reach http://u:@§h/?k=@"));
        for target in &mut run.targets {
            target.mount_options = Some(options.clone());
        }
        for job in &mut samples[0].workers {
            job.fio
                .options
                .insert("http_pass".to_owned(), self.secret("an exported option"));
        }
        let export = dir.join("export.json");
        std::fs::write(&export, assay_store::to_json(&run, &samples, None).unwrap()).unwrap();
        files.push(("import", export, true));
        files
    }
}

const MACHINE: [(&str, &str); 41] = [
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ("proc/meminfo", "MemTotal: 1024 kB\nMemAvailable: 512 kB\n"),
    (
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: CPU\nflags\t: aes\nSerial\t: @\n",
    ),
    ("proc/sys/vm/dirty_ratio", "20\n"),
    ("proc/sys/vm/dirty_bytes", "@ @\n"),
    (
        "proc/self/mountinfo",
        "20 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
         21 20 0:30 / /srv rw - cifs //u:@§h/x rw,username=@,password=@,@,credentials=/root/@\n\
         22 20 0:31 / /b rw - fuse.s3fs @ rw,passwd_file=@\n\
         23 20 0:32 / /c rw - ceph 10.0.0.1:/x rw,name=@,secret=@\n\
         24 20 0:33 / /d rw - davfs https://u:@§h/dav?t=@ rw,@\n\
         25 20 0:34 / /tank rw - zfs tank/data rw,xattr\n\
         26 20 0:35 / /e rw - nfs4 @:/x rw,addr=@\n",
    ),
    ("proc/77/comm", "qemu-system-x86\n"),
    (
        "proc/77/cmdline",
        "/usr/bin/kvm|-name|web,x=@|-object|secret,id=s,data=@|-drive|file=/srv/web.raw,if=virtio,cache=none,password=@,serial=@|\
         -drive|file=https://u:@§h/i?t=@,if=virtio|-drive|file=rbd:p/i:id=a:key=@,if=virtio|\
         -blockdev|{\"driver\":\"ssh\",\"user\":\"@\",\"password-secret\":\"@\",\"node-name\":\"n\",\"aio\":\"a @ b\"}|\
         -vnc|:0,password=@|-fw_cfg|name=opt/x,string=@|-cpu|host,x=\"@\"|-append|token=@|",
    ),
    ("proc/77/environ", "A=@|"),
    ("proc/78/comm", "@\n"),
    ("proc/78/cmdline", "mysql|-p@|"),
    (
        "etc/libvirt/qemu/web.xml",
        "<domain type='kvm'><name>web</name><description>@</description><metadata>@</metadata>\
         <os><type machine='q35'>hvm</type></os><devices><graphics type='vnc' passwd='@'/>\
         <disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='rbd' name='@'><auth username='@'><secret type='ceph' uuid='@'/></auth></source><target dev='vda' bus='virtio'/><serial>@</serial></disk>\
         <disk type='file' device='disk'><driver name='qemu' type='a @' cache='a @ b'/><source file='https://u:@§h/?x=@'/><target dev='v \"@' bus='virtio'/></disk></devices></domain>",
    ),
    ("etc/libvirt/qemu/bad.xml", "<domain>&@;</@>"),
    (
        "etc/fstab",
        "# @\n//@/x /m cifs username=@,password=@,vers=1.0 0 0\nUUID=@ / xfs defaults,nobarrier,@ 0 1\nLABEL=@ /d ext4\n\
         @:/x /n nfs4 addr=@,@=x 0 0\nhttps://u:@h/dav /w davfs credentials=@ 0 0\n",
    ),
    ("etc/libvirt/secrets/a.xml", "<secret>@</secret>"),
    (
        "etc/pve/qemu-server/100.conf",
        "#@\nargs: -object secret,id=s,data=@\ncipassword: @\nciuser: @\nsshkeys: @\nname: web\ncpu: host,x=http://u:@§h\n\
         scsi0: local:vm-100-disk-0,cache=none,serial=@,password=@\nscsi1: http://u:@§h/x?t=@,cache=none\n",
    ),
    (
        "etc/pve/storage.cfg",
        "dir: local\n\tpath /srv\n\ncifs: x\n\tserver @\n\tusername @\n\tpassword @\n\tpath http://u:@§h\n@ password=@\n",
    ),
    (
        "etc/ssh/sshd_config",
        "Include /etc/ssh/sshd_config.d/*.conf\nUseDNS no\nUsePAM a@ b\nMatch User @\n  Banner @\n",
    ),
    (
        "etc/ssh/sshd_config.d/a.conf",
        "AuthorizedKeysCommand /x -p @\nGSSAPIAuthentication \"yes @\"\nSetEnv TOKEN=@\n",
    ),
    ("etc/ssh/ssh_host_ed25519_key", "@\n"),
    (
        "etc/ssh/sshd_config.d/b.conf",
        "Ciphers @,aes256-ctr\nTrustedUserCAKeys /home/@/ca.pub\nAuthorizedPrincipalsCommand /x @\nPermitRootLogin @\nMatch Address @\n  UseDNS yes\n  CASignatureAlgorithms +@\n",
    ),
    (
        "etc/ssh/ssh_config",
        "Host @ *.@\n  ProxyCommand nc -p @\n  ControlPath /tmp/@-%r\n  IdentityFile ~/.ssh/@\n  StrictHostKeyChecking @\n",
    ),
    (
        "etc/nginx/conf.d/a.conf",
        "server @ { server_name @; ssl_ciphers @:HIGH; ssl_protocols @ TLSv1.2; add_header X-@ @; }\n\
         location /@ { add_header Public-Key-Pins 'pin-sha256=\"@\"'; autoindex @; }\n",
    ),
    ("etc/nginx/nginx2.conf", "@;\n"),
    (
        "etc/postfix/main.cf",
        "relayhost = [@]:587\nmynetworks = @\nsmtpd_tls_security_level = @\nmaximal_queue_lifetime = @\n\
         smtpd_relay_restrictions = check_client_access hash:/etc/@,\n  permit_mynetworks, @\n# @\n",
    ),
    (
        "etc/postfix/master.cf",
        "@ unix - - y - - smtp\n  -o smtp_sasl_password_maps=static:@ -o soft_bounce=@\n  -o\n  queue_run_delay=@\n\
         smtp inet n - y - - smtpd @ -o maximal_queue_lifetime=1d -v @\n",
    ),
    (
        "etc/samba/smb.conf",
        "[global]\n workgroup = @\n server signing = @\n passdb backend = ldapsam:ldap://u:@§h\n include = /etc/@\n[@]\n path = /srv/@\n",
    ),
    (
        "etc/openvpn/server/a.conf",
        "remote @ 1194\ncipher @\nauth SHA1 @\ndata-ciphers AES-256-GCM:@\nhttp-proxy-user-pass @\n<secret>\n@\n</secret>\n",
    ),
    (
        "etc/spamassassin/local.cf",
        "loadplugin @ /@\nloadplugin Mail::SpamAssassin::Plugin::MIMEHeader @\nbayes_sql_password @\n",
    ),
    (
        "etc/pam.d/common-session",
        "session optional pam_systemd.so @\nsession optional pam_mount.so secret=@\n#session optional pam_systemd.so\n",
    ),
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/home/@/swap file 1 0 -2\n/dev/@ partition 1 0 -2\n/dev/sda2 @ 1 0 @\n@\n",
    ),
    ("etc/pam.d/sshd", "@\n"),
    (
        "etc/nginx/nginx.conf",
        "worker_processes \"a@\"; env A=@;\nhttp { sendfile on; proxy_set_header Authorization \"@\"; auth_basic @; }\n",
    ),
    (
        "etc/dovecot/conf.d/10-auth.conf",
        "auth_realms = @\n!include auth-system.conf.ext\n!include http://u:@§h/?@\npassdb {\n args = password=@\n}\n",
    ),
    (
        "etc/sysctl.d/a.conf",
        "# @\nkernel.domainname = @\nvm.dirty_ratio = 5\nvm.dirty_bytes = @\n",
    ),
    ("etc/sysctl.conf", "net.x = @\n"),
    (
        "etc/modprobe.d/a.conf",
        "# @\noptions agent enrol=@ @\noptions nvme dhchap_secret=@\noptions zfs zfs_arc_max=1\ninstall x /bin/x -p @\n",
    ),
    (
        "etc/os-release",
        "PRETTY_NAME=\"Debian\"\nSUPPORT_TOKEN=@\n",
    ),
    ("sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-@-@\n"),
    ("sys/block/dm-0/dm/name", "vault\n"),
    ("sys/block/dm-1/dm/uuid", "LVM-@\n"),
];

const COMMANDS: [(&str, &str, &str); 12] = [
    (
        "dmsetup table",
        "vault: 0 8 crypt aes-xts-plain64 @ 0 9:0 32768 1 allow_discards\nx: 0 8 @ a b @\ny: 0 8 linear @ @\nz: 0 8 crypt aes-xts-plain64 :64:logon:@ 0 9:0 1\n",
        "",
    ),
    (
        "zfs get -Hp -o property,value,source all tank/data",
        "recordsize\t131072\tdefault\nkeylocation\thttps://u:@§h/k\tlocal\nbackup:note\t@\tlocal\nsharenfs\trw=§@\tlocal\nsharesmb\t@\tlocal\nnewprop\t@\tlocal\ncompression\tlz4 @\tlocal\n",
        "",
    ),
    (
        "zpool get -Hp -o property,value,source all tank",
        "ashift\t12\tlocal\ncomment\t@\tlocal\nguid\t@\t-\n",
        "",
    ),
    (
        "zpool status -LP tank",
        "  pool: tank\n state: ONLINE\nstatus: @\naction: run with password=@\nconfig:\n\n\tNAME  STATE\n\ttank  ONLINE\n\t  /dev/sda1  ONLINE\n\nerrors: @\n",
        "",
    ),
    (
        "zdb -C tank",
        "",
        "zdb: cannot open https://u:@§h/x?t=@: token=@\n",
    ),
    (
        "zpool get -Hp -o name,property,value,source all",
        "tank\tcomment\t@\tlocal\ntank\tcapacity\t12\t-\ntank\tguid\t@\t-\ntank\tfeature§@\t@\t-\n",
        "",
    ),
    (
        "zfs get -Hp -t filesystem,volume -o name,property,value,source type,volblocksize,recordsize,compression,compressratio,sync,logbias,atime,relatime,primarycache,secondarycache,normalization,dedup,checksum,copies,refreservation,volsize,origin,encryption,xattr,available,used,usedbysnapshots",
        "tank/data\tsync\tstandard @\tlocal\ntank/data\tcompression\t@ x\tlocal\ntank/data\torigin\thttp://u:@§h\t-\n",
        "",
    ),
    ("systemd-detect-virt --vm", "none @\n", ""),
    ("systemd-detect-virt --container", "none\n", ""),
    ("fio --version", "fio-3.33\npassword=@\n", ""),
    (
        "nginx -v",
        "",
        "nginx version: nginx/1.22 http://u:@§h/\n@\n",
    ),
    (
        "cryptsetup luksDump /dev/sda1",
        "Version: 2\nLabel: @\nUUID: @\n\tSalt: @\n\tPBKDF: argon2id\n",
        "",
    ),
];

const FILES: [(&str, &str, &str, bool); 12] = [
    (
        "import",
        "result.json",
        r#"fio: password=@ in text before
{"fio version":"fio-3.33","timestamp":1700000000,"global options":{"http_host":"@","http_pass":"@","http_s3_key":"@","hostname":"u:@§h"},
"jobs":[{"jobname":"a","groupid":0,"error":0,"job options":{"rw":"randread","bs":"4k","iodepth":"1","direct":"1","size":"1g","ioengine":"http",
"filename":"http://u:@§h/x?sig=@","http_user":"@","http_s3_keyid":"@","http_s3_security_token":"@","http_swift_auth_token":"@","exec_prerun":"curl -u u:@ h","description":"@","an_option_of_tomorrow":"@"},
"read":{"io_bytes":4096000,"bw_bytes":4096000,"iops":1000.0,"runtime":1000,"total_ios":1000,"clat_ns":{"min":1,"max":9,"mean":5.0,"stddev":1.0,"N":1000}}}]}
password=@ behind it
"#,
        true,
    ),
    (
        "import",
        "wrong.json",
        "{\"fio version\":\"fio-3.33\",\"jobs\":\"password @\"}",
        false,
    ),
    (
        "import",
        "other.json",
        "{\"assay\":\"run\",\"schema\":1,\"run\":\"@\",\"samples\":\"@\"}",
        false,
    ),
    (
        "import",
        "kind.json",
        "{\"assay\":\"secret=@\",\"schema\":1}",
        false,
    ),
    (
        "lint",
        "job.fio",
        "[global]\nioengine=http\nhttp_pass=@\nhttp_s3_key=@\nfilename=http://u:@§h/x?t=@\n[a]\nrw=randread\nexec_prerun=curl -u @\nsize=1g\n",
        true,
    ),
    (
        "lint",
        "call.sh",
        "fio --name=a --rw=randread --ioengine=http --http_pass=@ --http_s3_key=@ --filename=http://u:@§h/ --size=1g\n",
        true,
    ),
    ("lint", "wrong.fio", "http_pass=@\n[a]\nrw=read\n", false),
    ("lint", "wrong.sh", "fio --http_pass=@\n", false),
    (
        "run --print-plan --plan-file",
        "plan.toml",
        "title = 1\npassword = \"@\"\n[[workload]]\nuri = \"http://u:@§h/?t=@\"\n",
        false,
    ),
    (
        "study --dry-run",
        "study.toml",
        "name = 1\napi_key = \"@\"\ntoken = '@\n",
        false,
    ),
    (
        "advice x --advice-dir",
        "own/storage/x.md",
        "+++\nid = 1\npassword = \"@\"\n+++\n",
        false,
    ),
    ("facts --root", "capture.json", "{\"token\": \"@\"}", false),
];
