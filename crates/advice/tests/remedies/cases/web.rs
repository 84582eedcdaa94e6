//! Remedies for web servers.

use super::Act::{Do, PasteIn};
use super::Case;

const NGINX: &str = "nginx -t";
/// Script that validates the page's files with the server. Settings that a fragment lacks are given on the command
/// line.
const APACHE: &str = r#"
openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/key -out /tmp/cert -subj /CN=example.com 2> /dev/null
mkdir -p /var/log/apache2 /run/apache2 /usr/share/apache2
printf '#!/bin/sh\n' > /usr/share/apache2/ask-for-passphrase
chmod +x /usr/share/apache2/ask-for-passphrase
conf=/etc/apache2/apache2.conf
[ -e $conf ] || printf 'IncludeOptional mods-enabled/*.load\nIncludeOptional mods-enabled/*.conf\n' > $conf
modules=/usr/lib/apache2/modules
set -- -C 'ServerRoot /etc/apache2' -C "ServerName localhost" -C "PidFile /run/apache2/pid" -C "ErrorLog /var/log/apache2/error.log"
grep -qs 'mpm_' /etc/apache2/mods-enabled/*.load || set -- "$@" -C "LoadModule mpm_event_module $modules/mod_mpm_event.so"
grep -qs 'ssl_module' /etc/apache2/mods-enabled/*.load || set -- "$@" -C "LoadModule ssl_module $modules/mod_ssl.so"
for one in socache_shmcb mime setenvif alias authz_core; do
    grep -qs "${one}_module" /etc/apache2/mods-enabled/*.load \
        || set -- "$@" -C "LoadModule ${one}_module $modules/mod_$one.so"
done
set -- "$@" -C 'SSLCertificateFile /tmp/cert' -C 'SSLCertificateKeyFile /tmp/key'
APACHE_RUN_DIR=/run/apache2 APACHE_LOG_DIR=/var/log/apache2 apache2 -t "$@" -f $conf
"#;
const LIGHTTPD: &str = r#"
openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/key -out /tmp/cert -subj /CN=example.com 2> /dev/null
cat /tmp/key /tmp/cert > /etc/lighttpd/server.pem
printf 'server.document-root = "/tmp"\nserver.modules = ()\ninclude "/etc/lighttpd/conf-enabled/*.conf"\n' \
    > /etc/lighttpd/lighttpd.conf
lighttpd -tt -f /etc/lighttpd/lighttpd.conf
"#;

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "nginx-worker-processes",
        trees: &[],
        needs: "nginx",
        furnish: "",
        acts: &[PasteIn(
            "worker_processes auto;",
            &[],
            r#"sed -i '/^worker_processes/d' /etc/nginx/nginx.conf; sed -i "1i $COMMAND" /etc/nginx/nginx.conf"#,
        )],
        accepted: NGINX,
    },
    Case {
        page: "web-server-rc4",
        trees: &["apache"],
        needs: "apache2",
        furnish: "",
        acts: &[
            Do("Remove RC4 from the line in", ":"),
            PasteIn(
                "HIGH:!aNULL",
                &[],
                r#"sed -i -E "${LINE}s/(SSLCipherSuite).*/\1 $COMMAND/" "$FILE""#,
            ),
        ],
        accepted: APACHE,
    },
    Case {
        page: "web-server-rc4",
        trees: &["lighttpd"],
        needs: "lighttpd",
        furnish: "",
        acts: &[Do(
            "Remove RC4 from the line in",
            r#"sed -i -E "${LINE}s/ECDHE-RSA-RC4-SHA://" "$FILE""#,
        )],
        accepted: LIGHTTPD,
    },
    Case {
        page: "web-server-sslv3",
        trees: &[
            "apache",
            "apache-case",
            "apache-continued",
            "apache-defined",
            "apache-included",
            "apache-module-there",
        ],
        needs: "apache2",
        furnish: "",
        acts: &[PasteIn(
            "SSLProtocol all -SSLv3",
            &[],
            r#"
while sed -n "${LINE}p" "$FILE" | grep -q '\\$'; do sed -i "${LINE}{N;s/\\\\\n//}" "$FILE"; done
sed -i "${LINE}c $COMMAND" "$FILE""#,
        )],
        accepted: APACHE,
    },
    Case {
        page: "web-server-sslv3",
        trees: &["lighttpd"],
        needs: "lighttpd",
        furnish: "",
        acts: &[PasteIn(
            "\"MinProtocol\" =>",
            &[],
            r#"sed -i "s/\"MinProtocol\" => \"SSLv3\"/$COMMAND/" "$FILE""#,
        )],
        accepted: LIGHTTPD,
    },
]];
