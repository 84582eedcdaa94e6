"""Planted rows: lighttpd, HAProxy and Postfix, in unusual but valid spellings. See `run_planted`."""

from packaged_mail_trees import HA_TLS, dovecot, haproxy, lighttpd, postfix
from packaged_trees import CLOCK, KEY, NEW_CERT, NEW_KEY, OLD_CERT, OLD_KEY, certificate

SUBMISSION = "submission inet n       -       y       -       -       smtpd\n  -o syslog_name=postfix/submission\n"

ROWS = [
    # --- lighttpd, HAProxy ---
    (
        "lighttpd-seclevel",
        "cipher-level|tls-1-0",
        lighttpd(
            'server.modules += ( "mod_openssl" )\n$SERVER["socket"] == "0.0.0.0:443" {\n  ssl.engine = "enable"\n'
            '  ssl.pemfile = "/etc/lighttpd/a.pem"\n  ssl.openssl.ssl-conf-cmd = ( "MinProtocol" => "TLSv1",\n'
            '    "CipherString" => "DEFAULT@SECLEVEL=0" )\n}\n'
        ),
        lighttpd(
            'server.modules += ( "mod_openssl" )\n$SERVER["socket"] == "0.0.0.0:443" {\n  ssl.engine = "enable"\n'
            '  ssl.pemfile = "/etc/lighttpd/a.pem"\n  ssl.openssl.ssl-conf-cmd = ( "MinProtocol" => "TLSv1.2" )\n}\n'
        ),
    ),
    (
        "haproxy-bind-old",
        "cipher-level|tls-1-0",
        haproxy(
            "frontend f\n\tbind :443 ssl crt /etc/haproxy/a.pem ssl-min-ver TLSv1.0 ciphers ALL:@SECLEVEL=0\n"
            "\tdefault_backend b\nbackend b\n\tserver s 127.0.0.1:8080\n"
        ),
        haproxy(
            "frontend f\n\tbind :443 ssl crt /etc/haproxy/a.pem ssl-min-ver TLSv1.2\n"
            "\tdefault_backend b\nbackend b\n\tserver s 127.0.0.1:8080\n",
            globals_="\tssl-default-bind-options ssl-min-ver TLSv1.0\n\tssl-default-bind-ciphers DEFAULT:!aNULL\n",
        ),
    ),
    (
        "haproxy-verify-none",
        "server-unverified",
        haproxy(
            "frontend f\n\tbind 127.0.0.1:80\n\tdefault_backend b\nbackend b\n\tserver s 203.0.113.7:443 ssl\n",
            globals_=HA_TLS + "\tssl-server-verify none\n",
        ),
        haproxy(
            "frontend f\n\tbind 127.0.0.1:80\n\tdefault_backend b\nbackend b\n"
            "\tdefault-server ssl verify required ca-file ca-certificates.crt verifyhost api.example.net\n"
            "\tserver s 203.0.113.7:443\n",
            globals_=HA_TLS + "\tssl-server-verify none\n",
        ),
    ),
    (
        "haproxy-stats-admin",
        "statistics-open",
        haproxy("listen st\n\tbind *:8404\n\tstats enable\n\tstats uri /\n\tstats admin if TRUE\n"),
        haproxy(
            "listen st\n\tbind *:8404\n\tstats enable\n\tstats uri /\n\tacl near src 127.0.0.0/8\n"
            "\thttp-request deny unless near\n\tstats admin if TRUE\n"
        ),
    ),
    (
        "haproxy-socket",
        "socket-open",
        haproxy("", globals_=HA_TLS + "\tstats socket ipv4@:9999 level admin\n"),
        haproxy("", globals_=HA_TLS + "\tstats socket ipv4@127.0.0.1:9999 level operator\n"),
    ),
    # --- Postfix ---
    (
        "postfix-two-halves",
        "open-relay",
        postfix("mynetworks = 127.0.0.0/8, 128.0.0.0/1,\n\t0.0.0.0/1\n", drop=["mynetworks"]),
        postfix("mynetworks = 127.0.0.0/8, 128.0.0.0/1,\n\t0.0.0.0/1\nmynetworks=127.0.0.0/8\n", drop=["mynetworks"]),
    ),
    (
        "postfix-networks-file",
        "open-relay",
        postfix("mynetworks = 127.0.0.0/8, $config_directory/near\n", drop=["mynetworks"])
        | {"etc/postfix/near": "10.0.0.0/8\n0.0.0.0/0\n"},
        postfix("mynetworks = 127.0.0.0/8, $config_directory/near\n", drop=["mynetworks"])
        | {"etc/postfix/near": "# 0.0.0.0/0\n10.0.0.0/8\n"},
    ),
    (
        "postfix-warn-only",
        "open-relay",
        postfix(
            "smtpd_relay_restrictions = permit_mynetworks,\n  warn_if_reject reject_unauth_destination\n",
            drop=["smtpd_relay"],
        ),
        postfix(
            "smtpd_relay_restrictions = permit_mynetworks,\n  warn_if_reject reject_unknown_client_hostname\n"
            "  reject_unauth_destination\n",
            drop=["smtpd_relay"],
        ),
    ),
    (
        "postfix-submission-open",
        "open-relay",
        postfix(
            master=SUBMISSION + "  -o smtpd_sasl_auth_enable=yes\n  -o smtpd_tls_security_level=encrypt\n"
            "  -o { smtpd_relay_restrictions = permit_sasl_authenticated, permit }\n"
        ),
        postfix(
            master=SUBMISSION + "  -o smtpd_sasl_auth_enable=yes\n  -o smtpd_tls_security_level=encrypt\n"
            "  -o { smtpd_relay_restrictions = permit_sasl_authenticated, reject }\n"
        ),
    ),
    (
        "postfix-auth-clear",
        "cleartext-login",
        postfix("smtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\nsmtpd_sasl_path = private/auth\n"),
        postfix(
            "smtpd_sasl_type = dovecot\nsmtpd_sasl_path = private/auth\n",
            SUBMISSION
            + "  -o smtpd_sasl_auth_enable=yes\n  -o smtpd_enforce_tls=yes\n  -o smtpd_tls_security_level=encrypt\n",
        ),
    ),
    (
        "postfix-relayhost-clear",
        "password-cleartext",
        postfix(
            "relayhost = [smtp.example.net]:587\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_security_options ="
            " noanonymous\nsmtp_sasl_password_maps = hash:/etc/postfix/sasl\n",
            drop=["relayhost"],
        ),
        postfix(
            "relayhost = [smtp.example.net]:587\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_security_options ="
            " noanonymous\nsmtp_sasl_password_maps = hash:/etc/postfix/sasl\nsmtp_tls_security_level = secure\n",
            drop=["relayhost", "smtp_tls_security"],
        ),
    ),
    (
        "postfix-large-message",
        "mailbox-small",
        postfix(
            "virtual_mailbox_domains = example.net\nvirtual_mailbox_base = /var/vmail\n"
            "virtual_mailbox_maps = hash:/etc/postfix/vmailbox\nvirtual_uid_maps = static:5000\n"
            "virtual_gid_maps = static:5000\nmessage_size_limit = 104857600\n"
        ),
        postfix(
            "virtual_mailbox_domains = example.net\nvirtual_mailbox_base = /var/vmail\n"
            "virtual_mailbox_maps = hash:/etc/postfix/vmailbox\nvirtual_uid_maps = static:5000\n"
            "virtual_gid_maps = static:5000\nmessage_size_limit = 104857600\nvirtual_mailbox_limit = 0\n"
        ),
    ),
    (
        "postfix-soft-bounce",
        "soft-bounce",
        postfix(master="2525 inet n - y - - smtpd\n  -o soft_bounce=yes\n"),
        postfix("soft_bounce = yes\nsoft_bounce = no\n"),
    ),
    (
        "postfix-domain-twice",
        "two-classes",
        postfix(
            "mydomain = example.org\nvirtual_mailbox_domains = example.net $mydomain\nvirtual_transport = lmtp:unix:l\n"
            "mydestination = $myhostname, $mydomain, localhost\n",
            drop=["mydestination"],
        ),
        postfix(
            "mydomain = example.org\nvirtual_mailbox_domains = example.net\nvirtual_transport = lmtp:unix:l\n"
            "mydestination = $myhostname, $mydomain, localhost\n",
            drop=["mydestination"],
        ),
    ),
    (
        "postfix-unknown-users",
        "unknown-recipients",
        postfix("local_recipient_maps =\n"),
        postfix("local_recipient_maps =\nluser_relay = catchall@example.org\n"),
    ),
    (
        "postfix-subnet",
        "trusts-class",
        postfix("mynetworks_style = class\n", drop=["mynetworks"]),
        postfix("mynetworks_style = class\n"),
    ),
    (
        "postfix-null-cipher",
        "weak-ciphers",
        postfix("smtpd_tls_ciphers = null\n"),
        postfix("smtpd_tls_ciphers = high\n"),
    ),
    (
        "postfix-expired",
        "certificate-ended",
        postfix(
            "smtpd_tls_chain_files = /etc/postfix/a.key,\n  /etc/postfix/a.pem\n",
            drop=["smtpd_tls_cert", "smtpd_tls_key"],
        )
        | {"etc/postfix/a.pem": OLD_CERT, "etc/postfix/a.key": (OLD_KEY, KEY)}
        | CLOCK,
        postfix(
            "smtpd_tls_chain_files = /etc/postfix/a.key,\n  /etc/postfix/a.pem\n",
            drop=["smtpd_tls_cert", "smtpd_tls_key"],
        )
        | {"etc/postfix/a.pem": NEW_CERT, "etc/postfix/a.key": (NEW_KEY, KEY)}
        | CLOCK,
    ),
]
