//! Rewrites commands at a Windows prompt (cmd or PowerShell) in the syntax of a Linux shell. Changes the prompt, paths
//! with backslashes, and the characters that continue a line.

use std::borrow::Cow;

/// Rewrites the Windows commands in a text. Other lines are left unchanged.
pub(super) fn rewrite_windows_lines(text: &str) -> Cow<'_, str> {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("fio") || !lower.contains(['\\', '^', '`', '&']) && !lower.contains(".exe") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut continued = false;
    let mut changed = false;
    for line in text.split_inclusive('\n') {
        let (body, end) = match line.trim_end_matches(['\r', '\n']) {
            body if body.len() < line.len() => (body, "\n"),
            body => (body, ""),
        };
        let call = rewrite_call(body);
        let belongs = continued || call.is_some() || names_fio(body);
        let own = call.unwrap_or_else(|| body.to_owned());
        let cut = own.trim_end().strip_suffix(['^', '`']);
        let cut = cut.filter(|cut| belongs && cut.ends_with(' '));
        continued = cut.is_some();
        let own = cut.map_or(own.clone(), |cut| format!("{cut}\\"));
        changed |= own != body;
        out.push_str(&own);
        out.push_str(end);
    }
    match changed {
        true => Cow::Owned(out),
        false => Cow::Borrowed(text),
    }
}

/// Returns whether a line contains the program name fio as a separate word.
fn names_fio(line: &str) -> bool {
    line.split_whitespace().any(|word| word == "fio")
}

/// Rewrites a fio command that follows a Windows prompt or contains a Windows path in Linux syntax. Returns `None` for
/// all other lines.
fn rewrite_call(line: &str) -> Option<String> {
    let line = line.trim_start();
    let behind = strip_windows_prompt(line);
    let call = behind.unwrap_or(line);
    // PowerShell calls a quoted path with `&`.
    let call = call.strip_prefix("& ").unwrap_or(call).trim_start();
    let (program, rest) = match call.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => call.split_at(call.find(char::is_whitespace).unwrap_or(call.len())),
    };
    let name = program.rsplit(['\\', '/']).next()?;
    let name = name.to_ascii_lowercase();
    let is_fio = matches!(name.as_str(), "fio" | "fio.exe");
    let of_windows = behind.is_some() || program.contains('\\') || name == "fio.exe";
    (is_fio && of_windows).then(|| format!("fio{}", keep_backslashes(rest)))
}

/// Returns the text after a prompt such as `D:\>`, `C:\Users\x>` or `PS C:\Program Files> `.
pub(crate) fn strip_windows_prompt(line: &str) -> Option<&str> {
    let own = line.strip_prefix("PS ").unwrap_or(line);
    let mut chars = own.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    if !drive || !chars.as_str().starts_with(":\\") {
        return None;
    }
    let (path, behind) = own.split_once('>')?;
    (!path.contains(['"', '|', '<', '='])).then(|| behind.trim_start())
}

/// Doubles the backslashes outside of double quotes, because Windows keeps them but a Linux shell removes them.
fn keep_backslashes(words: &str) -> String {
    let mut quoted = false;
    let mut out = String::with_capacity(words.len());
    for c in words.chars() {
        quoted ^= c == '"';
        out.push(c);
        if c == '\\' && !quoted {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::options::command_line;

    /// Returns the options of the job in a text that contains only one job.
    fn given(text: &str) -> std::collections::BTreeMap<String, String> {
        let mut calls = command_line(text).unwrap();
        assert_eq!((calls.len(), calls[0].jobs.len()), (1, 1), "{text}");
        calls.remove(0).jobs.remove(0).given.into_iter().collect()
    }

    #[test]
    fn prompts_paths_and_continuations_of_windows() {
        for text in [
            r"I:\>fio --name=t --rw=randread --direct=1 --bs=8k",
            r"D:\>c:\fio\fio\fio --name=t --rw=randread --direct=1 --bs=8k",
            r"C:\Users\Administrator>fio -name=t -rw=randread -direct=1 -bs=8k",
            r"PS C:\Program Files\fio> .\fio.exe --name=t --rw=randread --direct=1 --bs=8k",
            r#"& "C:\Program Files\fio\fio.exe" --name=t --rw=randread --direct=1 --bs=8k"#,
            "fio.exe --name=t ^\r\n    --rw=randread ^\r\n    --direct=1 --bs=8k\r\n",
            "fio --name=t `\n  --rw=randread `\n  --direct=1 --bs=8k\n",
            r"G:\FIO test>FIO.EXE --name=t --rw=randread --direct=1 --bs=8k",
        ] {
            let given = given(text);
            for (key, value) in [("rw", "randread"), ("direct", "1"), ("bs", "8k")] {
                assert_eq!(given.get(key).map(String::as_str), Some(value), "{text}");
            }
        }
        let path = given(r#"E:\>fio --name=t --rw=read --filename=D\:\t.dat"#);
        assert_eq!(path["filename"], r"D\:\t.dat");
    }

    #[test]
    fn lines_of_linux_stay() {
        for text in [
            "fio --name=a --filename=/dev/a\\\\b",
            "for x in `ls`; do fio --name=$x; done",
            "[root@host ~]# fio --name=a",
        ] {
            assert_eq!(super::rewrite_windows_lines(text), text);
        }
    }
}
