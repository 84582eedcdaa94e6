//! Collects whether Postfix accepts passwords in clear text, from each service that offers logins and its TLS settings
//! (postconf(5), smtpd_sasl_auth_enable, smtpd_tls_auth_only, smtpd_tls_security_level).

use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, expand_macros};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;

/// Notes each scope whose own lines set whether logins are offered, or set the TLS level.
pub(super) fn collect(g: &mut Gather<'_>, all: &Effective, commands: &BTreeMap<String, String>) {
    for (id, scope) in all.scopes() {
        let own = |key: &str| all.value(id, key).filter(|said| said.scope == id);
        let keys = [
            "smtpd_sasl_auth_enable",
            "smtpd_tls_auth_only",
            "smtpd_tls_security_level",
        ];
        let Some(line) = keys.into_iter().find_map(own) else {
            continue;
        };
        // A line that permits logins without TLS is the guilty one.
        let permits = own("smtpd_tls_auth_only");
        let permits = permits.filter(|_| effective_word(all, id, "smtpd_tls_auth_only") == "no");
        let line = permits.unwrap_or(line);
        if effective_word(all, id, "smtpd_sasl_auth_enable") != "yes" {
            continue;
        }
        // main.cf decides only if a service follows it.
        if id == ScopeId::ROOT && !is_followed(all, commands) {
            continue;
        }
        let name = match id {
            ScopeId::ROOT => "main.cf".to_owned(),
            _ => scope.head.join("/"),
        };
        let subject = format!("postfix.login.{name}");
        let place = FactPlace::from(&line.place);
        let cleartext = takes_cleartext(all, id);
        let offers = effective_word(all, id, "smtpd_tls_security_level");
        g.facts.known(
            format!("{subject}.cleartext"),
            cleartext,
            FactKind::Configured,
            place.clone(),
        );
        g.facts.known(
            format!("{subject}.level"),
            offers,
            FactKind::Configured,
            place,
        );
        g.about(["postfix.login", &name]);
    }
}

/// Returns whether at least one service accepts passwords in clear text. Also returns true if no smtpd service is
/// known.
fn is_followed(all: &Effective, commands: &BTreeMap<String, String>) -> bool {
    let mut services = all.scopes().filter(|(_, scope)| {
        let command = commands.get(&scope.head.join("/"));
        command.is_some_and(|command| command == "smtpd")
    });
    let mut known = false;
    services.any(|(id, _)| {
        known = true;
        effective_word(all, id, "smtpd_sasl_auth_enable") == "yes" && takes_cleartext(all, id)
    }) || !known
}

fn effective_word(all: &Effective, id: ScopeId, key: &str) -> String {
    let said = all
        .value(id, key)
        .map(|said| expand_macros(all, id, &said.text()));
    said.unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns whether a client may send its password before the connection is encrypted.
fn takes_cleartext(all: &Effective, id: ScopeId) -> bool {
    let is = |key: &str, value: &str| effective_word(all, id, key) == value;
    let always = is("smtpd_tls_wrappermode", "yes")
        || is("smtpd_enforce_tls", "yes")
        || matches!(
            effective_word(all, id, "smtpd_tls_security_level").as_str(),
            "encrypt"
        );
    // Without TLS, mechanisms that send the plain password are not offered.
    let options = effective_word(all, id, "smtpd_sasl_security_options");
    let never = options
        .split([',', ' ', '\t'])
        .any(|one| one == "noplaintext");
    !always && !never && !is("smtpd_tls_auth_only", "yes")
}

#[cfg(test)]
mod tests {
    use super::super::postfix;
    use crate::gather::Gather;
    use assay_host::Recorded;

    #[test]
    fn services_and_their_near_misses() {
        const SERVICE: &str = "submission inet n - y - - smtpd\n  -o smtpd_sasl_auth_enable=yes\n";
        for (main, options, key, expected) in [
            ("", "", "submission/inet", Some(true)),
            (
                "",
                "  -o smtpd_tls_security_level=encrypt\n",
                "submission/inet",
                Some(false),
            ),
            (
                "",
                "  -o smtpd_tls_wrappermode=yes\n",
                "submission/inet",
                Some(false),
            ),
            (
                "smtpd_tls_auth_only = yes\n",
                "",
                "submission/inet",
                Some(false),
            ),
            (
                "smtpd_sasl_security_options = noanonymous, noplaintext\n",
                "",
                "submission/inet",
                Some(false),
            ),
            (
                "smtpd_tls_security_level = may\n",
                "",
                "submission/inet",
                Some(true),
            ),
            ("smtpd_sasl_auth_enable = yes\n", "", "main.cf", Some(true)),
            ("smtpd_tls_security_level = may\n", "", "main.cf", None),
        ] {
            let host = Recorded::new()
                .file(postfix::MAIN, format!("{main}# end\n"))
                .file(postfix::MASTER, format!("{SERVICE}{options}"));
            let mut g = Gather::new(&host);
            postfix::collect(&mut g);
            let found = g.facts.get(&format!("postfix.login.{key}.cleartext"));
            assert_eq!(found, expected.map(Into::into).as_ref(), "{main}{options}");
        }
    }
}
