//! Remedies of pages about lines that do not do what they seem to do; `main` executes them.

use crate::Remedy;

pub(crate) const REMEDIES: &[Remedy] = &[
    (
        "sshd-block-swallows-lines",
        "appended",
        "etc/ssh/sshd_config",
        &[(
            "\nPasswordAuthentication no",
            "Match all\nPasswordAuthentication no",
        )],
    ),
    (
        "ssh-block-never-applies",
        "address",
        "etc/ssh/sshd_config",
        &[("Address !", "Address *,!")],
    ),
    (
        "sshd-passwords-through-pam",
        "default",
        "etc/ssh/sshd_config",
        &[("UsePAM yes", "KbdInteractiveAuthentication no\nUsePAM yes")],
    ),
    (
        "sshd-method-disabled",
        "interactive",
        "etc/ssh/sshd_config",
        &[(
            "KbdInteractiveAuthentication no",
            "KbdInteractiveAuthentication yes",
        )],
    ),
    (
        "sshd-keys-shared",
        "keys",
        "etc/ssh/sshd_config",
        &[("authorized_keys\n", "authorized_keys.d/%u\n")],
    ),
    (
        "sshd-command-without-user",
        "keys",
        "etc/ssh/sshd_config",
        &[("%u\n", "%u\nAuthorizedKeysCommandUser nobody\n")],
    ),
    (
        "sshd-revoked-keys-missing",
        "missing",
        "etc/ssh/sshd_config",
        &[(
            "RevokedKeys /etc/ssh/revoked\n",
            "#RevokedKeys /etc/ssh/revoked\n",
        )],
    ),
    (
        "sshd-sftp-forwards",
        "group",
        "etc/ssh/sshd_config",
        &[(
            "internal-sftp\n",
            "internal-sftp\n    DisableForwarding yes\n",
        )],
    ),
    (
        "sshd-idle-limit-off",
        "zero",
        "etc/ssh/sshd_config",
        &[("Max 0", "Max 3")],
    ),
    (
        "sshd-without-sftp",
        "comment",
        "etc/ssh/sshd_config",
        &[("#Subsystem", "Subsystem")],
    ),
    (
        "ssh-authority-of-all-hosts",
        "star",
        "etc/ssh/ssh_known_hosts",
        &[("* ssh", "*.example.com ssh")],
    ),
    (
        "ssh-command-key-forwards",
        "command",
        "root/.ssh/authorized_keys",
        &[("command=", "restrict,command=")],
    ),
    (
        "dropbear-blank-passwords",
        "blank",
        "etc/default/dropbear",
        &[("-B ", "")],
    ),
    (
        "nginx-limit-evaded",
        "header",
        "etc/nginx/nginx.conf",
        &[("$http_x_forwarded_for", "$binary_remote_addr")],
    ),
    (
        "nginx-443-without-tls",
        "plain",
        "etc/nginx/nginx.conf",
        &[("listen 443;", "listen 443 ssl;")],
    ),
    (
        "nginx-upstream-not-kept",
        "plain",
        "etc/nginx/nginx.conf",
        &[(
            "proxy_pass",
            "proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            proxy_pass",
        )],
    ),
    (
        "nginx-early-data-untold",
        "proxy",
        "etc/nginx/nginx.conf",
        &[("ssl_early_data on", "ssl_early_data off")],
    ),
    (
        "nginx-database-forwarded",
        "all",
        "etc/nginx/nginx.conf",
        &[("listen 5432", "listen 127.0.0.1:5432")],
    ),
    (
        "apache-php-by-extension",
        "handler",
        "etc/apache2/sites-enabled/site.conf",
        &[(
            "    AddHandler application/x-httpd-php .php\n",
            "    <FilesMatch \"\\.php$\">\n        SetHandler application/x-httpd-php\n    </FilesMatch>\n",
        )],
    ),
    (
        "apache-address-of-anybody",
        "none",
        "etc/apache2/sites-enabled/site.conf",
        &[(
            "X-Forwarded-For\n",
            "X-Forwarded-For\n    RemoteIPInternalProxy 10.0.0.5\n",
        )],
    ),
    (
        "apache-rules-of-2-2",
        "order",
        "etc/apache2/sites-enabled/site.conf",
        &[(
            "    Order allow,deny\n    Allow from all\n",
            "    Require all granted\n",
        )],
    ),
    (
        "apache-workers-above-limit",
        "prefork",
        "etc/apache2/mods-enabled/mpm_prefork.conf",
        &[("Max", "ServerLimit 600\nMax")],
    ),
    (
        "apache-system-published",
        "backups",
        "etc/apache2/sites-enabled/site.conf",
        &[("Require all granted", "Require ip 10.0.0.0/8")],
    ),
    (
        "apache-runs-as-root",
        "envvars",
        "etc/apache2/envvars",
        &[("=root", "=www-data")],
    ),
    (
        "php-fpm-socket-open",
        "all",
        "etc/php/8.2/fpm/pool.d/www.conf",
        &[("0666", "0660")],
    ),
    (
        "php-upload-above-request",
        "default",
        "etc/php/8.2/fpm/conf.d/90-own.ini",
        &[("200M\n", "200M\npost_max_size = 210M\n")],
    ),
    (
        "lighttpd-webdav-open",
        "open",
        "etc/lighttpd/conf-enabled/20-webdav.conf",
        &[("\"disable\"", "\"enable\"")],
    ),
    (
        "caddy-administration-open",
        "all",
        "etc/caddy/Caddyfile",
        &[("admin :2019", "admin localhost:2019")],
    ),
    (
        "caddy-certificates-for-anything",
        "open",
        "etc/caddy/Caddyfile",
        &[(
            "    email a@example.com\n",
            "    on_demand_tls {\n        ask http://localhost:5555/ok\n    }\n",
        )],
    ),
    (
        "caddy-client-unverified",
        "request",
        "etc/caddy/Caddyfile",
        &[("mode request", "mode require_and_verify")],
    ),
    (
        "caddy-password-cleartext",
        "http",
        "etc/caddy/Caddyfile",
        &[("http://", "")],
    ),
    (
        "haproxy-servers-unchecked",
        "two",
        "etc/haproxy/haproxy.cfg",
        &[("backend app\n", "backend app\n    default-server check\n")],
    ),
    (
        "haproxy-header-decides",
        "deny",
        "etc/haproxy/haproxy.cfg",
        &[("hdr_ip(X-Forwarded-For)", "src")],
    ),
    (
        "haproxy-proxy-from-anybody",
        "all",
        "etc/haproxy/haproxy.cfg",
        &[(
            " accept-proxy",
            "\n    tcp-request connection expect-proxy layer4 if { src 10.0.0.5 }",
        )],
    ),
    (
        "varnish-management-open",
        "all",
        "etc/systemd/system/varnish.service.d/override.conf",
        &[(
            "0.0.0.0:6082 -S none",
            "localhost:6082 -S /etc/varnish/secret",
        )],
    ),
    (
        "varnish-purge-open",
        "method",
        "etc/varnish/default.vcl",
        &[(
            "        return (purge);",
            "        if (client.ip !~ purgers) { return (synth(405)); }\n        return (purge);",
        )],
    ),
    (
        "tomcat-manager-open",
        "all",
        "etc/tomcat10/Catalina/localhost/manager.xml",
        &[("allow=\".*\"", "allow=\"127\\.\\d+\\.\\d+\\.\\d+|::1\"")],
    ),
    (
        "java-management-open",
        "off",
        "etc/default/tomcat10",
        &[("=false", "=true")],
    ),
    (
        "certificate-without-chain",
        "nginx",
        "etc/nginx/nginx.conf",
        &[("cert.pem", "fullchain.pem")],
    ),
    (
        "certificate-from-archive",
        "nginx",
        "etc/nginx/nginx.conf",
        &[(
            "archive/a.example.com/fullchain3.pem",
            "live/a.example.com/fullchain.pem",
        )],
    ),
    (
        "certbot-by-hand",
        "manual",
        "etc/letsencrypt/renewal/a.example.com.conf",
        &[("authenticator = manual\n", "authenticator = dns-rfc2136\n")],
    ),
    (
        "certbot-staging",
        "nginx",
        "etc/letsencrypt/renewal/a.example.com.conf",
        &[("acme-staging-v02", "acme-v02")],
    ),
    (
        "certbot-port-taken",
        "nginx",
        "etc/letsencrypt/renewal/a.example.com.conf",
        &[("standalone", "webroot")],
    ),
    (
        "certbot-not-loaded",
        "webroot",
        "etc/letsencrypt/renewal/a.example.com.conf",
        &[(
            "authenticator = webroot\n",
            "authenticator = webroot\nrenew_hook = systemctl reload nginx\n",
        )],
    ),
    (
        "certbot-not-renewed",
        "never",
        "etc/letsencrypt/renewal/a.example.com.conf",
        &[("autorenew = False\n", "")],
    ),
    (
        "postfix-port-465-without-tls",
        "plain",
        "etc/postfix/master.cf",
        &[(
            "  -o smtpd_sasl",
            "  -o smtpd_tls_wrappermode=yes\n  -o smtpd_sasl",
        )],
    ),
    (
        "postfix-transport-missing",
        "filter",
        "etc/postfix/main.cf",
        &[("content_filter = amavis:[127.0.0.1]:10024\n", "")],
    ),
    (
        "mail-for-root-discarded",
        "null",
        "etc/aliases",
        &[("root: /dev/null", "root: admin@example.org")],
    ),
    (
        "postfix-login-socket-missing",
        "none",
        "etc/dovecot/dovecot.conf",
        &[(
            "protocols = imap\n",
            "protocols = imap\nservice auth {\n  unix_listener /var/spool/postfix/private/auth {\n    mode = 0660\n    user = postfix\n  }\n}\n",
        )],
    ),
    (
        "postfix-delivery-socket-missing",
        "none",
        "etc/dovecot/dovecot.conf",
        &[(
            "protocols = imap\n",
            "protocols = imap lmtp\nservice lmtp {\n  unix_listener /var/spool/postfix/private/dovecot-lmtp {\n    mode = 0600\n    user = postfix\n  }\n}\n",
        )],
    ),
    (
        "mail-delivered-elsewhere",
        "maildir",
        "etc/dovecot/dovecot.conf",
        &[("mbox:~/mail:INBOX=/var/mail/%u", "maildir:~/Maildir")],
    ),
    (
        "opendkim-socket-differs",
        "unix",
        "etc/opendkim.conf",
        &[("local:/run/opendkim/opendkim.sock", "inet:8891@localhost")],
    ),
    (
        "dovecot-never-synced",
        "never",
        "etc/dovecot/dovecot.conf",
        &[("never", "optimized")],
    ),
    (
        "dovecot-login-port-open",
        "all",
        "etc/dovecot/dovecot.conf",
        &[("    port", "    address = 127.0.0.1\n    port")],
    ),
    (
        "dovecot-indexes-mapped",
        "nfs",
        "etc/dovecot/dovecot.conf",
        &[("%u\n", "%u\nmmap_disable = yes\n")],
    ),
    (
        "cyrus-cleartext",
        "yes",
        "etc/imapd.conf",
        &[("allowplaintext: yes", "allowplaintext: no")],
    ),
    (
        "cyrus-without-password",
        "true",
        "etc/imapd.conf",
        &[("alwaystrue", "saslauthd")],
    ),
    (
        "opensmtpd-open-relay",
        "any",
        "etc/smtpd.conf",
        &[("match from any for any", "match auth from any for any")],
    ),
    (
        "opensmtpd-password-cleartext",
        "notls",
        "etc/smtpd.conf",
        &[("smtp+notls", "smtp+tls")],
    ),
    (
        "fetchmail-cleartext",
        "off",
        "etc/fetchmailrc",
        &[("sslproto ''", "ssl")],
    ),
    (
        "mailman-interface-open",
        "all",
        "etc/mailman3/mailman.cfg",
        &[("0.0.0.0", "localhost")],
    ),
    (
        "mailman-pages-insecure",
        "debug",
        "etc/mailman3/mailman-web.py",
        &[("True", "False")],
    ),
];
