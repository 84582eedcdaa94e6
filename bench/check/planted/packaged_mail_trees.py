"""Trees for planted rows: packaged configurations of lighttpd, HAProxy and mail servers. See `packaged_trees`."""

from packaged_trees import base

LIGHTTPD_STOCK = """server.modules = ("mod_indexfile", "mod_access", "mod_alias", "mod_redirect")
server.document-root = "/var/www/html"
server.upload-dirs = ( "/var/cache/lighttpd/uploads" )
server.errorlog = "/var/log/lighttpd/error.log"
server.pid-file = "/run/lighttpd.pid"
server.username = "www-data"
server.groupname = "www-data"
server.port = 80
index-file.names = ( "index.php", "index.html" )
url.access-deny = ( "~", ".inc" )
include "/etc/lighttpd/conf-enabled/*.conf"
"""


def lighttpd(text):
    return {
        **base("lighttpd"),
        "etc/lighttpd/lighttpd.conf": LIGHTTPD_STOCK,
        "etc/lighttpd/conf-enabled/20-own.conf": text,
    }


HA_GLOBAL = """global
\tlog /dev/log local0
\tchroot /var/lib/haproxy
\tstats socket /run/haproxy/admin.sock mode 660 level admin
\tstats timeout 30s
\tuser haproxy
\tgroup haproxy
\tdaemon
\tca-base /etc/ssl/certs
\tcrt-base /etc/ssl/private
%s
defaults
\tlog global
\tmode http
\toption httplog
\toption dontlognull
%s
"""
HA_TIMES = "\ttimeout connect 5000\n\ttimeout client 50000\n\ttimeout server 50000\n"
HA_TLS = "\tssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets\n"


def haproxy(text, globals_=HA_TLS, defaults=HA_TIMES, **files):
    tree = {**base("haproxy"), "etc/haproxy/haproxy.cfg": HA_GLOBAL % (globals_, defaults) + text}
    return tree


MAIN_STOCK = """smtpd_banner = $myhostname ESMTP $mail_name (Debian/GNU)
biff = no
append_dot_mydomain = no
readme_directory = no
compatibility_level = 3.6
smtpd_tls_cert_file=/etc/ssl/certs/mail.pem
smtpd_tls_key_file=/etc/ssl/private/mail.key
smtpd_tls_security_level=may
smtp_tls_CApath=/etc/ssl/certs
smtp_tls_security_level=may
smtp_tls_session_cache_database = btree:${data_directory}/smtp_scache
smtpd_relay_restrictions = permit_mynetworks permit_sasl_authenticated defer_unauth_destination
myhostname = mail.example.org
alias_maps = hash:/etc/aliases
alias_database = hash:/etc/aliases
mydestination = $myhostname, localhost.localdomain, localhost
relayhost =
mynetworks = 127.0.0.0/8 [::ffff:127.0.0.0]/104 [::1]/128
mailbox_size_limit = 0
recipient_delimiter = +
inet_interfaces = all
inet_protocols = all
"""
MASTER_STOCK = """smtp      inet  n       -       y       -       -       smtpd
pickup    unix  n       -       y       60      1       pickup
cleanup   unix  n       -       y       -       0       cleanup
qmgr      unix  n       -       n       300     1       qmgr
tlsmgr    unix  -       -       y       1000?   1       tlsmgr
rewrite   unix  -       -       y       -       -       trivial-rewrite
bounce    unix  -       -       y       -       0       bounce
defer     unix  -       -       y       -       0       bounce
proxymap  unix  -       -       n       -       -       proxymap
anvil     unix  -       -       y       -       1       anvil
smtp      unix  -       -       y       -       -       smtp
relay     unix  -       -       y       -       -       smtp
        -o syslog_name=postfix/$service_name
error     unix  -       -       y       -       -       error
retry     unix  -       -       y       -       -       error
local     unix  -       n       n       -       -       local
virtual   unix  -       n       n       -       -       virtual
lmtp      unix  -       -       y       -       -       lmtp
"""


def postfix(more="", master="", drop=(), **files):
    main = "".join(line + "\n" for line in MAIN_STOCK.splitlines() if not line.startswith(tuple(drop) or ("\0",)))
    return {**base("postfix"), "etc/postfix/main.cf": main + more, "etc/postfix/master.cf": MASTER_STOCK + master}


DOVE_STOCK = """!include_try /usr/share/dovecot/protocols.d/*.protocol
dict {
}
!include conf.d/*.conf
!include_try local.conf
"""


def dovecot(local, **files):
    return {
        **base("dovecot-core"),
        "etc/dovecot/dovecot.conf": DOVE_STOCK,
        "usr/share/dovecot/protocols.d/imapd.protocol": "protocols = $protocols imap\n",
        "etc/dovecot/conf.d/10-auth.conf": "auth_mechanisms = plain\n!include auth-system.conf.ext\n",
        "etc/dovecot/conf.d/auth-system.conf.ext": "passdb {\n  driver = pam\n}\nuserdb {\n  driver = passwd\n}\n",
        "etc/dovecot/conf.d/10-mail.conf": (
            "mail_location = mbox:~/mail:INBOX=/var/mail/%u\nnamespace inbox {\n"
            "  inbox = yes\n}\nmail_privileged_group = mail\n"
        ),
        "etc/dovecot/conf.d/10-ssl.conf": (
            "ssl = yes\nssl_cert = </etc/dovecot/private/dovecot.pem\nssl_key = </etc/dovecot/private/dovecot.key\n"
        ),
        "etc/dovecot/local.conf": local,
    }


def dovecot24(local):
    return {
        **base("dovecot-core", dovecot_core="1:2.4.1+dfsg1-6+deb13u3"),
        "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n',
        "etc/dovecot/dovecot.conf": (
            "dovecot_config_version = 2.4.1\ndovecot_storage_version = 2.4.1\n"
            "protocols = imap lmtp\n!include conf.d/*.conf\n!include_try local.conf\n"
        ),
        "etc/dovecot/conf.d/10-auth.conf": "auth_mechanisms = plain\npassdb pam {\n}\nuserdb passwd {\n}\n",
        "etc/dovecot/conf.d/10-mail.conf": (
            "mail_driver = mbox\nmail_home = /home/%{user|username}\n"
            "mail_path = %{home}/mail\nmail_inbox_path = /var/mail/%{user}\n"
        ),
        "etc/dovecot/local.conf": local,
    }


EXIM_CONF = """dc_eximconfig_configtype='%(kind)s'
dc_other_hostnames='mail.example.org'
dc_local_interfaces='%(interfaces)s'
dc_readhost=''
dc_relay_domains='%(domains)s'
dc_minimaldns='false'
dc_relay_nets='%(nets)s'
dc_smarthost=''
CFILEMODE='644'
dc_use_split_config='%(split)s'
dc_hide_mailname=''
dc_mailname_in_oh='true'
dc_localdelivery='mail_spool'
"""


def exim(files=None, kind="internet", interfaces="", domains="", nets="", split="false"):
    tree = {
        **base("exim4-config", "exim4-daemon-heavy"),
        "etc/mailname": "mail.example.org\n",
        "etc/exim4/update-exim4.conf.conf": (
            EXIM_CONF % {"kind": kind, "interfaces": interfaces, "domains": domains, "nets": nets, "split": split}
        ),
    }
    for name, text in (files or {}).items():
        tree[f"etc/exim4/{name}"] = text
    return tree


EXIM_OWN = """primary_hostname = mail.example.org
domainlist local_domains = @
hostlist relay_from_hosts = localhost
acl_smtp_rcpt = acl_check_rcpt
never_users = root
keep_environment =
tls_certificate = /etc/exim4/exim.crt
tls_privatekey = /etc/exim4/exim.key
%s
begin acl
acl_check_rcpt:
%s
begin routers
dnslookup:
  driver = dnslookup
  domains = ! +local_domains
  transport = remote_smtp
  no_more
localuser:
  driver = accept
  check_local_user
  transport = local_delivery
begin transports
remote_smtp:
  driver = smtp
local_delivery:
  driver = appendfile
  file = /var/mail/$local_part_data
  delivery_date_add
  envelope_to_add
  return_path_add
begin retry
*  *  F,2h,15m; G,16h,1h,1.5; F,4d,6h
"""


def exim_own(acl, main=""):
    return {**base("exim4-daemon-heavy"), "etc/exim4/exim4.conf": EXIM_OWN % (main, acl)}


SA_STOCK = "ifplugin Mail::SpamAssassin::Plugin::Shortcircuit\nendif # Mail::SpamAssassin::Plugin::Shortcircuit\n"


def sa(text="", spamd='OPTIONS="--create-prefs --max-children 5 --helper-home-dir"\n'):
    return {**base("spamassassin", "spamd"), "etc/spamassassin/local.cf": SA_STOCK + text, "etc/default/spamd": spamd}


def rspamd(files):
    tree = {
        **base("rspamd"),
        "etc/rspamd/rspamd.conf": (
            '.include "$CONFDIR/common.conf"\n'
            'options {\n    pidfile = "$RUNDIR/rspamd.pid";\n    .include "$CONFDIR/options.inc"\n'
            '    .include(try=true; priority=1,duplicate=merge) "$LOCAL_CONFDIR/local.d/options.inc"\n'
            '    .include(try=true; priority=10) "$LOCAL_CONFDIR/override.d/options.inc"\n}\n'
            'worker "controller" {\n    bind_socket = "localhost:11334";\n'
            '    .include "$CONFDIR/worker-controller.inc"\n'
            '    .include(try=true; priority=1,duplicate=merge) "$LOCAL_CONFDIR/local.d/worker-controller.inc"\n'
            '    .include(try=true; priority=10) "$LOCAL_CONFDIR/override.d/worker-controller.inc"\n}\n'
            'worker "rspamd_proxy" {\n    bind_socket = "localhost:11332";\n'
            '    .include "$CONFDIR/worker-proxy.inc"\n'
            '    .include(try=true; priority=1,duplicate=merge) "$LOCAL_CONFDIR/local.d/worker-proxy.inc"\n'
            '    .include(try=true; priority=10) "$LOCAL_CONFDIR/override.d/worker-proxy.inc"\n}\n'
        ),
        "etc/rspamd/common.conf": '.include "$CONFDIR/actions.conf"\n',
        "etc/rspamd/actions.conf": (
            "actions {\n    reject = 15;\n    add_header = 6;\n    greylist = 4;\n"
            '    .include(try=true; priority=1; duplicate=merge) "$LOCAL_CONFDIR/local.d/actions.conf"\n'
            '    .include(try=true; priority=10) "$LOCAL_CONFDIR/override.d/actions.conf"\n}\n'
        ),
        "etc/rspamd/options.inc": (
            'filters = "chartable,dkim,regexp,fuzzy_check";\n'
            "local_addrs = [192.168.0.0/16, 10.0.0.0/8, 172.16.0.0/12, fd00::/8, 169.254.0.0/16, fe80::/10];\n"
        ),
        "etc/rspamd/worker-controller.inc": (
            'count = 1;\npassword = "q1";\nsecure_ip = "127.0.0.1";\nsecure_ip = "::1";\nstatic_dir = "${WWWDIR}";\n'
        ),
        "etc/rspamd/worker-proxy.inc": (
            'milter = yes;\ntimeout = 120s;\nupstream "local" {\n  default = yes;\n'
            '  hosts = "localhost";\n}\ncount = 1;\n'
        ),
    }
    for name, text in files.items():
        tree[f"etc/rspamd/{name}"] = text
    return tree


DKIM_STOCK = """Syslog\t\t\tyes
SyslogSuccess\t\tyes
Canonicalization\trelaxed/simple
OversignHeaders\t\tFrom
UserID\t\t\topendkim
UMask\t\t\t007
Socket\t\t\tlocal:/run/opendkim/opendkim.sock
PidFile\t\t\t/run/opendkim/opendkim.pid
TrustAnchorFile\t\t/usr/share/dns/root.key
"""


def dkim(text, drop=(), **files):
    stock = "".join(line + "\n" for line in DKIM_STOCK.splitlines() if not line.startswith(tuple(drop) or ("\0",)))
    tree = {**base("opendkim"), "etc/opendkim.conf": stock + text}
    tree.update({f"etc/{name.replace('__', '/')}": content for name, content in files.items()})
    return tree
