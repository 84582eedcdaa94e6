//! Planted faults for each remedy that assay can apply.

/// A file, and how a line is planted in it.
pub type Planted = (&'static str, fn(String) -> String);

/// A rule, and the files that are changed for it.
pub type Case = (&'static str, &'static [Planted]);

/// Every page whose remedy is a change of a file.
pub const CASES: [Case; 23] = [
    (
        "ssh-usedns",
        &[
            ("ssh/sshd_config", |text| {
                format!("UseDNS yes # slow\n{text}UseDNS yes\n")
            }),
            ("ssh/sshd_config.d/own.conf", |_| "usedns yes\n".to_owned()),
        ],
    ),
    (
        "sshd-hostbased",
        &[("ssh/sshd_config.d/own.conf", |_| {
            "Match User bob\n  HostbasedAuthentication yes\nMatch User bob\n  HostbasedAuthentication yes\n"
                .to_owned()
        })],
    ),
    (
        "sshd-ca-sha1",
        &[("ssh/sshd_config", |text| {
            format!("CASignatureAlgorithms ssh-ed25519,ssh-rsa\n{text}")
        })],
    ),
    (
        "sshd-certificates-not-logged",
        &[("ssh/sshd_config.d/git.conf", |_| {
            "Match User git\n  TrustedUserCAKeys /etc/ssh/a.pub\n  RevokedKeys /dev/null\n  LogLevel QUIET\n"
                .to_owned()
        })],
    ),
    (
        "sshd-dead-keywords",
        &[("ssh/sshd_config", |text| {
            format!("UseLogin no\nProtocol 2\n{text}KeyRegenerationInterval 1h\n")
        })],
    ),
    (
        "sshd-pam-off",
        &[("ssh/sshd_config", |text| {
            text.replace("UsePAM yes", "UsePAM no")
        })],
    ),
    (
        "sshd-root-password",
        &[("ssh/sshd_config.d/own.conf", |_| {
            "PermitRootLogin yes\nPasswordAuthentication yes\n".to_owned()
        })],
    ),
    (
        "sshd-empty-passwords",
        &[("ssh/sshd_config", |text| {
            format!("PermitEmptyPasswords yes # guest\n{text}")
        })],
    ),
    (
        "sshd-strict-modes-off",
        &[("ssh/sshd_config.d/own.conf", |_| {
            "StrictModes no\n".to_owned()
        })],
    ),
    (
        "sshd-weak-algorithms",
        &[("ssh/sshd_config", |text| {
            format!(
                "Ciphers +aes128-cbc,3des-cbc\nMACs hmac-md5,hmac-sha2-256\nHostKeyAlgorithms +ssh-rsa\n{text}"
            )
        })],
    ),
    (
        "ssh-identities-only",
        &[("ssh/ssh_config", |text| {
            format!(
                "{text}\nHost git.example.org\n    IdentityFile ~/.ssh/git\n\nHost other\n    Port 22\n"
            )
        })],
    ),
    (
        "ssh-control-path-tmp",
        &[("ssh/ssh_config", |text| {
            format!("{text}    ControlPath /tmp/ssh-%r@%h:%p\n")
        })],
    ),
    (
        "nginx-sslv3",
        &[
            ("nginx/nginx.conf", |text| {
                text.replace("ssl_protocols TLSv1 ", "ssl_protocols SSLv3 TLSv1 ")
            }),
            ("nginx/sites-available/default", |text| {
                text.replacen("\troot ", "\tssl_protocols SSLv3 TLSv1.2; root ", 1)
            }),
        ],
    ),
    (
        "nginx-rc4",
        &[("nginx/conf.d/tls.conf", |_| {
            "ssl_ciphers \"HIGH:RC4-SHA:!aNULL\";\n".to_owned()
        })],
    ),
    (
        "postfix-queue-lifetime",
        &[("postfix/main.cf", |text| {
            format!("{text}maximal_queue_lifetime =\n# why\n    1h\n")
        })],
    ),
    (
        "postfix-restated-default",
        &[("postfix/main.cf", |text| {
            format!("{text}minimal_backoff_time = 5m\nqueue_run_delay = 4m\n")
        })],
    ),
    (
        "dovecot-pam-order",
        &[("dovecot/conf.d/10-auth.conf", |text| {
            text.replace("#!include auth-sql.conf.ext", "!include auth-sql.conf.ext")
        })],
    ),
    (
        "smb-signing-off",
        &[("samba/smb.conf", |text| {
            text.replacen("[global]\n", "[global]\n   Server  Signing = disabled\n", 1)
        })],
    ),
    (
        "smb-schannel-off",
        &[("samba/smb.conf", |text| {
            let lines = "[global]\n   server schannel = no\n   server schannel require seal = no\n";
            let role = "server role = classic primary domain controller";
            text.replacen("[global]\n", lines, 1)
                .replace("server role = standalone server", role)
        })],
    ),
    (
        "smb-1-accepted",
        &[("samba/smb.conf", |text| {
            text.replacen("[global]\n", "[global]\n   server  MIN protocol = NT1\n", 1)
        })],
    ),
    (
        "smb-weak-logins",
        &[("samba/smb.conf", |text| {
            let lines = "[global]\n   lanman auth = 1\n   encrypt passwords = off\n";
            text.replacen("[global]\n", lines, 1)
        })],
    ),
    (
        "smb-null-passwords",
        &[("samba/smb.conf", |text| {
            text.replacen("[global]\n", "[global]\n   null passwords = True\n", 1)
        })],
    ),
    (
        "smb-guest-is-root",
        &[("samba/smb.conf", |text| {
            text.replacen("[global]\n", "[global]\n   guest account = root\n", 1)
        })],
    ),
];
