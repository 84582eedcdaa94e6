//! Data stores that serve clients without a sign-in, or that do not verify their clients: InfluxDB, PgBouncer, MongoDB,
//! Elasticsearch 7, OpenSearch, and RabbitMQ's Erlang files. `clickhouse` has ClickHouse; `collectors::daemons` has the
//! others. Also notes heaps that are too large.

use super::super::lines_of_files::{files, is_loopback, read};
use super::{Lines, bare};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::{YamlValue, read_yaml};
use crate::collectors::services::packages;
use crate::gather::Gather;
use assay_model::FactPlace;

const INFLUXDB: &str = "/etc/influxdb/influxdb.conf";
const PGBOUNCER: &str = "/etc/pgbouncer/pgbouncer.ini";
const MONGODB: &str = "/etc/mongod.conf";
const OPENSEARCH: &str = "/etc/opensearch/opensearch.yml";
const ELASTICSEARCH: &str = "/etc/elasticsearch/elasticsearch.yml";
/// Files of RabbitMQ with Erlang terms (RabbitMQ, Configuration).
const ERLANG: [&str; 2] = [
    "/etc/rabbitmq/advanced.config",
    "/etc/rabbitmq/rabbitmq.config",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_influxdb(g);
    note_pgbouncer(g);
    note_mongodb(g);
    note_elasticsearch(g);
    note_rabbitmq(g);
    note_opensearch(g);
    note_heap(g);
}

/// A setting of a section of an ini file, in lower case and without quotation marks.
pub(super) struct Said {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) value: String,
    pub(super) place: FactPlace,
}

/// Reads the settings of an ini file.
pub(super) fn read_sections(g: &mut Gather<'_>, key: &str, path: &str) -> Vec<Said> {
    let (mut section, mut said) = (String::new(), Vec::new());
    for line in read(g, key, path) {
        let Some(text) = bare(&line) else { continue };
        if let Some(name) = text.strip_prefix('[') {
            section = name.trim_matches(['[', ']']).trim().to_ascii_lowercase();
            continue;
        }
        let Some((name, value)) = text.split_once('=') else {
            continue;
        };
        let value = value.split(" #").next().unwrap_or_default();
        said.push(Said {
            section: section.clone(),
            name: name.trim().to_ascii_lowercase(),
            value: value.trim().trim_matches(['"', '\'']).to_ascii_lowercase(),
            place: line.place,
        });
    }
    said
}

/// Notes whether InfluxDB 1 answers everybody: without a line, `auth-enabled` is false and the address is `:8086`.
fn note_influxdb(g: &mut Gather<'_>) {
    let said = read_sections(g, "influxdb", INFLUXDB);
    if said.is_empty() {
        return;
    }
    let last = |name: &str| {
        said.iter()
            .rfind(|one| one.section == "http" && one.name == name)
    };
    let (signs_in, address) = (last("auth-enabled"), last("bind-address"));
    let off = signs_in.is_none_or(|one| one.value == "false");
    let served = last("enabled").is_none_or(|one| one.value != "false");
    let beyond = address.is_none_or(|one| !is_loopback(&one.value));
    let place = signs_in.or(address).map(|one| one.place.clone());
    let place = place.unwrap_or_else(|| FactPlace::from(INFLUXDB));
    Lines::of("influxdb", "open").add(g, off && served && beyond, &place);
}

/// Notes whether PgBouncer asks its clients for a password (pgbouncer.ini(5), auth_type).
fn note_pgbouncer(g: &mut Gather<'_>) {
    let said = read_sections(g, "pgbouncer", PGBOUNCER);
    let last = |name: &str| {
        said.iter()
            .rfind(|one| one.section == "pgbouncer" && one.name == name)
    };
    let Some(auth) = last("auth_type") else {
        return;
    };
    let beyond = last("listen_addr").is_some_and(|one| {
        let mut addresses = one.value.split(',').map(str::trim);
        addresses.any(|address| !address.is_empty() && !is_loopback(address))
    });
    let open = beyond && ["any", "trust"].contains(&auth.value.as_str());
    Lines::of("pgbouncer", "open").add(g, open, &auth.place);
}

fn find<'a>(all: &'a [YamlValue], path: &str) -> Option<&'a YamlValue> {
    all.iter().rfind(|one| one.path == path)
}

/// Notes whether MongoDB accepts certificates that no authority signed.
fn note_mongodb(g: &mut Gather<'_>) {
    let text = g.read("mongodb_tls", MONGODB).unwrap_or_default();
    let all = read_yaml(&text);
    let mut found = Lines::of("mongodb_tls", "unverified");
    for part in ["net.tls", "net.ssl"] {
        let on = find(&all, &format!("{part}.mode")).is_some_and(|one| one.value != "disabled");
        if let Some(one) = find(&all, &format!("{part}.allowinvalidcertificates")) {
            let accepts = ["true", "yes", "on"].contains(&one.value.as_str());
            found.add(g, on && accepts, &at_line(MONGODB, one.line));
        }
    }
}

/// Notes whether an Elasticsearch before 8, in which security is off unless a line turns it on, serves other machines.
fn note_elasticsearch(g: &mut Gather<'_>) {
    let Some((version, _)) = packages::find_version(g, "elasticsearch") else {
        return;
    };
    let (major, ..) = packages::numbers(&version);
    let text = g.read("elasticsearch_default", ELASTICSEARCH);
    let all = read_yaml(&text.unwrap_or_default());
    if major == 0 || major >= 8 || find(&all, "xpack.security.enabled").is_some() {
        return;
    }
    let mut found = Lines::of("elasticsearch_default", "open");
    for path in ["http.host", "network.host"] {
        let mut addresses = all.iter().filter(|one| one.path == path).peekable();
        let Some(first) = addresses.peek().copied() else {
            continue;
        };
        let beyond = addresses.any(|one| one.value != "_local_" && !is_loopback(&one.value));
        found.add(g, beyond, &at_line(ELASTICSEARCH, first.line));
        return;
    }
}

/// Notes whether the Erlang files of RabbitMQ let the account guest in from other machines.
fn note_rabbitmq(g: &mut Gather<'_>) {
    let mut found = Lines::of("rabbitmq_terms", "guest_from_everywhere");
    for path in ERLANG {
        for line in read(g, "rabbitmq_terms", path) {
            // A comment of Erlang begins with a percent sign.
            let text = line.text.split('%').next().unwrap_or_default();
            let text: String = text.split_whitespace().collect();
            if let Some((_, value)) = text.split_once("{loopback_users,") {
                found.add(g, value.starts_with("[]"), &line.place);
            }
        }
    }
}

/// Notes whether OpenSearch serves other machines without its security plugin.
fn note_opensearch(g: &mut Gather<'_>) {
    let text = g.read("opensearch", OPENSEARCH).unwrap_or_default();
    let all = read_yaml(&text);
    let Some(off) = find(&all, "plugins.security.disabled") else {
        return;
    };
    let address = ["http.host", "network.host"]
        .into_iter()
        .find(|path| find(&all, path).is_some());
    let mut addresses = all.iter().filter(|one| Some(one.path.as_str()) == address);
    let beyond = addresses.any(|one| one.value != "_local_" && !is_loopback(&one.value));
    let open = off.value == "true" && beyond;
    Lines::of("opensearch", "open").add(g, open, &at_line(OPENSEARCH, off.line));
}

/// Notes a heap of Elasticsearch or OpenSearch for which the JVM cannot compress its pointers: 32 GiB or more.
fn note_heap(g: &mut Gather<'_>) {
    let mut found = Lines::of("search_heap", "above_limit");
    for dir in ["/etc/elasticsearch", "/etc/opensearch"] {
        let mut all = vec![format!("{dir}/jvm.options")];
        all.extend(files(
            g,
            "search_heap",
            &format!("{dir}/jvm.options.d"),
            ".options",
        ));
        let (mut last, mut aligned) = (None, false);
        for path in all {
            for line in read(g, "search_heap", &path) {
                // A range of Java versions may stand before an option: `8-13:-Xmx1g`.
                let text = bare(&line).unwrap_or_default();
                let versions = |letter: char| letter.is_ascii_digit() || letter == '-';
                let option = match text.split_once(':') {
                    Some((range, rest)) if range.chars().all(versions) => rest,
                    _ => text,
                };
                aligned |= option.contains("ObjectAlignmentInBytes");
                if let Some(size) = option.strip_prefix("-Xmx") {
                    last = Some((gibibytes(size), line.place.clone()));
                }
            }
        }
        if let Some((Some(size), place)) = last {
            found.add(g, size >= 32 && !aligned, &place);
        }
    }
}

/// Returns the whole GiB of a size such as `40g`, `40960m` or `42949672960`.
fn gibibytes(size: &str) -> Option<u64> {
    let end = size.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = size.split_at(end.unwrap_or(size.len()));
    let number: u64 = number.parse().ok()?;
    match unit.trim().to_ascii_lowercase().as_str() {
        "t" => number.checked_mul(1 << 10),
        "g" => Some(number),
        "m" => Some(number >> 10),
        "k" => Some(number >> 20),
        "" => Some(number >> 30),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn stores_and_their_near_misses() {
        let advanced = ERLANG[0];
        for (path, text, expected) in [
            (
                INFLUXDB,
                "[http]\n  bind-address = \"10.0.0.5:8086\"\n",
                "influxdb.1.open 2",
            ),
            (
                INFLUXDB,
                "[http]\n  auth-enabled = false # x\n",
                "influxdb.1.open 2",
            ),
            (
                INFLUXDB,
                "[http]\n  bind-address = \"127.0.0.1:8086\"\n",
                "",
            ),
            (INFLUXDB, "[http]\n  auth-enabled = true\n", ""),
            (INFLUXDB, "[http]\n  enabled = false\n", ""),
            (
                PGBOUNCER,
                "[pgbouncer]\nlisten_addr = *\nauth_type = trust\n",
                "pgbouncer.1.open 3",
            ),
            (
                PGBOUNCER,
                "[pgbouncer]\nlisten_addr = *\nauth_type = any\nauth_type = md5\n",
                "",
            ),
            (
                PGBOUNCER,
                "[pgbouncer]\nlisten_addr = localhost\nauth_type = any\n",
                "",
            ),
            (
                MONGODB,
                "net: {port: 1, tls: {mode: requireTLS, allowInvalidCertificates: true}}\n",
                "mongodb_tls.1.unverified 1",
            ),
            (
                MONGODB,
                "net:\n  tls:\n    mode: disabled\n    allowInvalidCertificates: true\n",
                "",
            ),
            (
                OPENSEARCH,
                "network.host: 0.0.0.0\nplugins.security.disabled: true\n",
                "opensearch.1.open 2",
            ),
            (OPENSEARCH, "plugins.security.disabled: true\n", ""),
            (
                "/etc/elasticsearch/jvm.options.d/heap.options",
                "-Xms40g\n8-:-Xmx40g\n",
                "search_heap.1.above_limit 2",
            ),
            ("/etc/elasticsearch/jvm.options", "-Xmx31g\n", ""),
            (
                advanced,
                "[{rabbit, [\n {loopback_users, []}, % all\n]}].\n",
                "rabbitmq_terms.1.guest_from_everywhere 2",
            ),
            (
                advanced,
                "[{rabbit, [\n %% {loopback_users, []},\n]}].\n",
                "",
            ),
            (
                advanced,
                "[{rabbit, [{loopback_users, [<<\"guest\">>]}]}].\n",
                "",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn security_is_off_by_default_before_8() {
        let status = |version: &str| {
            format!("Package: elasticsearch\nStatus: install ok installed\nVersion: {version}\n")
        };
        let at = "elasticsearch_default.1.open 1";
        for (version, text, expected) in [
            ("7.17.28", "network.host: [_local_, _site_]\n", at),
            ("7.17.28", "network.host: _local_\n", ""),
            ("7.17.28", "http.host: _local_\nnetwork.host: _site_\n", ""),
            (
                "7.17.28",
                "network.host: _site_\nxpack.security.enabled: true\n",
                "",
            ),
            ("8.18.1", "network.host: _site_\n", ""),
        ] {
            let status = status(version);
            let files = [("/var/lib/dpkg/status", &*status), (ELASTICSEARCH, text)];
            assert_eq!(holds(&files).join(" "), expected, "{version} {text}");
        }
    }
}
