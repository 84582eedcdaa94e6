//! Collects the password databases of Dovecot 2.3, in the order in which the authentication file includes them. The
//! example configuration of distributions has one file per database.

use crate::gather::Gather;
use assay_model::change::ConfigLanguage;
use assay_model::{FactKind, FactPlace};
use serde_json::Value;

pub(crate) const FILE: &str = "/etc/dovecot/conf.d/10-auth.conf";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(text) = g.read("dovecot", FILE) else {
        return;
    };
    let included = match assay_config::find_includes(ConfigLanguage::Dovecot, text.as_bytes()) {
        Ok(included) => included,
        Err(error) => {
            let key = "dovecot.auth_includes";
            g.facts
                .unknown(key, error.to_string(), FactKind::Configured, FILE);
            return;
        }
    };
    let source = match included.first() {
        Some(include) => format!("{FILE}:{}", include.line),
        None => FILE.to_owned(),
    };
    let names: Vec<Value> = included
        .into_iter()
        .map(|include| include.pattern.into())
        .collect();
    g.facts.known(
        "dovecot.auth_includes",
        names,
        FactKind::Configured,
        FactPlace::from_text(&source),
    );
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
        assert_eq!(includes.place.to_string(), format!("{FILE}:122"));
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
