//! Running values of the kernel: a fix sets them with the line in the file. The values of a network namespace are its
//! own; those of the whole machine are not changed by a test.

use super::bed::Bed;
use super::common::{ended, sent};
use super::groups::{OWN_SYSCTL, is_long_wanted};
use serde_json::Value;

/// Settings of a network namespace: rule, name, faulty value.
const OF_NETWORK: [(&str, &str, &str); 10] = [
    ("sysctl-tcp-syncookies-off", "tcp_syncookies", "0"),
    ("sysctl-tcp-timestamps-off", "tcp_timestamps", "0"),
    (
        "sysctl-router-takes-redirects",
        "conf.all.accept_redirects",
        "1",
    ),
    ("sysctl-abort-on-overflow", "tcp_abort_on_overflow", "1"),
    ("sysctl-echo-broadcasts", "icmp_echo_ignore_broadcasts", "0"),
    ("sysctl-no-pmtu-disc", "ip_no_pmtu_disc", "1"),
    ("sysctl-rcvbuf-fixed", "tcp_moderate_rcvbuf", "0"),
    ("sysctl-tcp-sack-off", "tcp_sack", "0"),
    ("sysctl-tw-buckets-few", "tcp_max_tw_buckets", "1000"),
    ("sysctl-window-scaling-off", "tcp_window_scaling", "0"),
];

/// Fixes and undoes each rule of the arguments after the program, with the value before, between and after.
const FIX_AND_UNDO: &str = r#"set -e
program=$1; shift
sysctl --quiet --load /etc/sysctl.d/99-zz-own.conf
for pair; do
    value=$(sysctl -n "net.ipv4.${pair#*:}")
    "$program" check --fix "${pair%%:*}" --yes --json
    value="$value $(sysctl -n "net.ipv4.${pair#*:}")"
    "$program" check --undo --yes > /dev/null
    echo "$value $(sysctl -n "net.ipv4.${pair#*:}")" >&2
done
"#;

/// A running value of the kernel is set with the line in the file, and reverted with it. The values of a network
/// namespace are its own.
#[test]
fn running_values_follow_their_file() {
    let Some(bed) = Bed::new() else { return };
    let wanted = match is_long_wanted() {
        true => &OF_NETWORK[..],
        false => &OF_NETWORK[..1],
    };
    let lines = wanted
        .iter()
        .map(|(_, name, value)| format!("net.ipv4.{name} = {value}\n"));
    let lines: String = lines.collect();
    let planted = format!("# own\nnet.ipv4.ip_forward = 1\nnet.ipv4.tcp_tw_reuse = 1\n{lines}");
    bed.edit(OWN_SYSCTL, |_| planted);
    let before = bed.look(OWN_SYSCTL);
    let pairs = wanted
        .iter()
        .map(|(rule, name, _)| format!("{rule}:{name}"));
    let pairs: Vec<String> = pairs.collect();
    let mut argv = vec!["sh", "-c", FIX_AND_UNDO, "sh", sent()];
    argv.extend(pairs.iter().map(String::as_str));
    let mut command = bed.command_in(&["-m", "-n"], &argv);
    command.env("BED_KERNEL", "own");
    let ran = ended(command);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&ran.stdout)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let values: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(values.len(), wanted.len(), "{}", ran.stderr);
    for ((rule, _, faulty), (document, values)) in wanted.iter().zip(documents.iter().zip(values)) {
        assert_eq!(document["files"].as_array().unwrap().len(), 2, "{document}");
        let values: Vec<&str> = values.split(' ').collect();
        let [planted, fixed, undone] = values[..] else {
            panic!("{rule}: {values:?}")
        };
        assert_eq!((planted, undone), (*faulty, *faulty), "{rule}");
        assert_ne!(fixed, *faulty, "{rule}");
    }
    assert_eq!(bed.look(OWN_SYSCTL), before);
}

/// A running value that no file sets is lost at the next boot: the fix also creates a file, and undo removes it.
#[test]
fn a_running_value_without_a_file_gets_one() {
    const SCRIPT: &str = r#"set -e
sysctl --quiet --write net.ipv4.tcp_syncookies=0
"$1" check --fix sysctl-tcp-syncookies-off --yes --json
file=/etc/sysctl.d/99-assay-net.ipv4.tcp_syncookies.conf
sysctl --quiet --write net.ipv4.tcp_syncookies=0
sysctl --quiet --load "$file"
sysctl -n net.ipv4.tcp_syncookies >&2
sysctl --quiet --write net.ipv4.tcp_syncookies=1
"$1" check --undo --yes > /dev/null
[ ! -e "$file" ]
sysctl -n net.ipv4.tcp_syncookies >&2
"#;
    let Some(bed) = Bed::new() else { return };
    let argv = ["sh", "-c", SCRIPT, "sh", sent()];
    let mut command = bed.command_in(&["-m", "-n"], &argv);
    command.env("BED_KERNEL", "own");
    let ran = ended(command);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let files = document["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{document}");
    assert_eq!(files[0]["new"], true, "{document}");
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), ["1", "0"]);
}
