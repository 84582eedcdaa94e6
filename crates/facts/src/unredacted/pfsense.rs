//! Collects OpenVPN tunnels from the saved configuration of a pfSense firewall (config.xml) in a tree of files. The
//! facts are the same as for OpenVPN's own files, plus whether a firewall rule passes all traffic of the tunnels. The
//! settings are mapped as in `openvpn_reconfigure` (src/etc/inc/openvpn.inc of pfSense 2.6). Names, addresses and keys
//! are ignored.

use crate::collectors::services::openvpn;
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use roxmltree::{Document, Node};

/// Path of the configuration on a running firewall, and in a backup.
const FILES: [&str; 2] = ["/cf/conf/config.xml", "/conf/config.xml"];

pub(super) fn collect(g: &mut Gather<'_>) {
    for path in FILES {
        // On a firewall both paths are the same file.
        if let Some(text) = g.read("pfsense", path) {
            match Document::parse(&text) {
                Ok(document) if document.root_element().has_tag_name("pfsense") => {
                    note_firewall(g, path, &document);
                }
                Ok(_) => {}
                Err(error) => {
                    let place = FactPlace::from(format!("{path}:{}", error.pos().row));
                    g.facts
                        .unknown("pfsense", "not XML", FactKind::Configured, place);
                }
            }
            return;
        }
    }
}

fn note_firewall(g: &mut Gather<'_>, path: &str, document: &Document<'_>) {
    let place = |node: Node<'_, '_>| {
        let row = document.text_pos_at(node.range().start).row;
        FactPlace::from(format!("{path}:{row}"))
    };
    let root = document.root_element();
    let mut tunnels = 0;
    for (tag, role) in [("openvpn-server", "server"), ("openvpn-client", "client")] {
        let all = children(root, "openvpn").flat_map(|all| children(all, tag));
        for (number, tunnel) in all.filter(|one| !has(*one, "disable")).enumerate() {
            tunnels += 1;
            let which = format!("pfsense-{role}-{number}");
            let mut said = |key: &str, value: String, node: Node<'_, '_>| {
                let key = format!("openvpn.{which}.{key}");
                g.facts
                    .known(key, value.to_uppercase(), FactKind::Configured, place(node));
            };
            let shared_key =
                value(tunnel, "mode").is_some_and(|(mode, _)| mode == "p2p_shared_key");
            let fixed = value(tunnel, "ncp_enable").is_some_and(|(word, _)| word == "disabled");
            // Cipher for peers that do not negotiate; the field was named crypto before 2.5.
            let mut ciphers: Vec<openvpn::PlacedSetting> = Vec::new();
            for (tag, option) in [
                ("crypto", "cipher"),
                ("data_ciphers_fallback", "data-ciphers-fallback"),
            ] {
                let cipher = value(tunnel, tag).filter(|(cipher, _)| is_word(cipher));
                if let Some((cipher, node)) = cipher {
                    ciphers.push((option, cipher.to_uppercase(), place(node)));
                    said("cipher", cipher, node);
                }
            }
            let list = value(tunnel, "data_ciphers").or(value(tunnel, "ncp-ciphers"));
            if let Some((list, node)) = list.filter(|_| !shared_key && !fixed)
                && list.split(',').all(is_word)
            {
                let list = list.replace(',', ":");
                ciphers.push(("data-ciphers", list.to_uppercase(), place(node)));
                said("data-ciphers", list, node);
            }
            if let Some((digest, node)) = value(tunnel, "digest").filter(|(word, _)| is_word(word))
            {
                said("auth", digest, node);
            }
            let refused = value(tunnel, "allow_compression").is_some_and(|(word, _)| word == "no");
            let compression = value(tunnel, "compression").filter(|_| !refused);
            match compression
                .as_ref()
                .map(|(word, node)| (word.as_str(), *node))
            {
                Some((word @ ("lz4" | "lz4-v2" | "lzo" | "stub" | "stub-v2"), node)) => {
                    said("compress", word.to_owned(), node);
                }
                Some((word @ ("adaptive" | "yes" | "no"), node)) => {
                    said("comp-lzo", word.to_owned(), node);
                }
                _ => {}
            }
            // Releases that write `crypto` have OpenVPN 2.4, or use it with a shared key only.
            let mode = match shared_key {
                true => openvpn::Mode::Static,
                false => openvpn::Mode::Tls,
            };
            if shared_key {
                ciphers
                    .iter_mut()
                    .for_each(|(option, ..)| *option = "cipher");
            }
            let subject = format!("openvpn.{which}");
            openvpn::note_ciphers(g, &subject, &ciphers, mode, Some((2, 4, 0)));
            g.about(["openvpn", &which]);
        }
    }
    if tunnels == 0 {
        return;
    }
    let rules = children(root, "filter").flat_map(|all| children(all, "rule"));
    let all: Vec<Node<'_, '_>> = rules.filter(|rule| passes_all(*rule)).collect();
    let at = all
        .first()
        .map_or(FactPlace::from(path), |rule| place(*rule));
    g.facts.known(
        "pfsense.openvpn_pass_any",
        all.len(),
        FactKind::Configured,
        at,
    );
}

/// Returns whether a rule for the OpenVPN interface passes all traffic. pfSense's wizard creates such a rule.
fn passes_all(rule: Node<'_, '_>) -> bool {
    let is = |tag, word: &str| value(rule, tag).is_some_and(|(found, _)| found == word);
    let any = |tag| children(rule, tag).any(|end| has(end, "any"));
    is("type", "pass")
        && is("interface", "openvpn")
        && !has(rule, "disabled")
        && value(rule, "protocol").is_none()
        && any("source")
        && any("destination")
}

fn children<'a, 'b: 'a>(
    node: Node<'a, 'b>,
    tag: &'static str,
) -> impl Iterator<Item = Node<'a, 'b>> {
    node.children().filter(move |child| child.has_tag_name(tag))
}

fn has(node: Node<'_, '_>, tag: &'static str) -> bool {
    children(node, tag).next().is_some()
}

/// Returns the text of an element and the element, if it exists.
fn value<'a, 'b: 'a>(node: Node<'a, 'b>, tag: &'static str) -> Option<(String, Node<'a, 'b>)> {
    let child = children(node, tag).next()?;
    let text = child.text().unwrap_or_default().trim();
    (!text.is_empty()).then(|| (text.to_owned(), child))
}

/// Returns whether a text has only characters that occur in names of ciphers and digests.
fn is_word(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(known)
}
