//! Postfix 3.7: main.cf (postconf(5)), and the `-o` options of services in master.cf (master(5),
//! `pcf_normalize_daemon_args` of src/postconf/postconf_master.c).
//! The last line of a parameter takes effect, and so does the last line of a service. Each service is a scope with its
//! name and type. Its `-o` options take precedence over main.cf. Values and their `$name` remain as written, as in the
//! output of `postconf -n` and `postconf -P`.

use super::builder::{Builder, SourceFile};
use super::files::FileFault;
use super::{ScopeId, Trouble};
use crate::languages::postfix::logical_lines;
use crate::text::{Logical, to_lossy_text};
use crate::tree::Item;
use assay_model::change::ConfigLanguage as Language;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// Number of fields before the arguments of a service: name, type, five flags, and the command.
const FIELDS: usize = 8;
/// Options of Postfix's daemons that take a value.
const WITH_VALUE: &[u8] = b"o";

pub fn read(builder: &mut Builder<'_>, main: &Path) -> Result<(), FileFault> {
    let source = builder.open(main)?;
    if let Some(root) = builder.parsed(Language::Postfix, ScopeId::ROOT, &source) {
        for item in &root.items {
            if let Item::Directive(said) = item {
                let place = source.place(&said.span);
                builder.add(ScopeId::ROOT, said.key.clone(), said.value.clone(), place);
            }
        }
    }
    let master = main.with_file_name("master.cf");
    match builder.open(&master) {
        Ok(source) => services(builder, &source),
        // A machine without a mail server has no master.cf.
        Err(FileFault::Absent) => {}
        Err(fault) => {
            let include = master.display().to_string();
            let place = SourceFile::new(&master, Vec::new()).place(&(0..0));
            builder.problem(ScopeId::ROOT, place, Trouble::Unread { include, fault });
        }
    }
    Ok(())
}

fn services(builder: &mut Builder<'_>, source: &SourceFile) {
    let mut services = Vec::new();
    let mut last = HashMap::new();
    for line in logical_lines(&source.text) {
        let fields = split_fields(&line.bytes);
        let text = |at: usize| {
            fields
                .get(at)
                .map(|field| to_lossy_text(&line.bytes[field.clone()]))
        };
        let (Some(name), Some(kind), Some(_)) = (text(0), text(1), fields.get(FIELDS - 1)) else {
            let what = "a service has at least eight fields".to_owned();
            let place = source.place(&line.span(0));
            builder.problem(ScopeId::ROOT, place, Trouble::Unknown(what));
            continue;
        };
        let head = vec![name, kind];
        last.insert(head.clone(), services.len());
        services.push((line, fields, head));
    }
    for (at, (line, fields, head)) in services.into_iter().enumerate() {
        // Of several lines for one service, the last takes effect.
        let counts = last.get(&head) == Some(&at);
        let scope = builder.same_scope(ScopeId::ROOT, head, source.place(&line.span(0)));
        if counts {
            for (name, value, at) in parse_overrides(&line, &fields[FIELDS..]) {
                let place = source.place(&at);
                builder.add(scope, name, value, place);
            }
        }
    }
}

/// Splits a line into fields like `argv_splitq`: blanks separate the fields, and text in braces is one field.
fn split_fields(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        at += bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if at == bytes.len() {
            return fields;
        }
        let (start, mut depth) = (at, 0_usize);
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                byte if depth == 0 && byte.is_ascii_whitespace() => break,
                _ => {}
            }
            at += 1;
        }
        fields.push(start..at);
    }
}

/// Parses the options `-o name=value`, `-oname=value` and `-o { name = value }` with their positions.
fn parse_overrides(
    line: &Logical,
    arguments: &[Range<usize>],
) -> Vec<(String, Vec<u8>, Range<usize>)> {
    let mut found = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = &line.bytes[argument.clone()];
        if text.first() != Some(&b'-') || text == b"--" {
            break;
        }
        let Some(at) = text[1..].iter().position(|byte| WITH_VALUE.contains(byte)) else {
            continue;
        };
        let value = match argument.start + at + 2 {
            start if start < argument.end => start..argument.end,
            _ => match rest.next() {
                Some(next) => next.clone(),
                None => break,
            },
        };
        let mut bytes = &line.bytes[value.clone()];
        let braces = bytes
            .strip_prefix(b"{")
            .and_then(|inner| inner.strip_suffix(b"}"));
        let braced = braces.is_some();
        bytes = braces.unwrap_or(bytes);
        if let Some(equals) = bytes.iter().position(|&byte| byte == b'=') {
            let (name, setting) = (&bytes[..equals], &bytes[equals + 1..]);
            let setting = match braced {
                true => setting.trim_ascii(),
                false => setting,
            };
            let last = line.at.get(value.end - 1).map_or(0, |&at| at + 1);
            let place = line.span(argument.start).start..last;
            found.push((to_lossy_text(name.trim_ascii()), setting.to_vec(), place));
        }
    }
    found
}
