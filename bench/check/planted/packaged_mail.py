"""Planted rows: Dovecot, Exim and mail filters, in unusual but valid spellings. See `run_planted`."""

from packaged_mail_trees import dkim, dovecot, dovecot24, exim, exim_own, rspamd, sa
from packaged_trees import CLOCK, KEY, NEW_CERT, NEW_KEY, OLD_CERT, OLD_KEY, certificate

CLEAR_MACROS = "MAIN_TLS_ENABLE = yes\nAUTH_SERVER_ALLOW_NOTLS_PASSWORDS = 1\n"
CLEAR_AUTH = {
    "conf.d/auth/40_own": (
        "plain_server:\n  driver = plaintext\n  public_name = PLAIN\n"
        '  server_condition = "${if crypteq{$auth3}{${extract{1}{:}{${lookup{$auth2}lsearch{CONFDIR/passwd}'
        '{$value}{*:*}}}}}{1}{0}}"\n  server_set_id = $auth2\n  server_prompts = :\n'
        "  .ifndef AUTH_SERVER_ALLOW_NOTLS_PASSWORDS\n"
        "  server_advertise_condition = ${if eq{$tls_in_cipher}{}{}{*}}\n  .endif\n"
    )
}

ROWS = [
    # --- Dovecot ---
    (
        "dovecot-clear-remote",
        "dovecot-cleartext",
        dovecot("remote 0.0.0.0/0 {\n  disable_plaintext_auth = no\n}\n"),
        dovecot("remote 127.0.0.0/8 {\n  disable_plaintext_auth = no\n}\n"),
    ),
    (
        "dovecot-min-any",
        "cipher-level|tls-1-0",
        dovecot("ssl_min_protocol = ANY\nssl_cipher_list = ALL:@SECLEVEL=0\n"),
        dovecot("ssl_min_protocol = TLSv1.3\n"),
    ),
    (
        "dovecot-anonymous",
        "anonymous",
        dovecot("auth_mechanisms = $auth_mechanisms login ANONYMOUS\n"),
        dovecot("auth_mechanisms = $auth_mechanisms login\n"),
    ),
    (
        "dovecot-static",
        "without-password",
        dovecot("passdb {\n  driver = static\n  args = nopassword=y\n}\n"),
        dovecot("passdb {\n  driver = static\n  args = password=abc-def-ghi allow_nets=127.0.0.1/32\n}\n"),
    ),
    (
        "dovecot-passwords-logged",
        "passwords-logged",
        dovecot("auth_verbose_passwords = plain:40\n"),
        dovecot("auth_verbose_passwords = sha1\n"),
    ),
    (
        "dovecot-trusted",
        "trusts-everybody",
        dovecot("login_trusted_networks = 0.0.0.0/0\n"),
        dovecot("login_trusted_networks = 10.0.0.5\n"),
    ),
    (
        "dovecot-master-socket",
        "master-socket",
        dovecot("service auth {\n  unix_listener auth-master {\n    mode = 0666\n  }\n}\n"),
        dovecot("service auth {\n  unix_listener auth-master {\n    mode = 0660\n    group = mail\n  }\n}\n"),
    ),
    (
        "dovecot-expired-name",
        "certificate-ended",
        dovecot("local_name mail.example.org {\n  ssl_cert = </etc/dovecot/m.pem\n  ssl_key = </etc/dovecot/m.key\n}\n")
        | {"etc/dovecot/m.pem": OLD_CERT, "etc/dovecot/m.key": (OLD_KEY, KEY)}
        | CLOCK,
        dovecot("local_name mail.example.org {\n  ssl_cert = </etc/dovecot/m.pem\n  ssl_key = </etc/dovecot/m.key\n}\n")
        | {"etc/dovecot/m.pem": NEW_CERT, "etc/dovecot/m.key": (NEW_KEY, KEY)}
        | CLOCK,
    ),
    (
        "dovecot24-clear",
        "dovecot-cleartext",
        dovecot24("protocol imap {\n  auth_allow_cleartext = yes\n}\n"),
        dovecot24("remote 127.0.0.1 {\n  auth_allow_cleartext = yes\n}\n"),
    ),
    (
        "dovecot24-old-name",
        "setting-gone|old-language",
        dovecot24("ssl = yes\nssl_cert = </etc/dovecot/a.pem\nssl_key = </etc/dovecot/a.key\n"),
        dovecot24("ssl = yes\nssl_server_cert_file = /etc/dovecot/a.pem\nssl_server_key_file = /etc/dovecot/a.key\n"),
    ),
    # --- Exim ---
    ("exim-relay-all", "open-relay", exim(nets="<; ::0/0 ; 0.0.0.0/0"), exim(nets="<; fd00:1::/64 ; 10.0.0.0/8")),
    ("exim-domains-all", "open-relay", exim(domains="example.net : *"), exim(domains="example.net : *.example.net")),
    (
        "exim-split-macro",
        "open-relay",
        exim({"conf.d/main/000_own": "MAIN_RELAY_NETS = 0.0.0.0/0\n"}, split="true"),
        exim({"conf.d/main/000_own": "MAIN_RELAY_NETS = 0.0.0.0/0\n"}, split="false"),
    ),
    (
        "exim-clear-auth",
        "cleartext-login",
        exim(CLEAR_AUTH | {"conf.d/main/000_own": CLEAR_MACROS}, split="true"),
        exim(CLEAR_AUTH | {"exim4.conf.localmacros": CLEAR_MACROS}, split="true"),
    ),
    (
        "exim-own-accept",
        "open-relay",
        exim_own("  accept hosts = : +relay_from_hosts\n  accept domains = *\n"),
        exim_own(
            "  accept hosts = : +relay_from_hosts\n  accept domains = +local_domains\n    verify = recipient\n"
            "  deny message = relay not permitted\n"
        ),
    ),
    (
        "exim-own-hosts",
        "open-relay",
        exim_own(
            "  accept hosts = +near\n  require domains = +local_domains\n  accept\n", "hostlist near = 10.0.0.0/8 : *\n"
        ),
        exim_own(
            "  accept hosts = +near\n  require domains = +local_domains\n  accept\n",
            "hostlist near = 10.0.0.0/8 : ! *\n",
        ),
    ),
    # --- SpamAssassin, rspamd, OpenDKIM ---
    (
        "sa-welcome-own",
        "welcomes-forged",
        sa("welcomelist_from *@*.example.org *@example.org\n"),
        sa("welcomelist_auth *@*.example.org *@example.org\n"),
    ),
    ("sa-trusted-all", "trusts-all", sa("trusted_networks 0/0\n"), sa("trusted_networks 10/8 192.0.2.4\n")),
    (
        "sa-user-rules",
        "user-rules",
        sa("if (version >= 3.004)\nallow_user_rules 1\nendif\n"),
        sa("if (version < 3.004)\nallow_user_rules 1\nendif\n"),
    ),
    (
        "sa-spamd-open",
        "spamd-open",
        sa(spamd='OPTIONS="--create-prefs --listen --allow-tell -A 0.0.0.0/0 --max-children 5"\n'),
        sa(spamd='OPTIONS="--create-prefs --listen=127.0.0.1 --allow-tell -A 127.0.0.1 --max-children 5"\n'),
    ),
    (
        "rspamd-secure-halves",
        "controller-open",
        rspamd(
            {
                "local.d/worker-controller.inc": (
                    'bind_socket = "*:11334";\n'
                    'secure_ip = ["127.0.0.1", "::/1", "8000::/1", "0.0.0.0/1", "128.0.0.0/1"];\n'
                )
            }
        ),
        rspamd({"local.d/worker-controller.inc": 'bind_socket = "*:11334";\n'}),
    ),
    (
        "rspamd-secure-all",
        "controller-open",
        rspamd({"override.d/worker-controller.inc": 'bind_socket = ["10.0.0.1:11334"];\nsecure_ip = ["0.0.0.0/0"];\n'}),
        rspamd(
            {
                "override.d/worker-controller.inc": 'secure_ip = ["127.0.0.1", "10.0.0.5"];\n',
                "local.d/worker-controller.inc": 'secure_ip = "0.0.0.0/0";\n',
            }
        ),
    ),
    (
        "rspamd-local-all",
        "all-are-local",
        rspamd({"local.d/options.inc": 'local_addrs = "0.0.0.0/0";\n'}),
        rspamd({"local.d/options.inc": 'local_addrs = "192.0.2.0/24";\n'}),
    ),
    (
        "rspamd-order",
        "rejects-before",
        rspamd(
            {"local.d/actions.conf": "reject = 15;\n", "override.d/actions.conf": "reject = 2;\ngreylist = null;\n"}
        ),
        rspamd({"local.d/actions.conf": "reject = 2;\n", "override.d/actions.conf": "reject = 18;\n"}),
    ),
    (
        "dkim-signs-all",
        "signs-for-all",
        dkim(
            "Domain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\n"
            "InternalHosts refile:/etc/opendkim/hosts\n",
            opendkim__hosts="127.0.0.1\n0.0.0.0/0\n",
        ),
        dkim(
            "Domain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\n"
            "InternalHosts refile:/etc/opendkim/hosts\n",
            opendkim__hosts="127.0.0.1\n#0.0.0.0/0\n10.0.0.0/8\n",
        ),
    ),
    (
        "dkim-verify-only",
        "signs-nothing",
        dkim("Mode v\nDomain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\n"),
        dkim("Mode vs\nDomain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\n"),
    ),
    (
        "dkim-sha1",
        "opendkim-sha1",
        dkim("domain example.org\nselector a\nkeyfile /etc/dkimkeys/a.private\nsignaturealgorithm rsa-sha1\n"),
        dkim("domain example.org\nselector a\nkeyfile /etc/dkimkeys/a.private\nsignaturealgorithm rsa-sha256\n"),
    ),
    (
        "dkim-lengths",
        "body-length",
        dkim(
            "Domain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\nBodyLengthDB refile:/etc/opendkim/len\n",
            opendkim__len="*@lists.example.net\n",
        ),
        dkim(
            "Domain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\n#BodyLengthDB refile:/etc/opendkim/len\n",
            opendkim__len="*@lists.example.net\n",
        ),
    ),
    (
        "dkim-socket",
        "opendkim-socket",
        dkim("Socket inet:8891\n", drop=["Socket"]),
        dkim("Socket inet:8891@localhost\n", drop=["Socket"]),
    ),
    (
        "dkim-unsafe-keys",
        "keys-unchecked",
        dkim("Domain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\nRequireSafeKeys false\n")
        | {"etc/dkimkeys/a.private": (NEW_KEY, 0o644)},
        dkim("Domain example.org\nSelector a\nKeyFile /etc/dkimkeys/a.private\n")
        | {"etc/dkimkeys/a.private": (NEW_KEY, KEY)},
    ),
]
