//! Remedies of pages about clients, servers and networks that a program trusts without a check; `main` executes them.

use crate::Remedy;

pub(crate) const REMEDIES: &[Remedy] = &[
    (
        "nginx-any-without-password",
        "all",
        "etc/nginx/nginx.conf",
        &[("allow 0.0.0.0/0", "allow 10.0.0.0/8")],
    ),
    (
        "nginx-real-ip-anybody",
        "all",
        "etc/nginx/nginx.conf",
        &[("0.0.0.0/0", "10.0.0.5")],
    ),
    (
        "nginx-upstream-unverified",
        "grpc",
        "etc/nginx/nginx.conf",
        &[("location / {", "grpc_ssl_verify on;\n        location / {")],
    ),
    (
        "nginx-webdav-open",
        "all",
        "etc/nginx/nginx.conf",
        &[(
            "dav_methods PUT DELETE;",
            "dav_methods PUT DELETE;\n            limit_except GET {\n                deny all;\n            }",
        )],
    ),
    (
        "nginx-cookies-cached",
        "all",
        "etc/nginx/nginx.conf",
        &[(" Set-Cookie;", ";")],
    ),
    (
        "nginx-mail-cleartext",
        "on",
        "etc/nginx/nginx.conf",
        &[("starttls on", "starttls only")],
    ),
    (
        "client-certificates-unused",
        "nginx",
        "etc/nginx/nginx.conf",
        &[("optional", "on")],
    ),
    (
        "apache-backend-unverified",
        "default",
        "etc/apache2/sites-enabled/site.conf",
        &[(
            "SSLProxyEngine on",
            "SSLProxyEngine on\n    SSLProxyVerify require",
        )],
    ),
    (
        "apache-host-completed",
        "slash",
        "etc/apache2/sites-enabled/site.conf",
        &[("10.0.0.7\"", "10.0.0.7/\"")],
    ),
    (
        "apache-proxies-anywhere",
        "any",
        "etc/apache2/sites-enabled/site.conf",
        &[("http://$1", "http://127.0.0.1:8080/$1")],
    ),
    (
        "apache-module-impossible",
        "name",
        "etc/apache2/sites-enabled/site.conf",
        &[("mod_authz_host>", "mod_authz_host.c>")],
    ),
    (
        "cipher-level-0",
        "nginx",
        "etc/nginx/nginx.conf",
        &[(":@SECLEVEL=0", "")],
    ),
    (
        "sshd-keys-in-shared-directory",
        "tmp",
        "etc/ssh/sshd_config",
        &[("/tmp/keys", "/etc/ssh/keys")],
    ),
    (
        "sshd-nobody-allowed",
        "wheel",
        "etc/ssh/sshd_config",
        &[("wheel", "sudo")],
    ),
    (
        "ssh-displays-to-all",
        "debian",
        "etc/ssh/ssh_config",
        &[(
            "    ForwardX11 yes\n",
            "    ForwardX11 yes\n    ForwardX11Trusted no\n",
        )],
    ),
    (
        "postfix-password-cleartext",
        "may",
        "etc/postfix/main.cf",
        &[("level = may", "level = encrypt")],
    ),
    (
        "postfix-domain-of-two-classes",
        "both",
        "etc/postfix/main.cf",
        &[(", $mydomain", "")],
    ),
    (
        "dovecot-master-socket-open",
        "all",
        "etc/dovecot/dovecot.conf",
        &[("0666", "0660")],
    ),
    (
        "dovecot-setting-gone",
        "certificate",
        "etc/dovecot/dovecot.conf",
        &[("ssl_cert = </", "ssl_server_cert_file = /")],
    ),
    (
        "exim-cleartext-login",
        "macro",
        "etc/exim4/conf.d/main/000_own",
        &[("AUTH_SERVER_ALLOW_NOTLS_PASSWORDS = 1\n", "")],
    ),
    (
        "opendkim-signs-for-all",
        "file",
        "etc/opendkim/hosts",
        &[("0.0.0.0/0", "10.0.0.0/8")],
    ),
    (
        "opendkim-signs-nothing",
        "verify",
        "etc/opendkim.conf",
        &[("Mode v", "Mode sv")],
    ),
    (
        "opendkim-sha1",
        "sha1",
        "etc/opendkim.conf",
        &[("SignatureAlgorithm rsa-sha1\n", "")],
    ),
    (
        "opendkim-body-length",
        "lists",
        "etc/opendkim.conf",
        &[("BodyLengthDB refile:/etc/opendkim/len\n", "")],
    ),
    (
        "opendkim-socket-open",
        "all",
        "etc/opendkim.conf",
        &[("inet:8891", "inet:8891@localhost")],
    ),
    (
        "opendkim-keys-unchecked",
        "no",
        "etc/opendkim.conf",
        &[("RequireSafeKeys no\n", "")],
    ),
    (
        "rspamd-all-are-local",
        "all",
        "etc/rspamd/local.d/options.inc",
        &[("\"0.0.0.0/0\"", "\"10.0.0.0/8\"")],
    ),
    (
        "rspamd-rejects-before-marking",
        "low",
        "etc/rspamd/local.d/actions.conf",
        &[("reject = 2", "reject = 15")],
    ),
    (
        "spamassassin-trusts-all",
        "all",
        "etc/spamassassin/local.cf",
        &[("0/0", "10/8")],
    ),
    (
        "spamassassin-welcomes-forged",
        "domain",
        "etc/spamassassin/local.cf",
        &[("welcomelist_from", "welcomelist_auth")],
    ),
    (
        "spamassassin-user-rules",
        "on",
        "etc/spamassassin/local.cf",
        &[("allow_user_rules 1\n", "")],
    ),
    (
        "spamd-open",
        "all",
        "etc/default/spamd",
        &[("--listen ", "--listen=127.0.0.1 ")],
    ),
];
