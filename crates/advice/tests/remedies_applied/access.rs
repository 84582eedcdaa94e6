//! Remedies of pages about lines that admit everybody; `main` executes them.

use crate::Remedy;

pub(crate) const REMEDIES: &[Remedy] = &[
    (
        "ldap-writable",
        "conf",
        "etc/ldap/slapd.conf",
        &[("by * write", "by * read")],
    ),
    (
        "ldap-tls-1-0",
        "conf",
        "etc/ldap/slapd.conf",
        &[("3.1", "3.3")],
    ),
    (
        "ldap-server-unverified",
        "ldap",
        "etc/ldap/ldap.conf",
        &[("never", "demand")],
    ),
    (
        "polkit-admits-everybody",
        "all",
        "etc/polkit-1/rules.d/10-own.rules",
        &[(
            "return polkit",
            "if (subject.isInGroup(\"sudo\")) return polkit",
        )],
    ),
    (
        "library-from-shared-directory",
        "tmp",
        "etc/ld.so.preload",
        &[("/tmp/.cache/libfast.so", "/usr/local/lib/libfast.so")],
    ),
    (
        "rspamd-controller-open",
        "all",
        "etc/rspamd/local.d/worker-controller.inc",
        &[(
            "secure_ip = \"0.0.0.0/0\";\n",
            "secure_ip = \"127.0.0.1\";\n",
        )],
    ),
    (
        "powerdns-recursor-open",
        "all",
        "etc/powerdns/recursor.conf",
        &[("0.0.0.0/0", "192.168.0.0/16")],
    ),
    (
        "ntpd-queries-open",
        "open",
        "etc/ntpsec/ntp.conf",
        &[(
            "restrict default nomodify",
            "restrict default kod nomodify nopeer noquery limited",
        )],
    ),
    (
        "rabbitmq-guest-remote",
        "none",
        "etc/rabbitmq/rabbitmq.conf",
        &[("loopback_users = none\n", "")],
    ),
    (
        "apache-webdav-open",
        "all",
        "etc/apache2/sites-enabled/dav.conf",
        &[(
            "Require all granted",
            "AuthType Basic\n        AuthName dav\n        AuthUserFile /etc/apache2/dav.users\n        \
             Require valid-user",
        )],
    ),
    (
        "lighttpd-status-open",
        "all",
        "etc/lighttpd/lighttpd.conf",
        &[(
            "status.status-url = \"/server-status\"",
            "$HTTP[\"remoteip\"] == \"127.0.0.1\" {\n    status.status-url = \"/server-status\"\n}",
        )],
    ),
    (
        "openvpn-server-unverified",
        "client",
        "etc/openvpn/client/home.conf",
        &[("key c.key\n", "key c.key\nremote-cert-tls server\n")],
    ),
    (
        "vnc-without-password",
        "tigervnc",
        "etc/tigervnc/vncserver-config-defaults",
        &[("\"None\"", "\"TLSVnc\"")],
    ),
    (
        "openvpn-tls-1-0",
        "server",
        "etc/openvpn/server/office.conf",
        &[("tls-version-min 1.0", "tls-version-min 1.2")],
    ),
];
