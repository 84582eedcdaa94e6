//! Data servers that trust every client that can connect: Redis, memcached, MongoDB, Elasticsearch, etcd, Mosquitto,
//! and the kubelet of Kubernetes.

use super::cleaned_words::MOSQUITTO;
use super::lines::{Line, at_line, files, is_loopback, note, read};
use super::nested::{YamlValue, read_yaml};
use crate::gather::Gather;
use assay_model::FactPlace;

const REDIS: [(&str, &str); 2] = [
    ("redis", "/etc/redis/redis.conf"),
    ("valkey", "/etc/valkey/valkey.conf"),
];
const MEMCACHED: &str = "/etc/memcached.conf";
const MONGODB: &str = "/etc/mongod.conf";
const ELASTICSEARCH: &str = "/etc/elasticsearch/elasticsearch.yml";
const ETCD: &str = "/etc/default/etcd";
const KUBELET: &str = "/var/lib/kubelet/config.yaml";

pub(super) fn collect(g: &mut Gather<'_>) {
    for (name, path) in REDIS {
        note_redis(g, name, path);
    }
    note_memcached(g);
    note_mongodb(g);
    note_elasticsearch(g);
    note_etcd(g);
    note_mosquitto(g);
    note_kubelet(g);
}

fn note_redis(g: &mut Gather<'_>, name: &str, path: &str) {
    let lines = read(g, "redis", path, &['#']);
    let last = |key: &str| lines.iter().rfind(|line| line.first() == key);
    let Some(first) = lines.first() else { return };
    let words: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.words.iter().map(String::as_str).collect())
        .collect();
    let open = redis_is_open(&words);
    let deciding = last("protected-mode").or(last("bind"));
    let place = deciding.unwrap_or(first).place.clone();
    match last("include") {
        // An included file may set a password.
        Some(line) if open => g.facts.unknown(
            format!("redis.{name}.open"),
            "what is included may ask for a password",
            assay_model::FactKind::Configured,
            line.place.clone(),
        ),
        _ => note(g, ("redis", name), "open", open, &place),
    }
    g.about(["redis", name]);
}

/// Returns whether Redis or Valkey serves clients that do not authenticate. `lines` are the words of the configuration
/// lines in order.
///
/// Three conditions must be true: the server listens on TCP beyond this machine, protected mode is off, and the default
/// user needs no password. A default user without a line of its own is `on nopass` (redis.conf of 7.0; ACL LIST of
/// Redis).
pub(crate) fn redis_is_open(lines: &[Vec<&str>]) -> bool {
    let last = |key: &str| {
        let line = lines.iter().rfind(|line| line.first() == Some(&key))?;
        Some(&line[1..])
    };
    let beyond = last("bind").is_none_or(|words| !words.iter().all(|word| is_loopback(word)));
    let is_off = |port: Option<&[&str]>| port.is_some_and(|words| words == ["0"]);
    let has_tls = last("tls-port").is_some_and(|words| words != ["0"]);
    let listens = beyond && (!is_off(last("port")) || has_tls);
    let unprotected = last("protected-mode").is_some_and(|words| words.contains(&"no"));
    let password =
        last("requirepass").is_some_and(|words| words.iter().any(|word| !word.is_empty()));
    let default_user = lines
        .iter()
        .rfind(|line| line.starts_with(&["user", "default"]));
    let asks = default_user.is_some_and(|line| !admits_without_password(&line[2..]));
    listens && unprotected && !password && !asks && last("aclfile").is_none()
}

/// Returns whether the rules of an account let a client in without a password. The rules apply in order, and each line
/// begins with an account that is off (Redis, ACL rules).
fn admits_without_password(rules: &[&str]) -> bool {
    let (mut on, mut without) = (false, false);
    for rule in rules {
        match *rule {
            "on" => on = true,
            "off" => on = false,
            "nopass" => without = true,
            "reset" => (on, without) = (false, false),
            "resetpass" => without = false,
            rule if rule.starts_with(['>', '#']) => without = false,
            _ => {}
        }
    }
    on && without
}

/// Notes whether memcached is open to other machines. It listens on all addresses unless `-l` or a socket is set.
fn note_memcached(g: &mut Gather<'_>) {
    let mut lines = read(g, "memcached", MEMCACHED, &['#']);
    for line in &mut lines {
        split_short_option(line);
    }
    let Some(first) = lines.first() else { return };
    let with = |option: &str| lines.iter().filter(|line| line.first() == option).collect();
    let listens: Vec<&Line> = with("-l");
    let udp: Vec<&Line> = with("-u");
    let (sockets, asks): (Vec<&Line>, Vec<&Line>) =
        (of_option(&lines, "-s"), of_option(&lines, "-S"));
    let beyond = listens.iter().find(|line| !line.rest().all(is_loopback));
    let open = sockets.is_empty() && (listens.is_empty() || beyond.is_some());
    let place = beyond.map_or(first.place.clone(), |line| line.place.clone());
    note(
        g,
        ("memcached", "settings"),
        "open",
        open && asks.is_empty(),
        &place,
    );
    // `-u` is the user of the process; `-U` is the UDP port.
    let udp = udp.into_iter().find(|line| line.text.starts_with("-U"));
    if let Some(line) = udp {
        let on = line.rest().next().is_some_and(|port| port != "0");
        note(g, ("memcached", "settings"), "udp", on && open, &line.place);
    }
}

/// Separates a short option from its argument: `-l127.0.0.1`.
fn split_short_option(line: &mut Line) {
    let Some(first) = line.words.first_mut() else {
        return;
    };
    let attached = first.starts_with("-l") || first.starts_with("-u");
    if attached && first.len() > 2 {
        let argument = first.split_off(2);
        line.words.insert(1, argument);
    }
}

/// Returns the lines that begin with an option (case-sensitive).
fn of_option<'a>(lines: &'a [Line], option: &str) -> Vec<&'a Line> {
    let begins = |line: &&Line| line.text.split_whitespace().next() == Some(option);
    lines.iter().filter(begins).collect()
}

fn read_yaml_file(g: &mut Gather<'_>, key: &str, path: &str) -> Vec<YamlValue> {
    read_yaml(&g.read(key, path).unwrap_or_default())
}

fn find<'a>(all: &'a [YamlValue], path: &str) -> Option<&'a YamlValue> {
    all.iter().rfind(|one| one.path == path)
}

fn place_of_value(path: &str, value: &YamlValue) -> FactPlace {
    at_line(path, value.line)
}

fn note_mongodb(g: &mut Gather<'_>) {
    let all = read_yaml_file(g, "mongodb", MONGODB);
    let is = |path: &str, value: &str| find(&all, path).is_some_and(|one| one.value == value);
    let bound = find(&all, "net.bindip");
    let by_address = bound.filter(|one| {
        let mut addresses = one.value.split([',', ' ']).filter(|one| !one.is_empty());
        addresses.any(|address| !is_loopback(address) && !address.starts_with('/'))
    });
    let by_flag = find(&all, "net.bindipall")
        .filter(|one| ["true", "yes", "on"].contains(&one.value.as_str()));
    if let Some(listens) = by_address.or(by_flag).or(bound) {
        let beyond = by_address.is_some() || by_flag.is_some();
        // During a transition, the server also admits clients that do not sign in.
        let signs_in =
            is("security.authorization", "enabled") || find(&all, "security.keyfile").is_some();
        let asks = signs_in && !is("security.transitiontoauth", "true");
        let place = place_of_value(MONGODB, listens);
        note(g, ("mongodb", "settings"), "open", beyond && !asks, &place);
    }
    if let Some(journal) = find(&all, "storage.journal.enabled") {
        let (off, place) = (journal.value == "false", place_of_value(MONGODB, journal));
        note(g, ("mongodb", "settings"), "journal_off", off, &place);
    }
}

fn note_elasticsearch(g: &mut Gather<'_>) {
    let all = read_yaml_file(g, "elasticsearch", ELASTICSEARCH);
    let Some(security) = find(&all, "xpack.security.enabled") else {
        return;
    };
    let addresses = ["http.host", "network.host"].map(|path| find(&all, path));
    let address = addresses.into_iter().flatten().next();
    let beyond = address.is_some_and(|one| {
        let bare = one.value.trim_matches(['[', ']']);
        !is_loopback(bare) && bare != "_local_"
    });
    let open = beyond && security.value == "false";
    let place = place_of_value(ELASTICSEARCH, security);
    note(g, ("elasticsearch", "settings"), "open", open, &place);
}

/// Notes the addresses on which etcd serves clients without TLS.
fn note_etcd(g: &mut Gather<'_>) {
    let lines = read(g, "etcd", ETCD, &['#']);
    let mut of_urls = lines.iter().rev();
    let Some(line) = of_urls.find(|line| line.first() == "etcd_listen_client_urls") else {
        return;
    };
    let mut plain = line.rest().filter(|word| word.starts_with("http://"));
    let open = plain.any(|url| !is_loopback(url));
    note(g, ("etcd", "clients"), "open", open, &line.place);
}

/// Notes whether Mosquitto accepts anonymous clients of other machines: anonymous clients are allowed, and a listener
/// is reachable from other machines.
fn note_mosquitto(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/mosquitto/mosquitto.conf".to_owned()];
    all.extend(files(g, "mosquitto", MOSQUITTO, &[".conf"]));
    let mut lines = Vec::new();
    for path in all {
        lines.extend(read(g, "mosquitto", &path, &['#']));
    }
    let says = |key: &str, value: &str| {
        let says = |line: &&Line| line.first() == key && line.rest().any(|word| word == value);
        lines.iter().find(says)
    };
    let beyond = lines.iter().any(|line| {
        let address = line.words.get(2).map(String::as_str);
        let socket = line.text.split_whitespace().nth(1) == Some("0");
        line.first() == "listener" && !socket && address.is_none_or(|one| !is_loopback(one))
    });
    let guarded = lines.iter().any(|line| line.first() == "acl_file")
        || says("require_certificate", "true").is_some();
    if let Some(line) = lines.iter().rfind(|line| line.first() == "allow_anonymous") {
        let open = says("allow_anonymous", "true").is_some() && beyond && !guarded;
        note(g, ("mosquitto", "settings"), "open", open, &line.place);
    }
}

fn note_kubelet(g: &mut Gather<'_>) {
    let all = read_yaml_file(g, "kubelet", KUBELET);
    let of = |path: &str| find(&all, path);
    let anonymous = of("authentication.anonymous.enabled");
    if let Some(one) = anonymous.or(of("authorization.mode")) {
        let admits = anonymous.is_some_and(|one| one.value == "true");
        let allows = of("authorization.mode").is_some_and(|one| one.value == "alwaysallow");
        let place = place_of_value(KUBELET, one);
        note(g, ("kubelet", "settings"), "open", admits && allows, &place);
    }
    if let Some(port) = of("readonlyport") {
        let (on, place) = (port.value != "0", place_of_value(KUBELET, port));
        note(g, ("kubelet", "settings"), "read_only_port", on, &place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn get(path: &str, text: &str, fact: &str) -> Option<bool> {
        let host = Recorded::new().file(path, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts.get(fact).and_then(serde_json::Value::as_bool)
    }

    #[test]
    fn who_may_use_them() {
        let redis = "/etc/redis/redis.conf";
        for (path, text, fact, open) in [
            (
                redis,
                "bind 0.0.0.0\nprotected-mode no\n",
                "redis.redis.open",
                true,
            ),
            (
                redis,
                "bind 127.0.0.1 -::1\nprotected-mode no\n",
                "redis.redis.open",
                false,
            ),
            (
                redis,
                "bind * -::*\nprotected-mode yes\n",
                "redis.redis.open",
                false,
            ),
            (
                redis,
                "protected-mode no\nrequirepass x\n",
                "redis.redis.open",
                false,
            ),
            (
                redis,
                "protected-mode no\nrequirepass \"\"\n",
                "redis.redis.open",
                true,
            ),
            (
                redis,
                "bind * -::*\nprotected-mode no\nport 0\nunixsocket /run/r.sock\n",
                "redis.redis.open",
                false,
            ),
            (
                redis,
                "protected-mode no\nport 0\ntls-port 6379\n",
                "redis.redis.open",
                true,
            ),
            (
                redis,
                "protected-mode no\nuser default on nopass ~* &* +@all\n",
                "redis.redis.open",
                true,
            ),
            (
                redis,
                "protected-mode no\nuser default off\nuser worker on >secret ~* +@all\n",
                "redis.redis.open",
                false,
            ),
            (
                redis,
                "protected-mode no\nuser default off nopass ~* +@all\n",
                "redis.redis.open",
                false,
            ),
            (
                redis,
                "protected-mode no\nuser worker on >secret ~* +@all\n",
                "redis.redis.open",
                true,
            ),
            (
                MEMCACHED,
                "-m 64\n-u memcache\n-l 0.0.0.0\n",
                "memcached.settings.open",
                true,
            ),
            (
                MEMCACHED,
                "-m 64\n-l 127.0.0.1\n-l ::1\n",
                "memcached.settings.open",
                false,
            ),
            (MEMCACHED, "-l127.0.0.1\n", "memcached.settings.open", false),
            (MEMCACHED, "-l10.0.0.5\n", "memcached.settings.open", true),
            (
                MEMCACHED,
                "-s /run/m.sock\n",
                "memcached.settings.open",
                false,
            ),
            (
                MEMCACHED,
                "-l 10.0.0.1\n-S\n",
                "memcached.settings.open",
                false,
            ),
            (
                MEMCACHED,
                "-l 10.0.0.1\n-U 11211\n",
                "memcached.settings.udp",
                true,
            ),
            (
                MONGODB,
                "net:\n  bindIp: 0.0.0.0\n",
                "mongodb.settings.open",
                true,
            ),
            (
                MONGODB,
                "net:\n  bindIp: 127.0.0.1\n",
                "mongodb.settings.open",
                false,
            ),
            (
                MONGODB,
                "net:\n  bindIpAll: true\nsecurity:\n  authorization: enabled\n",
                "mongodb.settings.open",
                false,
            ),
            (
                ETCD,
                "ETCD_LISTEN_CLIENT_URLS=\"http://0.0.0.0:2379\"\n",
                "etcd.clients.open",
                true,
            ),
            (
                ETCD,
                "ETCD_LISTEN_CLIENT_URLS=\"http://127.0.0.1:2379,https://10.0.0.1:2379\"\n",
                "etcd.clients.open",
                false,
            ),
            (
                "/etc/mosquitto/mosquitto.conf",
                "listener 1883\nallow_anonymous true\n",
                "mosquitto.settings.open",
                true,
            ),
            (
                "/etc/mosquitto/mosquitto.conf",
                "listener 1883 127.0.0.1\nallow_anonymous true\n",
                "mosquitto.settings.open",
                false,
            ),
            (
                KUBELET,
                "readOnlyPort: 10255\n",
                "kubelet.settings.read_only_port",
                true,
            ),
        ] {
            assert_eq!(get(path, text, fact), Some(open), "{text}");
        }
    }
}
