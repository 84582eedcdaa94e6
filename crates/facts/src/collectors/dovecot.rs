//! Dovecot 2.3: which password databases its file of authentication brings in, in their order. The
//! example configuration that distributions ship keeps one file for each.

use crate::gather::Gather;
use assay_model::FactKind;
use serde_json::Value;

pub(crate) const FILE: &str = "/etc/dovecot/conf.d/10-auth.conf";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(text) = g.read("dovecot", FILE) else {
        return;
    };
    let included: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter_map(|(number, line)| Some((number + 1, line.trim().strip_prefix("!include ")?)))
        .collect();
    let source = match included.first() {
        Some((line, _)) => format!("{FILE}:{line}"),
        None => FILE.to_owned(),
    };
    let names: Vec<Value> = included
        .into_iter()
        .map(|(_, name)| name.trim().into())
        .collect();
    g.facts
        .known("dovecot.auth_includes", names, FactKind::Configured, source);
}

/// Of a line the name of a file that it includes.
pub(crate) fn redact(line: &str) -> String {
    let file = line.trim().strip_prefix("!include ");
    let plain = |name: &str| assay_model::secrets::is_plain(&name.trim().replace('*', "-"));
    match file.is_some_and(plain) {
        true => line.to_owned(),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn as_debian_ships_it() {
        let text = include_str!("../../fixtures/dovecot-2.3.19.1-debian12-10-auth.conf");
        let facts = |text: &str| {
            let host = Recorded::new().file(FILE, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            g.facts
        };
        let found = facts(text);
        let includes = &found.map["dovecot.auth_includes"];
        assert_eq!(includes.source, format!("{FILE}:122"));
        let value = |facts: &assay_model::Facts| facts.get("dovecot.auth_includes").cloned();
        assert_eq!(
            value(&found),
            Some(serde_json::json!(["auth-system.conf.ext"]))
        );
        let sql = text.replace("#!include auth-sql", "!include auth-sql");
        let both = serde_json::json!(["auth-system.conf.ext", "auth-sql.conf.ext"]);
        assert_eq!(value(&facts(&sql)), Some(both));
    }
}
