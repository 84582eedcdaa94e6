"""Planted rows: mail, file servers, databases, tunnels, names. See `run_planted`."""

MAIN = "etc/postfix/main.cf"
MASTER = "etc/postfix/master.cf"
DOVE = "etc/dovecot/dovecot.conf"
SMB = "etc/samba/smb.conf"
PG = "etc/postgresql/15/main/postgresql.conf"
HBA = "etc/postgresql/15/main/pg_hba.conf"
SMTP = "smtp      inet  n       -       y       -       -       smtpd\n"
PGBASE = "data_directory = '/var/lib/postgresql/15/main'\nhba_file = '/etc/postgresql/15/main/pg_hba.conf'\n"
HBAOK = "local all all peer\nhost all all 127.0.0.1/32 scram-sha-256\n"
REDIS = "etc/redis/redis.conf"
MY = "etc/mysql/my.cnf"
EXIM = "etc/exim4/update-exim4.conf.conf"
VPN = "etc/openvpn/server/srv.conf"
TUNNEL = "dev tun\nca ca.crt\ncert a.crt\nkey a.key\nserver 10.8.0.0 255.255.255.0\n"
AP = "etc/hostapd/hostapd.conf"
WLAN = "interface=wlan0\nssid=home\nhw_mode=g\nchannel=6\nwpa_key_mgmt=WPA-PSK\nwpa_passphrase=abcdefgh\nieee80211w=1\n"


def postfix(main, master=SMTP):
    return {MAIN: "myhostname = mx.example\n" + main, MASTER: master}


EXT4 = {"proc/self/mountinfo": "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"}
OLD_VPN = {"var/lib/dpkg/status": "Package: openvpn\nStatus: install ok installed\nVersion: 2.5.1-3\n"}


def pg(text, hba=HBAOK):
    return {PG: PGBASE + text, HBA: hba}


def samba(text):
    return {SMB: "[global]\n" + text}


def my(text):
    return {MY: text}


TLS = "smtpd_tls_security_level = may\nsmtpd_tls_cert_file=/etc/a.pem\n"
SUBMISSION = SMTP + "submission inet n - y - - smtpd\n"
CHECKED = "smtpd_recipient_restrictions = permit_mynetworks, reject_unauth_destination, reject_rbl_client "
BAD_USER = "   map to guest = Bad User\n"
GUEST_SHARE = "[pub]\n path = /srv/p\n guest ok = true\n read only = 0\n"

ROWS = [
    ("postfix-relay-mynetworks", r"relay", postfix("mynetworks = 127.0.0.0/8, 0.0.0.0/0\n"),
     postfix("mynetworks = 127.0.0.0/8, 192.168.0.0/24\n")),
    ("postfix-relay-restrictions", r"relay", postfix("smtpd_relay_restrictions =\n    permit_mynetworks,\n    permit\n"),
     postfix("smtpd_relay_restrictions =\n    permit_mynetworks,\n    reject_unauth_destination,\n    permit\n")),
    ("postfix-relay-master", r"relay",
     postfix("", SMTP + "10025 inet n - y - - smtpd\n  -o smtpd_relay_restrictions=permit\n"),
     postfix("", SMTP + "127.0.0.1:10025 inet n - y - - smtpd\n  -o smtpd_relay_restrictions=permit_mynetworks,reject\n")),
    ("postfix-relay-macro", r"relay", postfix("my_nets = 0.0.0.0/0\nmynetworks = 127.0.0.0/8 ${my_nets}\n"),
     postfix("my_nets = 10.0.0.0/24\nmynetworks = 127.0.0.0/8 $my_nets\n")),
    ("postfix-relay-class", r"relay",
     postfix("smtpd_restriction_classes = lax\nlax = permit\nsmtpd_relay_restrictions = lax, reject_unauth_destination\n"),
     postfix("smtpd_restriction_classes = strict\nstrict = reject_unauth_destination\n"
             "smtpd_relay_restrictions = permit_mynetworks strict reject\n")),
    ("postfix-ssl3-option", r"ssl3|sslv3|tls", postfix(TLS, SUBMISSION + "  -o smtpd_tls_mandatory_protocols=SSLv3,TLSv1.2\n"),
     postfix(TLS, SUBMISSION + "  -o smtpd_tls_mandatory_protocols=>=TLSv1.2\n")),
    ("postfix-3des", r"cipher", postfix(TLS + "tls_high_cipherlist = ECDHE+AESGCM:DES-CBC3-SHA\nsmtpd_tls_ciphers = high\n"),
     postfix(TLS + "smtpd_tls_mandatory_exclude_ciphers = 3DES, RC4, eNULL\n")),
    ("postfix-enull-option", r"cipher", postfix(TLS, SUBMISSION + "  -o tls_medium_cipherlist=ALL:eNULL\n"),
     postfix(TLS, SUBMISSION + "  -o smtpd_tls_exclude_ciphers=eNULL\n")),
    ("postfix-cleartext-auth", r"cleartext", postfix(TLS + "smtpd_sasl_auth_enable = yes\n"),
     postfix(TLS + "smtpd_sasl_auth_enable = yes\nsmtpd_tls_auth_only = yes\n")),
    ("postfix-cleartext-auth-option", r"cleartext", postfix(TLS, SUBMISSION + "  -o { smtpd_sasl_auth_enable = yes }\n"),
     postfix(TLS, SUBMISSION + "  -o smtpd_sasl_auth_enable=yes\n  -o smtpd_tls_security_level=encrypt\n")),
    ("postfix-dead-list", r"dnsbl|list", postfix(CHECKED + "dnsbl.sorbs.net\n"), postfix(CHECKED + "zen.spamhaus.org\n")),
    ("postscreen-dead-list", r"dnsbl|list", postfix("postscreen_dnsbl_sites = zen.spamhaus.org*2, dnsbl.njabl.org*1\n"),
     postfix("postscreen_dnsbl_sites = zen.spamhaus.org*2\n")),
    ("postfix-soft-bounce", r"soft", postfix("soft_bounce = yes\n"), postfix("soft_bounce = no\n")),
    ("postfix-size-over-mailbox", r"size|limit|mailbox", postfix("message_size_limit = 104857600\nmailbox_size_limit = 51200000\n"),
     postfix("message_size_limit = 104857600\nmailbox_size_limit = 0\n")),
    ("dovecot-cleartext", r"cleartext", {DOVE: "!include conf.d/*.conf\n", "etc/dovecot/conf.d/10-auth.conf":
     "disable_plaintext_auth=no\n", "etc/dovecot/conf.d/10-ssl.conf": "ssl = yes\n"},
     {DOVE: "!include conf.d/*.conf\n", "etc/dovecot/conf.d/10-auth.conf": "disable_plaintext_auth=no\n",
      "etc/dovecot/conf.d/10-ssl.conf": "ssl = required\n"}),
    ("dovecot-sslv3", r"ssl3|sslv3|tls", {DOVE: "ssl = required\nssl_min_protocol = SSLv3\n"},
     {DOVE: "ssl = required\nssl_min_protocol = TLSv1.2\n"}),
    ("dovecot-tls10", r"tls-1-0", {DOVE: "ssl = required\nssl_min_protocol = TLSv1\n"},
     {DOVE: "ssl = required\nssl_min_protocol = TLSv1.3\n"}),
    ("dovecot-3des", r"cipher", {DOVE: "ssl = required\nssl_cipher_list = AES128+EECDH:DES-CBC3-SHA\n"},
     {DOVE: "ssl = required\nssl_cipher_list = AES128+EECDH:!3DES:!RC4\n"}),
    ("exim-relay", r"relay", {EXIM: "dc_eximconfig_configtype='internet'\ndc_relay_nets='0.0.0.0/0'\n"},
     {EXIM: "dc_eximconfig_configtype='internet'\ndc_relay_nets='10.0.0.0/24'\n"}),

    ("smb1", r"smb-1", samba("   Server Min Protocol = NT1\n"), samba("   server min protocol = SMB2_10\n")),
    ("smb1-lanman-synonym", r"smb-1", samba("\tmin protocol = LANMAN1\n"), samba("\tmin protocol = SMB3\n")),
    ("smb-signing", r"sign", samba("   server signing = disabled\n"), samba("   server signing = mandatory\n")),
    ("smb-guest-write", r"guest", samba(BAD_USER + "[pub]\n   path = /srv/pub\n   public = yes\n   writeable = yes\n"),
     samba(BAD_USER + "[pub]\n   path = /srv/pub\n   public = yes\n   read only = yes\n")),
    ("smb-guest-include", r"guest", {**samba(BAD_USER + " include = /etc/samba/b.conf\n"), "etc/samba/b.conf": GUEST_SHARE},
     {**samba(" include = /etc/samba/b.conf\n"), "etc/samba/b.conf": GUEST_SHARE.replace("true", "false")}),
    ("smb-null", r"null", samba("   null passwords = yes\n"), samba("   null passwords = no\n")),
    ("smb-wide-links", r"wide|link", samba(" allow insecure wide links = yes\n[a]\n path=/srv/a\n wide links = yes\n"),
     samba("[a]\n path=/srv/a\n wide links = no\n")),
    ("smb-root-guest", r"guest", samba(" guest account = root\n map to guest = bad user\n[x]\n path=/srv/x\n guest ok = yes\n"),
     samba(" guest account = nobody\n")),
    ("smb-ntlmv1", r"login|ntlm|weak", samba(" ntlm auth = ntlmv1-permitted\n"), samba(" ntlm auth = ntlmv2-only\n")),
    ("smb-root-shared", r"system|guest", samba(BAD_USER + "[all]\n path = /\n guest ok = yes\n read only = yes\n"),
     samba("[all]\n path = /srv\n valid users = @staff\n")),
    ("nfs-root", r"nfs", {"etc/exports": "/srv/a *(rw,sync,no_root_squash)\n"},
     {"etc/exports": "/srv/a 10.0.0.5(rw,sync,root_squash)\n"}),
    ("nfs-exports.d", r"nfs", {"etc/exports": "", "etc/exports.d/b.exports": "/srv/b 0.0.0.0/0(rw)\n"},
     {"etc/exports": "", "etc/exports.d/b.exports": "/srv/b 10.1.0.0/16(rw)\n"}),
    ("nfs-blank", r"nfs", {"etc/exports": "/srv/a host1 (rw)\n"}, {"etc/exports": "/srv/a host1(rw)\n"}),
    ("rsyncd-open", r"rsync", {"etc/rsyncd.conf": "[data]\n path = /srv/data\n read only = no\n"},
     {"etc/rsyncd.conf": "[data]\n path = /srv/data\n read only = no\n auth users = bob\n secrets file = /etc/r.sec\n"}),
    ("vsftpd-anon", r"vsftpd", {"etc/vsftpd.conf": "anonymous_enable=YES\nwrite_enable=YES\nanon_upload_enable=YES\n"},
     {"etc/vsftpd.conf": "anonymous_enable=NO\nwrite_enable=YES\nanon_upload_enable=YES\n"}),
    ("proftpd-anon", r"proftpd", {"etc/proftpd/proftpd.conf": "<Anonymous ~ftp>\n User ftp\n <Directory incoming>\n"
                                  "  <Limit STOR>\n   AllowAll\n  </Limit>\n </Directory>\n</Anonymous>\n"},
     {"etc/proftpd/proftpd.conf": "<Anonymous ~ftp>\n User ftp\n <Limit WRITE>\n   DenyAll\n </Limit>\n</Anonymous>\n"}),
    ("tftp-create", r"tftp", {"etc/default/tftpd-hpa": "TFTP_OPTIONS='-l --secure -c'\nTFTP_ADDRESS=':69'\n"},
     {"etc/default/tftpd-hpa": "TFTP_OPTIONS=\"--secure\"\n"}),

    ("pg-fsync-conf.d", r"fsync", {**pg("include_dir = 'conf.d'\n"), "etc/postgresql/15/main/conf.d/x.conf": "FSYNC off\n"},
     {**pg("fsync = off\ninclude_dir = 'conf.d'\n"), "etc/postgresql/15/main/conf.d/x.conf": "fsync = on\n"}),
    ("pg-full-page", r"torn|page|fsync-off", {**EXT4, **pg("full_page_writes = off\n")}, pg("full_page_writes = on\n")),
    ("pg-trust", r"trust", pg("listen_addresses = '*'\nssl=on\n", HBAOK + "hostssl all all 0.0.0.0/0 trust\n"),
     pg("listen_addresses = '*'\nssl = on\n", HBAOK + "hostssl all all 10.0.0.0/8 scram-sha-256\n")),
    ("pg-trust-local", r"trust", pg("", "local all all trust\n"), pg("", "local all postgres peer\n")),
    ("pg-password", r"cleartext|password", pg("listen_addresses = '*'\n", HBAOK + "host all all 10.0.0.0/8 password\n"),
     pg("ssl = on\n", HBAOK + "hostssl all all 10.0.0.0/8 scram-sha-256\n")),
    ("pg-world-no-tls", r"tls", pg("listen_addresses = '*'\nssl = off\n", HBAOK + "host all all 0.0.0.0/0 scram-sha-256\n"),
     pg("listen_addresses = '*'\nssl = on\n", HBAOK + "hostssl all all 0.0.0.0/0 scram-sha-256\n")),
    ("pg-tls10", r"tls-1-0", pg("ssl = on\nssl_min_protocol_version = 'TLSv1'\n"),
     pg("ssl = off\n#ssl_min_protocol_version = 'TLSv1'\n")),
    ("pg-3des", r"cipher", pg("ssl = on\nssl_ciphers = 'HIGH:3DES:RC4-SHA'\n"),
     pg("ssl = on\nssl_ciphers = 'HIGH:MEDIUM:+3DES:!aNULL'\n")),
    ("pg-autovacuum", r"autovacuum", pg("autovacuum = off\n"), pg("autovacuum = on\n")),
    ("pg-zero-damaged", r"damage", pg("zero_damaged_pages = true\n"), pg("zero_damaged_pages = false\n")),
    ("pg-auto-conf", r"fsync", {**pg("fsync = on\n"), "var/lib/postgresql/15/main/postgresql.auto.conf": "fsync = 'off'\n"},
     {**pg("fsync = off\n"), "var/lib/postgresql/15/main/postgresql.auto.conf": "fsync = 'on'\n"}),
    ("my-flush-log", r"flush", {MY: "!includedir /etc/mysql/conf.d/\n", "etc/mysql/conf.d/z.cnf":
     "[mysqld]\ninnodb-flush-log-at-trx-commit=2\n"}, {MY: "!includedir /etc/mysql/conf.d/\n", "etc/mysql/conf.d/z.cnf":
     "[mysqldump]\ninnodb-flush-log-at-trx-commit=2\n[mysqld]\ninnodb_flush_log_at_trx_commit=1\n"}),
    ("my-skip-grant", r"skip", my("[mysqld]\nskip_grant_tables\n"), my("[mysqld]\n#skip-grant-tables\n[client]\nuser=a\n")),
    ("my-doublewrite", r"doublewrite", {**EXT4, **my("[server]\nskip-innodb-doublewrite\n")}, my("[server]\ninnodb_doublewrite = 1\n")),
    ("my-force-recovery", r"recovery", my("[mariadb]\ninnodb_force_recovery = 4\n"),
     my("[mariadb]\ninnodb_force_recovery = 0\n")),
    ("my-remote-no-tls", r"tls", {MY: "!includedir /etc/mysql/mariadb.conf.d/\n", "etc/mysql/mariadb.conf.d/50-server.cnf":
     "[mysqld]\nbind-address = 0.0.0.0\n"}, {MY: "!includedir /etc/mysql/mariadb.conf.d/\n",
     "etc/mysql/mariadb.conf.d/50-server.cnf": "[mysqld]\nbind-address = 127.0.0.1\n"}),
    ("my-tls10", r"tls-1-0", my("[mysqld]\ntls_version = TLSv1.0,TLSv1.2\nssl_cert=/a\nssl_key=/b\n"),
     my("[mysqld]\ntls_version = TLSv1.2,TLSv1.3\nssl_cert=/a\nssl_key=/b\n")),
    ("my-3des", r"cipher", my("[mysqld]\nssl_cert=/a\nssl_key=/b\nssl_cipher = AES128-SHA:DES-CBC3-SHA\n"),
     my("[mysqld]\nssl_cert=/a\nssl_key=/b\nssl_cipher = ECDHE-RSA-AES128-GCM-SHA256\n")),
    ("my-local-infile", r"infile|priv", my("[mysqld]\nsecure_file_priv=\nlocal_infile=1\n"),
     my("[mysqld]\nsecure_file_priv=/var/lib/mysql-files\nlocal_infile=0\n")),
    ("redis-open", r"redis", {REDIS: "bind 0.0.0.0 ::\nprotected-mode no\nport 6379\n"},
     {REDIS: "bind 0.0.0.0\nprotected-mode no\nport 6379\nrequirepass foobar\n"}),
    ("redis-open-rh", r"redis", {"etc/redis.conf": "bind * -::*\nprotected-mode no\n"},
     {"etc/redis.conf": "bind 127.0.0.1\nprotected-mode no\n"}),
    ("redis-instance", r"redis", {"etc/redis/redis-prod.conf": "bind 0.0.0.0\nprotected-mode no\n"},
     {"etc/redis/redis-prod.conf": "bind 0.0.0.0\nprotected-mode yes\n"}),
    ("redis-include", r"redis", {REDIS: "include /etc/redis/b.conf\n", "etc/redis/b.conf": "bind 0.0.0.0\nprotected-mode no\n"},
     {REDIS: "bind 0.0.0.0\nprotected-mode no\ninclude /etc/redis/b.conf\n", "etc/redis/b.conf": "requirepass abc\n"}),
    ("memcached", r"memcached", {"etc/memcached.conf": "-d\n-m 64\n-p 11211\n-u memcache\n-l 0.0.0.0\n"},
     {"etc/memcached.conf": "-d\n-m 64\n-p 11211\n-u memcache\n-l 127.0.0.1\n"}),
    ("memcached-rh", r"memcached", {"etc/sysconfig/memcached": "PORT=\"11211\"\nOPTIONS=\"-l 0.0.0.0 -U 11211\"\n"},
     {"etc/sysconfig/memcached": "PORT=\"11211\"\nOPTIONS=\"-l 127.0.0.1,::1\"\n"}),
    ("mongodb", r"mongo", {"etc/mongod.conf": "net:\n    port: 27017\n    bindIp: 127.0.0.1,0.0.0.0\n"},
     {"etc/mongod.conf": "net:\n    port: 27017\n    bindIp: 127.0.0.1\n"}),
    ("elastic", r"elastic", {"etc/elasticsearch/elasticsearch.yml": "network.host: 0.0.0.0\nxpack.security.enabled: false\n"},
     {"etc/elasticsearch/elasticsearch.yml": "network.host: 0.0.0.0\nxpack.security.enabled: true\n"}),
    ("etcd-unit", r"etcd", {"etc/systemd/system/etcd.service": "[Service]\nExecStart=/usr/bin/etcd \\\n"
                            "  --listen-client-urls=http://0.0.0.0:2379 \\\n  --advertise-client-urls=http://10.0.0.1:2379\n"},
     {"etc/systemd/system/etcd.service": "[Service]\nExecStart=/usr/bin/etcd --listen-client-urls=http://127.0.0.1:2379\n"}),
    ("mosquitto", r"mosquitto", {"etc/mosquitto/mosquitto.conf": "include_dir /etc/mosquitto/conf.d\n",
                                 "etc/mosquitto/conf.d/a.conf": "listener 1883 0.0.0.0\nallow_anonymous true\n"},
     {"etc/mosquitto/mosquitto.conf": "include_dir /etc/mosquitto/conf.d\n",
      "etc/mosquitto/conf.d/a.conf": "listener 1883 0.0.0.0\nallow_anonymous false\npassword_file /etc/mosquitto/p\n"}),

    ("openvpn-blowfish", r"openvpn", {**OLD_VPN, "etc/openvpn/server.conf": TUNNEL + "cipher BF-CBC\n"},
     {"etc/openvpn/server.conf": TUNNEL + "data-ciphers AES-256-GCM\n"}),
    ("openvpn-3des", r"openvpn", {VPN: TUNNEL + "data-ciphers AES-256-GCM:DES-EDE3-CBC\n"},
     {VPN: TUNNEL + "data-ciphers AES-256-GCM:CHACHA20-POLY1305\n"}),
    ("openvpn-tls-cipher", r"openvpn|cipher", {VPN: TUNNEL + "tls-cipher TLS-RSA-WITH-3DES-EDE-CBC-SHA:"
                                               "TLS-ECDHE-RSA-WITH-AES-128-GCM-SHA256\n"},
     {VPN: TUNNEL + "tls-cipher TLS-ECDHE-RSA-WITH-AES-128-GCM-SHA256\n"}),
    ("openvpn-none", r"openvpn", {"etc/openvpn/client/a.conf": "client\ndev tun\nremote b.example\nca c\n"
                                  "cipher none\ndata-ciphers none\n"},
     {"etc/openvpn/client/a.conf": "client\ndev tun\nremote b.example\nca c\nremote-cert-tls server\n"}),
    ("openvpn-comp", r"openvpn", {VPN: TUNNEL + "comp-lzo yes\nallow-compression yes\n"},
     {VPN: TUNNEL + "allow-compression no\n"}),
    ("bind-open", r"bind", {"etc/bind/named.conf": "include \"/etc/bind/named.conf.options\";\n",
                            "etc/bind/named.conf.options": "options { recursion yes; allow-recursion { any; }; };\n"},
     {"etc/bind/named.conf": "include \"/etc/bind/named.conf.options\";\n",
      "etc/bind/named.conf.options": "options { recursion no; allow-recursion { any; }; };\n"}),
    ("bind-acl-any", r"bind", {"etc/bind/named.conf": "acl \"trusted\" { 10.0.0.0/8; any; };\n"
                               "options { allow-recursion { trusted; }; };\n"},
     {"etc/bind/named.conf": "acl \"trusted\" { 10.0.0.0/8; localnets; };\noptions { allow-recursion { trusted; }; };\n"}),
    ("bind-transfer", r"bind", {"etc/bind/named.conf": "zone \"a.example\" { type master; file \"a\"; "
                                "allow-transfer { any; }; };\n"},
     {"etc/bind/named.conf": "zone \"a.example\" { type master; file \"a\"; allow-transfer { key x; }; };\n"}),
    ("bind-validation", r"bind", {"etc/bind/named.conf.options": "options { dnssec-validation no; };\n"},
     {"etc/bind/named.conf.options": "options { dnssec-validation auto; };\n"}),
    ("unbound-open", r"unbound", {"etc/unbound/unbound.conf": "include-toplevel: \"/etc/unbound/unbound.conf.d/*.conf\"\n",
                                  "etc/unbound/unbound.conf.d/a.conf":
                                  "server:\n  interface: 0.0.0.0\n  access-control: 0.0.0.0/0 allow\n"},
     {"etc/unbound/unbound.conf.d/a.conf": "server:\n  interface: 0.0.0.0\n  access-control: 10.0.0.0/8 allow\n"}),
    ("snmp-public", r"snmp", {"etc/snmp/snmpd.conf": "agentaddress udp:161\nrocommunity public\n"},
     {"etc/snmp/snmpd.conf": "agentaddress udp:161\nrocommunity public 10.0.0.0/24\n"}),
    ("snmp-write", r"snmp", {"etc/snmp/snmpd.conf": "agentAddress udp:161,udp6:[::1]:161\nrwcommunity s3cret default\n"},
     {"etc/snmp/snmpd.conf": "agentaddress 127.0.0.1\nrwcommunity s3cret default\n"}),
    ("cups-admin", r"cups", {"etc/cups/cupsd.conf": "Listen *:631\n<Location /admin>\n Order allow,deny\n Allow @LOCAL\n"
                             "</Location>\n"},
     {"etc/cups/cupsd.conf": "Listen localhost:631\n<Location /admin>\n Order allow,deny\n Allow @LOCAL\n</Location>\n"}),
    ("hostapd-open-second", r"hostapd", {AP: WLAN + "wpa=2\nrsn_pairwise=CCMP\nbss=wlan0_0\nssid=guest\n"},
     {AP: WLAN + "wpa=2\nrsn_pairwise=CCMP\n"}),
    ("hostapd-tkip", r"hostapd", {AP: WLAN + "wpa=3\nwpa_pairwise=TKIP CCMP\n"}, {AP: WLAN + "wpa=2\nwpa_pairwise=CCMP\n"}),
    ("hostapd-default-file", r"hostapd", {"etc/default/hostapd": "DAEMON_CONF=\"/etc/hostapd-home.conf\"\n",
                                          "etc/hostapd-home.conf": "interface=wlan0\nssid=home\nwpa=0\n"},
     {"etc/default/hostapd": "DAEMON_CONF=\"/etc/hostapd-home.conf\"\n",
      "etc/hostapd-home.conf": WLAN + "wpa=2\nrsn_pairwise=CCMP\n"}),
    ("hostapd-wps", r"hostapd", {"etc/hostapd/wlan1.conf": WLAN + "wpa=2\nrsn_pairwise=CCMP\nwps_state=2\nap_pin=12345670\n"
                                 "config_methods=label keypad\n"},
     {"etc/hostapd/wlan1.conf": WLAN + "wpa=2\nrsn_pairwise=CCMP\nwps_state=0\n"}),
]
