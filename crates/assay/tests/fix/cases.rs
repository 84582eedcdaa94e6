//! Planted faults for each remedy that assay can apply.

/// A file, and how a line is planted in it.
pub type Planted = (&'static str, fn(String) -> String);

/// A rule, and the files that are changed for it.
pub type Case = (&'static str, &'static [Planted]);

/// Every page whose remedy is a change of a file.
pub const CASES: [Case; 43] = [
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
    (
        "sshd-gateway-ports",
        &[("ssh/sshd_config.d/own.conf", |_| {
            "GatewayPorts yes\n".to_owned()
        })],
    ),
    (
        "sshd-max-auth-tries",
        &[("ssh/sshd_config", |text| {
            format!("MaxAuthTries 100\n{text}")
        })],
    ),
    (
        "sshd-user-environment",
        &[("ssh/sshd_config.d/own.conf", |_| {
            "Match User bob\n  X11Forwarding no\nMatch all\nPermitUserEnvironment yes\n".to_owned()
        })],
    ),
    (
        "sshd-log-quiet",
        &[("ssh/sshd_config", |text| {
            format!("LogLevel QUIET # less\n{text}")
        })],
    ),
    (
        "sshd-x11-all-addresses",
        &[("ssh/sshd_config", |text| {
            format!("X11UseLocalhost no\n{text}")
        })],
    ),
    (
        "ssh-agent-to-all",
        &[("ssh/ssh_config", |text| {
            format!("{text}    ForwardAgent yes\n")
        })],
    ),
    (
        "ssh-host-keys-unchecked",
        &[("ssh/ssh_config", |text| {
            format!("{text}    StrictHostKeyChecking no\n")
        })],
    ),
    (
        "nginx-autoindex",
        &[("nginx/sites-available/default", |text| {
            text.replacen("\troot ", "\tautoindex on;\n\troot ", 1)
        })],
    ),
    (
        "nginx-tls-1-0",
        &[("nginx/conf.d/tls.conf", |_| {
            "server {\n    listen 127.0.0.1:4431;\n    ssl_protocols TLSv1 TLSv1.2;\n    \
             listen 127.0.0.1:4432 ssl;\n    ssl_reject_handshake on;\n}\n"
                .to_owned()
        })],
    ),
    (
        "nginx-error-log-off",
        &[("nginx/conf.d/own.conf", |_| "error_log off;\n".to_owned())],
    ),
    (
        "postfix-anonymous-login",
        &[("postfix/main.cf", |text| {
            format!(
                "{text}smtpd_sasl_auth_enable = yes\nsmtpd_tls_auth_only = yes\nsmtpd_sasl_security_options =\n"
            )
        })],
    ),
    (
        "postfix-unknown-recipients",
        &[("postfix/main.cf", |text| {
            format!("{text}local_recipient_maps =\n")
        })],
    ),
    (
        "postfix-xclient-open",
        &[("postfix/main.cf", |text| {
            format!("{text}smtpd_authorized_xclient_hosts = 0.0.0.0/0\n")
        })],
    ),
    (
        "postfix-trusts-class",
        &[("postfix/main.cf", |text| {
            let kept: Vec<&str> = text
                .lines()
                .filter(|line| !line.starts_with("mynetworks"))
                .collect();
            format!("{}\nmynetworks_style = class\n", kept.join("\n"))
        })],
    ),
    (
        "dovecot-trusts-everybody",
        &[("dovecot/conf.d/99-own.conf", |_| {
            "login_trusted_networks = 0.0.0.0/0\n".to_owned()
        })],
    ),
    (
        "dovecot-anonymous-login",
        &[("dovecot/conf.d/99-own.conf", |_| {
            "auth_mechanisms = plain anonymous\n".to_owned()
        })],
    ),
    (
        "smb-wrong-password-is-guest",
        &[("samba/smb.conf", |text| {
            text.replace("map to guest = bad user", "map to guest = Bad Password")
        })],
    ),
    (
        "smb-group-is-root",
        &[("samba/smb.conf", |text| {
            format!("{text}\n[data]\n   path = /srv\n   admin users = @users\n")
        })],
    ),
    (
        "smb-writers-are-root",
        &[("samba/smb.conf", |text| {
            format!("{text}\n[data]\n   path = /srv\n   read only = no\n   force user = root\n")
        })],
    ),
    (
        "smb-directory-in-the-clear",
        &[("samba/smb.conf", |text| {
            let lines = "[global]\n   passdb backend = ldapsam:ldap://ldap.example.org\n   ldap ssl = off\n";
            text.replacen("[global]\n", lines, 1)
        })],
    ),
];
