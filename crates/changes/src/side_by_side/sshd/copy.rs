//! Copies an sshd configuration (sshd_config(5)) line by line, so that line numbers in sshd's messages match
//! the original.

/// Keywords that are left out of a copied configuration.
pub(super) struct Without<'a> {
    /// Keywords, in lower case, that are left out everywhere. sshd allows them only outside of Match blocks.
    pub everywhere: &'a [&'a str],
    /// Keywords, in lower case, that are left out of the global part of the configuration but stay in Match blocks.
    pub global: &'a [String],
}

/// Function that copies the files of an Include line. Arguments: the patterns of the line, and whether the line is in a
/// Match block.
type Include<'a, E> = dyn FnMut(&[String], bool) -> Result<Vec<String>, E> + 'a;

/// Copies a text. `include` is called with the patterns of an Include line. It copies the included files and returns
/// the names of the copies. A file that is included in a Match block is conditional from its first line.
pub(super) fn copy<E>(
    text: &str,
    mut conditional: bool,
    without: &Without<'_>,
    include: &mut Include<'_, E>,
) -> Result<String, E> {
    let mut copy = String::with_capacity(text.len());
    for line in text.lines() {
        let (keyword, arguments) = read(line);
        conditional |= keyword == "match";
        let left_out = without.everywhere.contains(&keyword.as_str())
            || !conditional && without.global.contains(&keyword);
        if left_out {
            copy.push_str("# left out: ");
            copy.push_str(line);
        } else if keyword == "include" {
            let names = include(&arguments, conditional)?;
            if names.is_empty() {
                copy.push_str("# nothing there: ");
                copy.push_str(line);
            } else {
                copy.push_str("Include ");
                copy.push_str(&names.join(" "));
            }
        } else {
            copy.push_str(line);
        }
        copy.push('\n');
    }
    Ok(copy)
}

/// Parses a line. Returns the keyword in lower case and its arguments; both are empty for a comment. A line with an
/// unclosed quote still has a keyword, and sshd reports the error.
fn read(line: &str) -> (String, Vec<String>) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match assay_config::ssh_statement(line.as_bytes()) {
        Ok(Some((keyword, arguments))) => {
            let arguments = arguments.into_iter().map(text).collect();
            (keyword.to_ascii_lowercase(), arguments)
        }
        Ok(None) => (String::new(), Vec::new()),
        Err(_) => {
            let line = line.trim_start();
            let line = line.strip_prefix('"').unwrap_or(line);
            let end = line.find(|c: char| c.is_whitespace() || c == '=' || c == '"');
            let keyword = &line[..end.unwrap_or(line.len())];
            (keyword.to_ascii_lowercase(), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str) -> String {
        let without = Without {
            everywhere: &["port", "listenaddress"],
            global: &["usedns".to_owned()],
        };
        let mut include = |patterns: &[String], _| -> Result<Vec<String>, ()> {
            Ok(match patterns {
                [none] if none == "none" => vec![],
                some => some.iter().map(|name| format!("<{name}>")).collect(),
            })
        };
        copy(text, false, &without, &mut include).unwrap()
    }

    #[test]
    fn lines_keep_their_numbers_and_formatting() {
        assert_eq!(
            copied(
                "# Port 1\n  Port 22\n\tX11Forwarding  yes # why\nlistenaddress=::\n\nUseDNS yes\n"
            ),
            "# Port 1\n# left out:   Port 22\n\tX11Forwarding  yes # why\n# left out: \
             listenaddress=::\n\n# left out: UseDNS yes\n"
        );
    }

    #[test]
    fn what_is_conditional_stays() {
        assert_eq!(
            copied("Match User a\n  UseDNS yes\n  Port 1\n"),
            "Match User a\n  UseDNS yes\n# left out:   Port 1\n"
        );
    }

    #[test]
    fn what_is_included_in_a_match_block_is_conditional() {
        let without = Without {
            everywhere: &[],
            global: &["usedns".to_owned()],
        };
        let mut told = Vec::new();
        let mut include = |_: &[String], conditional| -> Result<Vec<String>, ()> {
            told.push(conditional);
            Ok(vec![])
        };
        let text = "Include a\nMatch all\nInclude b\n";
        copy(text, false, &without, &mut include).unwrap();
        assert_eq!(told, [false, true]);
        let text = "UseDNS yes\n";
        let mut none = |_: &[String], _| -> Result<Vec<String>, ()> { Ok(vec![]) };
        assert_eq!(copy(text, true, &without, &mut none).unwrap(), text);
    }

    #[test]
    fn includes_lead_to_the_copies() {
        assert_eq!(
            copied("Include /a/*.conf \"b c\"\n\"include\" = d\nInclude none\n"),
            "Include </a/*.conf> <b c>\nInclude <=> <d>\n# nothing there: Include none\n"
        );
    }

    proptest::proptest! {
        #[test]
        fn every_line_stays_in_its_place(text in "[^\r]*", line in "[ \t]*#?[a-zA-Z]{1,8}[ =][^\r\n]*") {
            let text = format!("{text}\n{line}\n");
            let copy = copied(&text);
            proptest::prop_assert_eq!(copy.lines().count(), text.lines().count());
            for (copied, original) in copy.lines().zip(text.lines()) {
                let kept = read(original).0 == "include" || copied.ends_with(original);
                proptest::prop_assert!(kept, "{copied:?} of {original:?}");
            }
        }
    }

    #[test]
    fn keywords_as_sshd_reads_them() {
        for line in ["Port 22", "\tport=22", "  \"PORT\" 22", "Port"] {
            assert_eq!(read(line).0, "port", "{line}");
        }
        assert_eq!(read("#Port 22").0, "");
        assert_eq!(read("").0, "");
    }
}
