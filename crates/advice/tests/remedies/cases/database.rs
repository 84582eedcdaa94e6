//! Remedies for database servers, which the servers themselves validate.

use super::Act::{Do, PasteIn};
use super::{Case, REMOVE};

const MARIADB: &str =
    "mkdir -p /etc/mysql/conf.d; mariadbd --user=mysql --verbose --help > /dev/null";

/// Script that starts a server, for a setting that is changed at run time.
const MARIADB_RUNS: &str = r#"
mkdir -p /tmp/db /run/mysqld /etc/mysql/conf.d
mariadb-install-db --no-defaults --user=root --datadir=/tmp/db --auth-root-authentication-method=normal \
    --skip-test-db > /tmp/log 2>&1
mariadbd --no-defaults --user=root --datadir=/tmp/db --socket=/run/mysqld/mysqld.sock --skip-networking \
    --innodb-flush-log-at-trx-commit=2 >> /tmp/log 2>&1 &
client="mariadb --no-defaults --socket=/run/mysqld/mysqld.sock"
for _ in $(seq 300); do $client -e 'SELECT 1' > /dev/null 2>&1 && break; sleep 0.1; done
[ "$($client -N -e 'SELECT @@innodb_flush_log_at_trx_commit')" = 2 ]
eval "$COMMAND"
[ "$($client -N -e 'SELECT @@innodb_flush_log_at_trx_commit')" = 1 ]
"#;

const POSTGRESQL: &str = r#"
mkdir -p /etc/postgresql/15/main/conf.d
chown -R postgres /etc/postgresql/15/main
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
for one in fsync full_page_writes; do
    setpriv --reuid=postgres --clear-groups "$bin/postgres" -C $one -D /etc/postgresql/15/main
done
"#;

/// Script that starts a cluster in which `ALTER SYSTEM` set the value.
const POSTGRESQL_RUNS: &str = r#"
data=/var/lib/postgresql/15/main
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
as() { setpriv --reuid=postgres --clear-groups "$@"; }
mkdir -p /etc/postgresql/15/main/conf.d
mv $data/postgresql.auto.conf /tmp/auto
rm -rf $data
chown -R postgres /var/lib/postgresql /etc/postgresql
as "$bin/initdb" --auth-local=peer --auth-host=reject -D $data > /tmp/log
cp /tmp/auto $data/postgresql.auto.conf
cp $data/pg_hba.conf $data/pg_ident.conf /etc/postgresql/15/main/
chown -R postgres /etc/postgresql
chown postgres $data/postgresql.auto.conf
as "$bin/postgres" -D /etc/postgresql/15/main -c listen_addresses= -c unix_socket_directories=/tmp > /tmp/pg.log 2>&1 &
ask() { as "$bin/psql" -h /tmp -d postgres -Atc "$1"; }
for _ in $(seq 100); do ask 'SELECT 1' > /dev/null 2>&1 && break; sleep 0.1; done
[ "$(ask 'SHOW fsync')" = off ]
ask "$COMMAND fsync"
ask 'SELECT pg_reload_conf()'
for _ in $(seq 50); do [ "$(ask 'SHOW fsync')" = on ] && break; sleep 0.1; done
[ "$(ask 'SHOW fsync')" = on ]
as "$bin/pg_ctl" -D $data -m fast stop > /dev/null
"#;

pub const CASES: &[&[Case]] = &[&[
    Case {
        page: "mariadb-flush-log-at-trx-commit",
        trees: &[],
        needs: "mariadbd",
        furnish: "",
        acts: &[
            Do("Remove the line from", REMOVE),
            PasteIn("mariadb -e", &[], MARIADB_RUNS),
        ],
        accepted: MARIADB,
    },
    Case {
        page: "mariadb-doublewrite-off",
        trees: &[],
        needs: "mariadbd",
        furnish: "",
        acts: &[Do("Remove the line from", REMOVE)],
        accepted: MARIADB,
    },
    Case {
        page: "postgresql-fsync-off",
        trees: &["debian-12", "drop-in", "torn-pages", "zfs-without-fsync"],
        needs: "pg_ctlcluster",
        furnish: "",
        acts: &[Do(
            "Set fsync and full_page_writes to on where",
            r#"sed -i -E "${LINE}s/=.*/= on/" "$FILE""#,
        )],
        accepted: POSTGRESQL,
    },
    Case {
        page: "postgresql-fsync-off",
        trees: &["altered"],
        needs: "pg_ctlcluster",
        furnish: "",
        acts: &[PasteIn("ALTER SYSTEM RESET", &[], POSTGRESQL_RUNS)],
        accepted: "",
    },
]];
