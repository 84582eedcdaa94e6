//! Formats the results of a probe for a terminal.

use assay_probe::heartbleed::Heartbeats;
use assay_probe::http::{Cookie, SameSite};
use assay_probe::tls::{Chain, Renegotiation, SuiteOrder, VersionReport, VersionState};
use assay_probe::{Remark, Severity, Where};
use assay_probe::{dtls, http, smb, ssh, tls};
use assay_render::Style;
use assay_render::text::escape_line;
use std::fmt::Write as _;

/// Column in which the values begin.
const LABEL: usize = 16;

pub fn tls(report: &tls::Report, style: Style) -> String {
    let mut out = String::new();
    let what = match report.starttls {
        Some(protocol) => format!("TLS after {protocol}"),
        None => "TLS".to_owned(),
    };
    head(
        &mut out,
        &what,
        &report.place,
        Some(report.connections),
        style,
    );
    for version in &report.versions {
        row(
            &mut out,
            style,
            version.version.name(),
            &version_text(version),
        );
    }
    for chain in &report.chains {
        row(&mut out, style, "certificate", &chain_text(chain));
    }
    row(
        &mut out,
        style,
        "Heartbleed",
        &heartbeats(&report.heartbeats),
    );
    row(
        &mut out,
        style,
        "renegotiation",
        &renegotiation(&report.renegotiation),
    );
    end(&mut out, &report.remarks, &report.unknown, style);
    out
}

fn renegotiation(found: &Renegotiation) -> String {
    match found {
        Renegotiation::NotPossible => "not possible: TLS 1.3 has none".to_owned(),
        Renegotiation::Accepted => "clients may renegotiate".to_owned(),
        Renegotiation::Refused { how } => format!("refused to clients ({})", escape_line(how)),
        Renegotiation::Unknown { .. } => "unknown".to_owned(),
    }
}

fn version_text(version: &VersionReport) -> String {
    match version.state {
        VersionState::Refused => "not spoken".to_owned(),
        VersionState::Unknown => "unknown".to_owned(),
        VersionState::Offered => {
            let mut text = match version.suites.len() {
                1 => "1 suite".to_owned(),
                count => format!("{count} suites"),
            };
            text.push_str(match version.order {
                Some(SuiteOrder::Server) => ", the server chooses: ",
                Some(SuiteOrder::Client) => ", the client chooses: ",
                None => ": ",
            });
            text.push_str(&version.suites.join(" "));
            match &version.groups {
                Some(groups) if groups.is_empty() => {}
                Some(groups) => {
                    let _ = write!(text, "; groups {}", groups.join(" "));
                }
                None => text.push_str("; groups unknown"),
            }
            if let Some(bits) = version.prime_bits {
                let _ = write!(text, "; prime of {bits} bits");
            }
            text
        }
    }
}

fn chain_text(chain: &Chain) -> String {
    let Some(leaf) = chain.certificates.first() else {
        return "cannot be read".to_owned();
    };
    let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
    let names: Vec<String> = leaf
        .names
        .iter()
        .take(6)
        .map(|name| escape_line(name))
        .collect();
    let staple = match (chain.stapled, leaf.must_staple) {
        (Some(true), _) => "; OCSP response sent",
        (Some(false), true) => "; must-staple, and no OCSP response",
        (_, true) => "; must-staple",
        _ => "",
    };
    let more = match leaf.names.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{}; names {}{more}; {}, {}; {} to {}; signed by {}; {} sent; {}{staple}; pin sha256//{}",
        escape_line(&leaf.subject),
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(" ")
        },
        leaf.key,
        leaf.signature,
        day(leaf.not_before),
        day(leaf.not_after),
        if leaf.self_signed {
            "itself".to_owned()
        } else {
            escape_line(&leaf.issuer)
        },
        chain.certificates.len(),
        match &chain.untrusted {
            Some(why) => format!("not trusted here: {}", escape_line(why)),
            None => "trusted here".to_owned(),
        },
        leaf.pin.base64,
    )
}

fn heartbeats(found: &Heartbeats) -> String {
    match found {
        Heartbeats::NotOffered => "not possible: the server takes no part in heartbeats".to_owned(),
        Heartbeats::Vulnerable => "VULNERABLE".to_owned(),
        Heartbeats::Fixed => {
            "not vulnerable: answers a correct heartbeat, drops one without padding".to_owned()
        }
        Heartbeats::Refused { alert } => {
            format!("not as OpenSSL had it: answers a heartbeat without padding with {alert}")
        }
        Heartbeats::Unknown { .. } => "unknown".to_owned(),
    }
}

pub fn dtls(report: &dtls::Report, style: Style) -> String {
    let mut out = String::new();
    head(&mut out, "DTLS", &report.place, None, style);
    let chosen = match (report.version, &report.suite) {
        (Some(version), Some(suite)) => format!("{version} with {suite}"),
        _ => "refused".to_owned(),
    };
    row(&mut out, style, "answers", &chosen);
    row(
        &mut out,
        style,
        "Heartbleed",
        &heartbeats(&report.heartbeats),
    );
    end(&mut out, &report.remarks, &report.unknown, style);
    out
}

pub fn ssh(report: &ssh::Report, style: Style) -> String {
    let mut out = String::new();
    head(
        &mut out,
        "SSH",
        &report.place,
        Some(report.connections),
        style,
    );
    row(&mut out, style, "banner", &escape_line(&report.banner));
    for key in &report.host_keys {
        let bits = key
            .bits
            .map_or(String::new(), |bits| format!(" {bits} bits"));
        let text = format!("{}{bits} {}", escape_line(&key.kind), key.fingerprint);
        row(&mut out, style, "host key", &text);
    }
    let offered = &report.algorithms;
    let lists = [
        ("key exchange", &offered.kex),
        ("host keys", &offered.host_keys),
        ("ciphers", &offered.ciphers_in),
        ("integrity", &offered.macs_in),
        ("extensions", &offered.extensions),
    ];
    for (label, list) in lists {
        if !list.is_empty() {
            row(&mut out, style, label, &escape_line(&list.join(" ")));
        }
    }
    end(&mut out, &report.remarks, &report.unknown, style);
    out
}

pub fn smb(report: &smb::Report, style: Style) -> String {
    let mut out = String::new();
    head(
        &mut out,
        "SMB",
        &report.place,
        Some(report.connections),
        style,
    );
    let dialects = match report.dialects.is_empty() {
        true => "none of SMB 2 and 3".to_owned(),
        false => report.dialects.join(", "),
    };
    row(&mut out, style, "dialects", &dialects);
    row(&mut out, style, "SMB 1", state(report.smb1));
    let known = |known: Option<bool>, yes, no| {
        known.map_or("unknown", |known| if known { yes } else { no })
    };
    row(
        &mut out,
        style,
        "signing",
        known(report.signing_required, "required", "not required"),
    );
    row(
        &mut out,
        style,
        "encryption",
        known(report.encryption, "offered", "not offered"),
    );
    end(&mut out, &report.remarks, &report.unknown, style);
    out
}

fn state(state: VersionState) -> &'static str {
    match state {
        VersionState::Offered => "spoken",
        VersionState::Refused => "not spoken",
        VersionState::Unknown => "unknown",
    }
}

pub fn http(report: &http::Report, style: Style) -> String {
    let mut out = String::new();
    let what = if report.https { "HTTPS" } else { "HTTP" };
    head(
        &mut out,
        what,
        &report.place,
        Some(report.connections),
        style,
    );
    row(&mut out, style, "status", &report.status.to_string());
    for (name, value) in &report.headers {
        row(
            &mut out,
            style,
            "header",
            &escape_line(&format!("{name}: {value}")),
        );
    }
    for cookie in &report.cookies {
        row(&mut out, style, "cookie", &cookie_text(cookie));
    }
    let file = match &report.security_txt {
        Some(file) => format!("contact {}", escape_line(&file.contacts.join(", "))),
        None => "none".to_owned(),
    };
    row(&mut out, style, "security.txt", &file);
    match &report.links {
        Some(http::Links::Guarded { status }) => {
            row(
                &mut out,
                style,
                "object",
                &format!("not given without a login ({status})"),
            );
        }
        Some(http::Links::Open { next }) => {
            row(
                &mut out,
                style,
                "object",
                &format!("given to anybody; the next one not ({next})"),
            );
        }
        Some(http::Links::Enumerable) => {
            row(
                &mut out,
                style,
                "object",
                "given to anybody, and so is the next one",
            );
        }
        Some(http::Links::NoConsent { .. }) | None => {}
    }
    end(&mut out, &report.remarks, &report.unknown, style);
    out
}

fn cookie_text(cookie: &Cookie) -> String {
    let flag = |is: bool, name: &str| match is {
        true => name.to_owned(),
        false => format!("not {name}"),
    };
    let same_site = match cookie.same_site {
        Some(SameSite::Strict) => "SameSite=Strict",
        Some(SameSite::Lax) => "SameSite=Lax",
        Some(SameSite::None) => "SameSite=None",
        None => "no SameSite",
    };
    format!(
        "{}: {}, {}, {same_site}",
        escape_line(&cookie.name),
        flag(cookie.secure, "Secure"),
        flag(cookie.http_only, "HttpOnly")
    )
}

fn head(out: &mut String, what: &str, place: &Where, connections: Option<u32>, style: Style) {
    let title = style.bold(&format!("{what} on {}", place.target));
    let _ = write!(out, "{title} ({}", place.address.ip());
    match connections {
        Some(1) => out.push_str(", 1 connection)\n"),
        Some(count) => {
            let _ = writeln!(out, ", {count} connections)");
        }
        None => out.push_str(")\n"),
    }
    if !place.others.is_empty() {
        let others: Vec<String> = place
            .others
            .iter()
            .map(|one| one.ip().to_string())
            .collect();
        let text = format!("not asked: {}", others.join(", "));
        style.write_paragraph(out, "", 2, &text);
    }
    out.push('\n');
}

fn row(out: &mut String, style: Style, label: &str, text: &str) {
    style.write_paragraph(out, &format!("  {label}"), LABEL, text);
}

fn end(out: &mut String, remarks: &[Remark], unknown: &[String], style: Style) {
    if !remarks.is_empty() {
        out.push('\n');
    }
    for remark in remarks {
        let color = match remark.severity {
            Severity::Danger => "1;31",
            Severity::Weak => "33",
            Severity::Note => "2",
        };
        let label = format!("{:<8}", remark.severity.name());
        style.write_paragraph(
            out,
            &style.paint(color, &label),
            8,
            &escape_line(&remark.says),
        );
        style.write_paragraph(out, "        do:", 12, remark.remedy);
        let source = format!("{} [{}]", remark.source, remark.id);
        style.write_paragraph(out, "", 8, &source);
    }
    if !unknown.is_empty() {
        out.push_str("\nNot known, so not to be taken for fine:\n");
        for line in unknown {
            style.write_paragraph(out, "", 2, &escape_line(line));
        }
    }
    if remarks.is_empty() && unknown.is_empty() {
        out.push_str("\nnothing to say against it\n");
    }
}
