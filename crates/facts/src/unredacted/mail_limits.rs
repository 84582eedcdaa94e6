//! Finds limits of Postfix that contradict each other (postconf(5), message_size_limit).

use super::lines_of_files::note;
use crate::collectors::services::postfix::MAIN;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, ScopeId, Setting, read_effective};
use assay_model::FactPlace;
use std::path::Path;

/// Default maximum size of a message in bytes in Postfix 3.7 (`MESSAGE`), and of a mailbox (`MAILBOX`).
const MESSAGE: u64 = 10_240_000;
const MAILBOX: u64 = 51_200_000;
/// Mailbox limits, as (limit, transport setting that selects the delivery program, delivery program to which the limit
/// applies).
const MAILBOXES: [(&str, &str, &str); 2] = [
    ("mailbox_size_limit", "local_transport", "local"),
    ("virtual_mailbox_limit", "virtual_transport", "virtual"),
];

/// Notes mailbox limits below the maximum message size. With such a limit, the delivery program refuses to start.
pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Postfix, Path::new(MAIN), &OfHost(g.host)) else {
        return;
    };
    let value = |key: &str| {
        let said = all.value(ScopeId::ROOT, key)?;
        Some((
            said.text().trim().parse::<u64>().ok()?,
            FactPlace::from(&said.place),
        ))
    };
    let message = value("message_size_limit");
    for (name, transport, program) in MAILBOXES {
        let other = |said: &Setting| !said.text().trim().starts_with(program);
        if all.value(ScopeId::ROOT, transport).is_some_and(other) {
            continue;
        }
        // Without local domains local(8) delivers nothing.
        let nowhere = |said: &Setting| said.text().trim().is_empty();
        if name == "mailbox_size_limit"
            && all
                .value(ScopeId::ROOT, "mydestination")
                .is_some_and(nowhere)
        {
            continue;
        }
        let mailbox = value(name);
        let Some((_, place)) = mailbox.as_ref().or(message.as_ref()) else {
            continue;
        };
        let most = message.as_ref().map_or(MESSAGE, |(most, _)| *most);
        let room = mailbox.as_ref().map_or(MAILBOX, |(room, _)| *room);
        // 0 is no limit, for either.
        let small = room > 0 && (most == 0 || most > room);
        // Virtual mailboxes are asked for where somebody has some.
        if name.starts_with("virtual") && all.value(ScopeId::ROOT, "virtual_mailbox_base").is_none()
        {
            continue;
        }
        note(
            g,
            "mail_limit",
            name,
            place,
            &[("small", small.into()), ("setting", name.into())],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn limits_and_their_near_misses() {
        for (text, small) in [
            (
                "message_size_limit = 104857600\nmailbox_size_limit = 51200000\n",
                Some(true),
            ),
            ("message_size_limit = 104857600\n", Some(true)),
            (
                "message_size_limit = 104857600\nmailbox_size_limit = 0\n",
                Some(false),
            ),
            ("mailbox_size_limit = 20480000\n", Some(false)),
            (
                "message_size_limit = 104857600\nlocal_transport = local:$myhostname\n",
                Some(true),
            ),
            (
                "message_size_limit = 104857600\nlocal_transport = lmtp:unix:private/dovecot-lmtp\n",
                None,
            ),
            ("myhostname = a\n", None),
            ("message_size_limit = 104857600\nmydestination =\n", None),
        ] {
            let host = Recorded::new().file(MAIN, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let found = g.facts.get("mail_limit.mailbox_size_limit.small");
            assert_eq!(found, small.map(serde_json::Value::from).as_ref(), "{text}");
        }
    }
}
