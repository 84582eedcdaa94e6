//! Finds iSCSI targets that let any machine write: LIO (saveconfig.json of targetcli) and tgt (targets.conf(5)).

use super::super::lines_of_files::{files, is_loopback, read};
use super::Misuses;
use crate::collectors::daemons::lines::at_line;
use crate::gather::Gather;
use assay_model::FactPlace;
use serde_json::Value;

const LIO: [&str; 2] = [
    "/etc/rtslib-fb-target/saveconfig.json",
    "/etc/target/saveconfig.json",
];
const TGT: &str = "/etc/tgt/targets.conf";
const TGT_DIR: &str = "/etc/tgt/conf.d";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for path in LIO {
        note_lio(g, path, &mut found);
    }
    note_tgt(g, &mut found);
    found.note(g, "iscsi_target");
}

fn note_lio(g: &mut Gather<'_>, path: &str, found: &mut Misuses) {
    let Some(text) = g.read("iscsi_target", path) else {
        return;
    };
    let Ok(said) = serde_json::from_str::<Value>(&text) else {
        return;
    };
    let of = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("\"generate_node_acls\""))
        .map(|(at, _)| at + 1);
    for target in of(&said, "targets")
        .iter()
        .filter(|one| one["fabric"] == "iscsi")
    {
        for group in of(target, "tpgs") {
            let attributes = &group["attributes"];
            if attributes["generate_node_acls"].is_null() {
                continue;
            }
            let line = lines.next().unwrap_or(1);
            let on = |key: &str| match &attributes[key] {
                Value::Number(number) => number.as_i64() != Some(0),
                Value::String(text) => text != "0",
                Value::Bool(on) => *on,
                // The kernel's default of the other two is on.
                _ => true,
            };
            let portals = of(&group, "portals");
            let local = !portals.is_empty()
                && portals
                    .iter()
                    .all(|portal| portal["ip_address"].as_str().is_some_and(is_loopback));
            let open = on("generate_node_acls")
                && !on("authentication")
                && !on("demo_mode_write_protect")
                && group["enable"] != false
                && !local;
            found.add("open", open, at_line(path, line));
        }
    }
}

fn note_tgt(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut all = vec![TGT.to_owned()];
    all.extend(files(g, "iscsi_target", TGT_DIR, ".conf"));
    for path in all {
        let (mut target, mut bounded): (Option<FactPlace>, bool) = (None, false);
        for line in read(g, "iscsi_target", &path) {
            let text = line.text.trim();
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                ["<target", ..] => (target, bounded) = (Some(line.place), false),
                ["</target>"] => {
                    if let Some(place) = target.take() {
                        found.add("open", !bounded, place);
                    }
                }
                ["initiator-address", who, ..] => bounded |= who != "ALL",
                ["initiator-name" | "incominguser", ..] => bounded = true,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    fn lio(attributes: &str, address: &str) -> String {
        format!(
            "{{\"targets\": [{{\"fabric\": \"iscsi\", \"tpgs\": [{{\"attributes\": {{{attributes}}}, \
             \"portals\": [{{\"ip_address\": \"{address}\"}}]}}]}}]}}"
        )
    }

    #[test]
    fn targets_and_their_near_misses() {
        let open =
            "\"authentication\": 0, \"generate_node_acls\": 1, \"demo_mode_write_protect\": 0";
        let password =
            "\"authentication\": 1, \"generate_node_acls\": 1, \"demo_mode_write_protect\": 0";
        let listed =
            "\"authentication\": 0, \"generate_node_acls\": 0, \"demo_mode_write_protect\": 0";
        for (attributes, address, expected) in [
            (open, "0.0.0.0", "open=true"),
            (open, "127.0.0.1", "open=false"),
            (password, "0.0.0.0", "open=false"),
            (listed, "0.0.0.0", "open=false"),
        ] {
            let text = lio(attributes, address);
            assert_eq!(
                found(&[(LIO[0], &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        for (text, expected) in [
            (
                "<target a>\n  backing-store /dev/a\n</target>\n",
                "open=true",
            ),
            (
                "<target a>\n  initiator-address ALL\n</target>\n",
                "open=true",
            ),
            (
                "<target a>\n  initiator-address 10.0.0.7\n</target>\n",
                "open=false",
            ),
            (
                "<target a>\n  incominguser bob secret\n</target>\n",
                "open=false",
            ),
            ("# <target a>\n", ""),
        ] {
            assert_eq!(found(&[(TGT, text)], collect).join(" "), expected, "{text}");
        }
    }
}
