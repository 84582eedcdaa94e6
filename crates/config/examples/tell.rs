//! Prints a configuration as JSON for `bench/check/corpora`: each statement with its line, scope, key and words. `tell
//! nginx FILE one` does not read included files.

use assay_config::effective::files::{FileFault, Files, OfHost};
use assay_config::effective::{Effective, Program, ScopeId, read_effective};
use assay_host::LiveHost;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A configuration of which only this one file is read.
struct One(PathBuf);

impl Files for One {
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault> {
        match path == self.0 {
            true => OfHost(&LiveHost).read(path),
            false => Err(FileFault::Absent),
        }
    }

    fn list(&self, _: &Path) -> Result<Vec<OsString>, FileFault> {
        Ok(Vec::new())
    }

    fn exists(&self, path: &Path) -> Result<bool, FileFault> {
        Ok(path == self.0)
    }
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, file, more @ ..] = &words[..] else {
        return Err("tell PROGRAM FILE [one]".to_owned());
    };
    let program = match &program[..] {
        "nginx" => Program::Nginx,
        "dovecot" => Program::Dovecot,
        "postfix" => Program::Postfix,
        "sshd" => Program::Sshd,
        "ssh" => Program::Ssh,
        other => return Err(format!("no program {other}")),
    };
    let main = std::path::absolute(file).map_err(|error| error.to_string())?;
    let read = match more.is_empty() {
        true => read_effective(program, &main, &OfHost(&LiveHost)),
        false => read_effective(program, &main, &One(main.clone())),
    };
    println!("{}", told(&read.map_err(|fault| fault.to_string())?));
    Ok(())
}

fn told(all: &Effective) -> Value {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let settings = all.settings().iter().map(|said| {
        json!({
            "scope": all.path(said.scope), "key": said.key, "value": said.text(),
            "words": said.words.iter().map(text).collect::<Vec<_>>(),
            "line": said.place.line, "file": said.place.path,
            "counts": all.value(said.scope, &said.key) == Some(said),
        })
    });
    let blocks = all.scopes().filter(|(id, _)| *id != ScopeId::ROOT);
    json!({
        "settings": settings.collect::<Vec<_>>(),
        "blocks": blocks
            .map(|(_, scope)| json!({ "head": scope.head, "line": scope.place.line }))
            .collect::<Vec<_>>(),
        "files": all.files,
        "problems": all.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
