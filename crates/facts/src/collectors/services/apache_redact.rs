//! Redacts Apache's files for a capture. Keeps section tags without their arguments, includes, module names, and the
//! TLS settings that a check needs. A statement that continues over several lines is joined into its first line.

use super::apache_reading::logical_lines;
use super::certificates::of_apache;
use crate::harmless::{is_path, is_pattern};

const LEFT_OUT: &str = "left-out";

/// Redacts one file of Apache. Line numbers do not change.
pub(crate) fn redact(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = vec![String::new(); text.split('\n').count()];
    for (number, line) in logical_lines(&text) {
        lines[number - 1] = clean_statement(&line);
    }
    lines.join("\n").into_bytes()
}

fn clean_statement(line: &str) -> String {
    let line = line.trim();
    if let Some(name) = line.strip_prefix("</") {
        let name = name.trim_end_matches('>').trim();
        return match is_section(name) {
            true => format!("</{name}>"),
            false => "</Section>".to_owned(),
        };
    }
    if let Some(head) = line.strip_prefix('<') {
        return clean_section(head.trim_end_matches('>'));
    }
    if let Some((_, path)) = of_apache(line) {
        let name = line.split_whitespace().next().unwrap_or_default();
        return format!("{name} {path}");
    }
    let (name, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim().trim_matches('"');
    let first = rest.split_whitespace().next().unwrap_or_default();
    let kept = match name.to_ascii_lowercase().as_str() {
        "sslprotocol" | "sslciphersuite" if is_of_tls(rest) => {
            rest.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        "sslengine" if ["on", "off", "optional"].contains(&first.to_ascii_lowercase().as_str()) => {
            first.to_owned()
        }
        "include" | "includeoptional" if is_pattern(rest) => rest.to_owned(),
        // The fact that a file is included stays known.
        "include" | "includeoptional" => "${withheld}".to_owned(),
        "serverroot" if is_path(rest) => rest.to_owned(),
        "loadmodule" if is_name(first) => first.to_owned(),
        "define" | "undefine" if is_name(first) => first.to_owned(),
        _ => return String::new(),
    };
    format!("{name} {kept}")
}

fn clean_section(head: &str) -> String {
    let mut words = head.split_whitespace();
    let (name, about) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    if !is_section(name) {
        return format!("<Section {LEFT_OUT}>");
    }
    if name.eq_ignore_ascii_case("ifversion") {
        let rest: Vec<&str> = head.split_whitespace().skip(1).collect();
        let known = |byte: u8| byte.is_ascii_digit() || b"!<>=.".contains(&byte);
        let of_version = rest.len() <= 2 && rest.iter().all(|word| word.bytes().all(known));
        let rest = if of_version {
            rest.join(" ")
        } else {
            LEFT_OUT.to_owned()
        };
        return format!("<{name} {rest}>");
    }
    let decides = name.eq_ignore_ascii_case("ifmodule") || name.eq_ignore_ascii_case("ifdefine");
    match decides && is_name(about.trim_start_matches('!')) {
        true => format!("<{name} {about}>"),
        false => format!("<{name} {LEFT_OUT}>"),
    }
}

fn is_section(name: &str) -> bool {
    (1..=24).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Returns whether a word is the name of a module, of a module's file, or of a definition.
fn is_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
    (1..=40).contains(&name.len()) && name.bytes().all(known)
}

/// Returns whether a text has 1 to 512 bytes and contains only characters of protocol and cipher lists.
pub(super) fn is_of_tls(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b":!+@=_., -".contains(&byte);
    (1..=512).contains(&text.len()) && text.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_means_the_same() {
        let text = "ServerRoot \"/etc/apache2\"\nInclude x.conf \\\n  \nSSLProtocol \\\n  +SSLv3 \\\n  +TLSv1.2\n\
                    <VirtualHost 10.0.0.1:443>\n ServerName secret.example\n sslengine ON\n</VirtualHost>\n\
                    <IfModule !mod_ssl.c>\n<Directory /srv/secret>\n</Directory>\nLoadModule ssl_module /usr/lib/x.so\n\
                    Define secret=hunter2\nSSLCertificateFile \"/etc/x.pem\"\nHeader set X hunter2\n";
        let kept = String::from_utf8(redact(text.as_bytes())).unwrap();
        assert_eq!(kept.split('\n').count(), text.split('\n').count());
        assert_eq!(redact(kept.as_bytes()), kept.as_bytes());
        for word in ["secret", "10.0.0.1", "hunter2", ".so"] {
            assert!(!kept.contains(word), "{word}: {kept}");
        }
        let lines: Vec<&str> = kept
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(
            lines,
            [
                "ServerRoot /etc/apache2",
                "Include x.conf",
                "SSLProtocol +SSLv3 +TLSv1.2",
                "<VirtualHost left-out>",
                "sslengine ON",
                "</VirtualHost>",
                "<IfModule !mod_ssl.c>",
                "<Directory left-out>",
                "</Directory>",
                "LoadModule ssl_module",
                "SSLCertificateFile /etc/x.pem",
            ]
        );
    }
}
