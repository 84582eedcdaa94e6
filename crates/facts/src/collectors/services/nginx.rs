//! nginx: what each block says of TLS and of headers.

use super::scopes::{Take, names, own};
use crate::collectors::nginx::FILE;
use crate::gather::Gather;
use crate::harmless::is_path;
use assay_conf::effective::Program;

/// What is asked of a block.
const KEYS: [(&str, Take); 6] = [
    ("ssl_protocols", Take::List),
    ("ssl_ciphers", Take::List),
    ("add_header", Take::Names),
    ("ssl", Take::Word),
    ("autoindex", Take::Word),
    ("spdy_headers_comp", Take::Word),
];

/// Versions of TLS as nginx names them.
const PROTOCOLS: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// Headers that a check knows; the names of others may be anybody's.
const HEADERS: [&str; 4] = [
    "Public-Key-Pins",
    "Public-Key-Pins-Report-Only",
    "Strict-Transport-Security",
    "Expect-CT",
];

/// Words of OpenSSL's cipher strings that are not in capital letters.
pub(crate) const ALIASES: [&str; 10] = [
    "aNULL", "eNULL", "kRSA", "kEDH", "kECDH", "kECDHE", "kDHE", "aRSA", "aECDSA", "SSLv3",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(all) = g.configuration("nginx", Program::Nginx, FILE) else {
        return;
    };
    for (id, name) in names(&all) {
        own(g, &all, id, &["nginx.scope", &name], &KEYS);
    }
}

/// What a capture keeps of a value; none of a directive that no check asks for.
pub(crate) fn kept(name: &str, value: &str) -> Option<String> {
    let words = || {
        value
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
    };
    match name {
        "ssl_protocols" => {
            let known: Vec<&str> = words().filter(|word| PROTOCOLS.contains(word)).collect();
            (!known.is_empty()).then(|| known.join(" "))
        }
        "ssl_ciphers" => {
            let list = words().next().unwrap_or_default();
            let known: Vec<&str> = list.split(':').filter(|word| cipher(word)).collect();
            (!known.is_empty()).then(|| known.join(":"))
        }
        "add_header" => {
            let name = words().next()?;
            let known = HEADERS
                .iter()
                .find(|known| known.eq_ignore_ascii_case(name))?;
            Some(format!("{known} withheld"))
        }
        "ssl_certificate" | "ssl_certificate_key" => {
            let path = words().next().unwrap_or_default();
            let whole = format!("/{}", path.trim_start_matches('/'));
            is_path(&whole).then(|| path.to_owned())
        }
        "ssl" | "autoindex" => matches!(value, "on" | "off").then(|| value.to_owned()),
        _ => None,
    }
}

fn cipher(word: &str) -> bool {
    let name = word.trim_start_matches(['!', '-', '+']);
    let capital =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_+@=".contains(&byte);
    let known = ALIASES.contains(&name);
    !name.is_empty() && name.len() <= 64 && (known || name.bytes().all(capital))
}
