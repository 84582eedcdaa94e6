//! smb.conf of Samba 4 (smb.conf(5); libcli/util/tini.c, source3/param/loadparm.c of 4.17).
//! Names of settings are compared without case and blanks; some settings have several names. Lines before the
//! first section belong to `[global]`. A line that ends in a backslash continues in the next line, unless it
//! is a comment. An included file is read in its place; the section that is open at its end continues after
//! the include. A server-wide setting inside a share has no effect, so look up such settings in the root.
//! `config file` makes smbd read another file instead (`reload_services` of source3/smbd/server_reload.c).

use super::builder::{Builder, SourceFile};
use super::files::FileFault;
use super::{ScopeId, Trouble};
use crate::text::to_lossy_text;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// Maximum depth of includes (MAX_INCLUDE_DEPTH).
const DEEPEST: usize = 100;

/// Synonyms of setting names (lib/param/param_table.c).
const SYNONYMS: [(&str, &str); 9] = [
    ("minprotocol", "serverminprotocol"),
    ("maxprotocol", "servermaxprotocol"),
    ("protocol", "servermaxprotocol"),
    ("public", "guestok"),
    ("onlyguest", "guestonly"),
    ("directory", "path"),
    ("group", "forcegroup"),
    ("writeable", WRITABLE),
    ("writeok", WRITABLE),
];
/// Setting whose value is the opposite of `read only`. It is stored as `read only`.
const WRITABLE: &str = "writable";

/// Returns the name of a setting in the form in which Samba compares names.
pub(super) fn normalize_name(text: &str) -> String {
    let plain: String = text.split_whitespace().collect();
    let plain = plain.to_ascii_lowercase();
    let known = SYNONYMS.iter().find(|(other, _)| *other == plain);
    known.map_or(plain, |(_, name)| (*name).to_owned())
}

pub(super) fn read(builder: &mut Builder<'_>, main: &Path) -> Result<(), FileFault> {
    let source = builder.open(main)?;
    let mut walk = Walk::default();
    walk.file(builder, &source);
    let Some((value, place)) = walk.other.take() else {
        return Ok(());
    };
    let other = Path::new(&value);
    let readable = other.is_absolute() && !value.contains('%');
    match readable.then(|| builder.open(other)) {
        Some(Ok(source)) => {
            // Nothing of the first file stays in effect. A `config file` of the other file is not followed.
            builder.forget();
            Walk::default().file(builder, &source);
        }
        _ => {
            let why = format!("Samba reads `{value}` instead, which is not followed here");
            builder.problem(ScopeId::ROOT, place, Trouble::Unknown(why));
        }
    }
    Ok(())
}

/// State of the reader.
#[derive(Default)]
struct Walk {
    section: ScopeId,
    depth: usize,
    /// Settings that have a line of their own, by section; `copy` does not replace them.
    own: HashSet<(ScopeId, String)>,
    /// The last `config file` that names another file.
    other: Option<(String, super::SettingPlace)>,
}

/// A line with its continuation lines.
struct Logical {
    text: String,
    span: Range<usize>,
}

impl Walk {
    fn file(&mut self, builder: &mut Builder<'_>, source: &SourceFile) {
        for line in logical_lines(&source.text) {
            if builder.stopped {
                return;
            }
            self.line(builder, source, &line);
        }
    }

    fn line(&mut self, builder: &mut Builder<'_>, source: &SourceFile, line: &Logical) {
        let place = source.place(&line.span);
        if let Some(section) = line.text.strip_prefix('[') {
            let Some((section, _)) = section.split_once(']') else {
                let why = "a section without its `]`".to_owned();
                return builder.problem(self.section, place, Trouble::Unknown(why));
            };
            let words: Vec<&str> = section.split_whitespace().collect();
            let section = words.join(" ").to_ascii_lowercase();
            self.section = match section.as_str() {
                "global" | "globals" => ScopeId::ROOT,
                _ => builder.same_scope(ScopeId::ROOT, vec![section], place),
            };
            return;
        }
        let Some((key, value)) = line.text.split_once('=') else {
            let why =
                "a line that is neither a section nor a setting; Samba does not start".to_owned();
            return builder.problem(self.section, place, Trouble::Unknown(why));
        };
        let value = value.trim();
        match normalize_name(key).as_str() {
            "include" => self.include(builder, value, &place),
            "copy" => self.copy(builder, value, &place),
            "configfile" if self.section == ScopeId::ROOT => {
                let other = Path::new(value) != source.path;
                self.other = other.then(|| (value.to_owned(), place));
            }
            "configbackend" if value.eq_ignore_ascii_case("registry") => {
                let why = "Samba reads its registry instead, which is not read here".to_owned();
                builder.problem(ScopeId::ROOT, place, Trouble::Unknown(why));
            }
            WRITABLE => {
                let opposite = match parse_switch(value) {
                    Some(true) => "no",
                    Some(false) => "yes",
                    None => value,
                };
                self.own.insert((self.section, "readonly".to_owned()));
                builder.add(self.section, "readonly".to_owned(), opposite.into(), place);
            }
            key => {
                self.own.insert((self.section, key.to_owned()));
                builder.add(self.section, key.to_owned(), value.into(), place);
            }
        }
    }

    /// Adds the settings that an earlier section has so far, each with the place of the `copy`. Settings with a line in
    /// this section keep their value (smb.conf(5); `copymap` of source3/param/loadparm.c). An unknown section is noted
    /// as a setting, because Samba ignores it.
    fn copy(&self, builder: &mut Builder<'_>, value: &str, place: &super::SettingPlace) {
        let words: Vec<&str> = value.split_whitespace().collect();
        let name = words.join(" ").to_ascii_lowercase();
        let known = builder.out.inner.get(&(ScopeId::ROOT, vec![name])).copied();
        let Some(from) = known.filter(|from| *from != self.section) else {
            return builder.add(self.section, "copy".to_owned(), value.into(), place.clone());
        };
        let said = builder.out.settings.iter();
        let said = said.filter(|said| said.scope == from && said.key != "copy");
        let copied: Vec<_> = said
            .filter(|said| !self.own.contains(&(self.section, said.key.clone())))
            .map(|said| (said.key.clone(), said.value.clone()))
            .collect();
        for (key, value) in copied {
            if builder.room() < value.len() {
                return builder.stop(self.section, place);
            }
            builder.take(value.len());
            builder.add(self.section, key, value, place.clone());
        }
    }

    fn include(&mut self, builder: &mut Builder<'_>, value: &str, place: &super::SettingPlace) {
        let path = Path::new(value);
        let unknown = match value {
            "registry" => Some("settings of Samba's registry are not read here".to_owned()),
            _ if value.contains('%') => match depends_on_client(builder, path) {
                Ok(false) => return,
                Ok(true) => Some(format!("`{value}` is another file for each client")),
                Err(fault) => Some(format!("`{value}` cannot be looked up: {fault}")),
            },
            _ if !path.is_absolute() => {
                Some(format!("`{value}` is looked for where Samba was started"))
            }
            _ => None,
        };
        if let Some(why) = unknown {
            return builder.problem(self.section, place.clone(), Trouble::Unknown(why));
        }
        if self.depth >= DEEPEST {
            return builder.stop(self.section, place);
        }
        if let Some(source) = builder.open_included(path, self.section, place) {
            self.depth += 1;
            self.file(builder, &source);
            self.depth -= 1;
        }
    }
}

/// Parses a boolean; `None` if Samba rejects the value.
fn parse_switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Returns whether there is a file whose name matches an include with macros such as `%m`, the name of the client.
fn depends_on_client(builder: &Builder<'_>, path: &Path) -> Result<bool, FileFault> {
    let text = path.to_string_lossy();
    let (dir, name) = text.rsplit_once('/').unwrap_or(("", &text));
    if dir.contains('%') {
        return Ok(true);
    }
    let (begin, rest) = name.split_once('%').unwrap_or((name, ""));
    // The text after the last macro; a macro is one letter.
    let end = rest.rsplit('%').next().unwrap_or_default();
    let end = end.get(1..).unwrap_or_default();
    let names = match builder
        .files
        .list(Path::new(if dir.is_empty() { "/" } else { dir }))
    {
        Ok(names) => names,
        Err(FileFault::Absent) => return Ok(false),
        Err(fault) => return Err(fault),
    };
    Ok(names.iter().any(|name| {
        let name = name.to_string_lossy();
        name.len() > begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
    }))
}

/// Returns all lines that are not comments, each with its continuation lines.
fn logical_lines(text: &[u8]) -> Vec<Logical> {
    let mut found: Vec<Logical> = Vec::new();
    let mut open: Option<Logical> = None;
    let mut start = 0;
    for line in text.split(|byte| *byte == b'\n') {
        let (begin, end) = (start, start + line.len());
        start = end + 1;
        let line = line.trim_ascii_end();
        let first = begin + line.len() - line.trim_ascii_start().len();
        if open.is_none() && matches!(line.trim_ascii_start().first(), None | Some(b'#' | b';')) {
            continue;
        }
        let (body, goes_on) = match line {
            [body @ .., b'\\'] => (body, true),
            _ => (line, false),
        };
        let logical = open.get_or_insert(Logical {
            text: String::new(),
            span: first..first,
        });
        logical.text.push_str(&to_lossy_text(body));
        logical.span.end = begin + line.len();
        if !goes_on {
            found.extend(open.take());
        }
    }
    found.extend(open);
    for logical in &mut found {
        logical.text = logical.text.trim().to_owned();
    }
    found.retain(|logical| !logical.text.is_empty());
    found
}
