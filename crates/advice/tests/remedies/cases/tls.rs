//! Remedies for certificates. An authority of the test issues the certificates.

use super::Act::{Do, PasteIn};
use super::Case;

/// Script that creates a root authority, an intermediate authority, and a certificate for the server's names. All have
/// the dates of the fixture. `fullchain` contains what a server sends.
const ISSUE: &str = r#"
issue() { # names
    now=$(date +%s)
    [ ! -e /proc/stat ] || now=$(awk -v now="$now" '$1 == "btime" { now = $2 + 1000 } END { print now }' /proc/stat)
    day=$(date -u -d "@$((now - 86400))" '+%F %T')
    mkdir -p /tmp/ca; cd /tmp/ca
    at() { faketime -f "$day" openssl "$@" 2>/dev/null; }
    printf 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n' > ca.ext
    key() { [ -e $1 ] || openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1; }
    key root.key; key middle.key; key leaf.key
    at req -x509 -new -key root.key -subj '/CN=Own Root' -days 3650 -out root.pem
    at req -new -key middle.key -subj '/CN=Own Authority' -out middle.csr
    at x509 -req -in middle.csr -CA root.pem -CAkey root.key -CAcreateserial -days 1000 -extfile ca.ext -out middle.pem
    at req -new -key leaf.key -subj "/CN=$1" -out leaf.csr
    printf 'subjectAltName=%s\n' "$(echo "$@" | sed -E 's/(\S+)/DNS:\1/g; s/ /,/g')" > leaf.ext
    at x509 -req -in leaf.csr -CA middle.pem -CAkey middle.key -CAcreateserial -days 90 -extfile leaf.ext -out leaf.pem
    cat leaf.pem middle.pem > fullchain.pem
    openssl verify -CAfile root.pem -untrusted middle.pem -no_check_time leaf.pem > /dev/null
    cd /
}
names() {
    grep -ohE '(server_name|ServerName|ServerAlias)\s+[^;]+' /etc/nginx/sites-enabled/* /etc/nginx/nginx.conf \
        /etc/apache2/sites-enabled/* 2>/dev/null | sed -E 's/^\S+\s+//' | tr '\n' ' '
}
"#;

macro_rules! renew {
    () => {
        r#"eval "$ISSUE"; issue $(names)
cp /tmp/ca/fullchain.pem "$FILE"
mkdir -p /etc/ssl/private; cp /tmp/ca/leaf.key /etc/ssl/private/shop.key"#
    };
}

const NGINX: &str = "nginx -t";

/// Replaces a program by another program that uses the library of the distribution.
macro_rules! linked {
    ($page:literal, $text:literal, $program:literal) => {
        Case {
            page: $page,
            trees: &[],
            needs: "openssl",
            furnish: "",
            acts: &[Do($text, concat!("cp /usr/bin/openssl ", $program))],
            accepted: concat!("ldd ", $program, " | grep libssl"),
        }
    };
}

pub const CASES: &[&[Case]] = &[&[
    linked!(
        "openssl-copy-ended",
        "one that uses the library of the distribution",
        "/opt/agent/bin/agent"
    ),
    linked!(
        "openssl-copy-heartbleed",
        "a version with a current library",
        "/usr/local/sbin/vpnd"
    ),
    Case {
        page: "certificate-ended",
        trees: &[],
        needs: "faketime",
        furnish: "",
        acts: &[Do("Renew it", renew!())],
        accepted: NGINX,
    },
    Case {
        page: "certificate-ends-soon",
        trees: &[],
        needs: "faketime",
        furnish: "",
        acts: &[Do("Renew it", renew!())],
        accepted: NGINX,
    },
    Case {
        page: "certificate-sha1",
        trees: &[],
        needs: "faketime",
        furnish: "",
        acts: &[Do(
            "Get a certificate that is signed with SHA-256, with the intermediate certificates that belong to it",
            renew!(),
        )],
        accepted: NGINX,
    },
    Case {
        page: "certificate-small-key",
        trees: &[],
        needs: "faketime",
        furnish: "",
        acts: &[
            PasteIn(
                "openssl genpkey",
                &[],
                r#"mkdir -p /tmp/ca; eval "$COMMAND"; mv "$FILE".new-key /tmp/ca/leaf.key"#,
            ),
            Do("get a certificate for it", renew!()),
        ],
        accepted: NGINX,
    },
    Case {
        page: "certificate-chain-short",
        trees: &[],
        needs: "faketime",
        furnish: "",
        acts: &[Do(
            "Use the file with the whole chain (certbot: `fullchain.pem`)",
            renew!(),
        )],
        accepted: NGINX,
    },
    Case {
        page: "certificate-other-name",
        trees: &[
            "apache-certificate-of-all",
            "deeper-than-the-star",
            "nginx-address-with-tls",
            "one-of-two",
        ],
        needs: "faketime",
        furnish: "",
        acts: &[Do(
            "get one for all names",
            r#"for FILE in /etc/ssl/ex.crt /etc/ssl/certs/shop.pem; do [ ! -e $FILE ] || break; done
eval "$ISSUE"; issue $(names)
cp /tmp/ca/fullchain.pem "$FILE"
mkdir -p /etc/ssl/private
for key in /etc/ssl/private/shop.key /etc/ssl/ex.key; do cp /tmp/ca/leaf.key $key; done"#,
        )],
        accepted: NGINX,
    },
    Case {
        page: "certificate-other-name",
        trees: &["apache"],
        needs: "faketime",
        furnish: "",
        acts: &[Do(
            "or take the names away that nobody asks for",
            "sed -i 's/ wiki.example.org//' /etc/apache2/sites-enabled/shop.conf",
        )],
        accepted: "",
    },
    Case {
        page: "certificate-chain-order",
        trees: &[],
        needs: "openssl",
        furnish: "",
        acts: &[
            PasteIn("openssl crl2pkcs7", &[], r#"eval "$COMMAND""#),
            Do(
                "Put the file together anew: the own certificate, that of its issuer, and so on; the root is left out",
                r#"mkdir -p /tmp/parts; rm -f /tmp/parts/*; cd /tmp/parts
{ cat "$FILE"; echo "$CHAIN"; } | awk '/BEGIN/ { n++ } { print > (n ".pem") }'
field() { openssl x509 -in "$2" -noout -"$1" | sed 's/^[a-z]*=//'; }
: > all
next=1.pem # in each fixture the own certificate is the first one
while [ -n "$next" ] && [ "$(field issuer $next)" != "$(field subject $next)" ]; do
    cat $next >> all
    issuer=$(field issuer $next); next=
    for one in *.pem; do [ "$(field subject $one)" != "$issuer" ] || next=$one; done
done
cp all "$FILE""#,
            ),
        ],
        accepted: "",
    },
]];

/// Script that issues certificates. Every script can use it as a variable.
pub const ISSUING: &str = ISSUE;

/// Certificates of the authority that issued the certificates in the fixtures.
pub const CHAIN: &str = include_str!(
    "../../../../../advice/tls/certificate-chain-order/fires/swapped/etc/ssl/certs/shop.pem"
);
