//! Files that contain secrets, as input for the redaction script. A file is (directory, name, content).

/// Returns a sample of each kind of file, with text that the script must drop.
pub(super) fn samples() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let nginx = include_str!("../../../fixtures/nginx-1.22.1-debian12.conf");
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
                "# x\nvm.dirty_ratio = 5\n-vm/swappiness=1\nkernel.domainname=x\nvm.dirty_bytes = hunter2\n\
                 fs.suid_dumpable = 0x1\nnet.ipv4.conf.*.accept_source_route = 1\nnet.ipv4.conf.*.secret = 1\n",
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
                "../../../fixtures/proxmox-from-documentation-100.conf"
            )),
        ),
        (
            "storage",
            "/etc/pve/storage.cfg",
            text(include_str!(
                "../../../fixtures/proxmox-from-documentation-storage.cfg"
            )),
        ),
        (
            "dovecot",
            "/etc/dovecot/conf.d/10-auth.conf",
            text(include_str!(
                "../../../fixtures/dovecot-2.3.19.1-debian12-10-auth.conf"
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
