//! A copy of an sshd configuration (sshd_config(5)): line by line, so that sshd's complaints have
//! the line numbers of the original.

/// What a copy leaves out.
pub(super) struct Without<'a> {
    /// Keywords, in lower case, that are settled elsewhere; they may stand outside of Match alone.
    pub everywhere: &'a [&'a str],
    /// Keywords, in lower case, that are left out where they are not conditional.
    pub global: &'a [String],
}

/// Given the patterns of an Include line.
type Include<'a, E> = dyn FnMut(&[String]) -> Result<Vec<String>, E> + 'a;

/// Copies a text. `include` is given the patterns of an Include line, which it copies too, and
/// returns the names of the copies.
pub(super) fn copy<E>(
    text: &str,
    without: &Without<'_>,
    include: &mut Include<'_, E>,
) -> Result<String, E> {
    let mut copy = String::with_capacity(text.len());
    let mut conditional = false;
    for line in text.lines() {
        let keyword = keyword(line);
        conditional |= keyword == "match";
        let left_out = without.everywhere.contains(&keyword.as_str())
            || !conditional && without.global.contains(&keyword);
        if left_out {
            copy.push_str("# left out: ");
            copy.push_str(line);
        } else if keyword == "include" {
            let names = include(&arguments(line))?;
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

/// The first word in lower case: it ends at white space or `=`, and may stand in quotes.
pub(super) fn keyword(line: &str) -> String {
    let line = line.trim_start();
    let line = line.strip_prefix('"').unwrap_or(line);
    let end = line.find(|c: char| c.is_whitespace() || c == '=' || c == '"');
    line[..end.unwrap_or(line.len())].to_ascii_lowercase()
}

/// What follows the keyword, with quotes and backslashes resolved.
fn arguments(line: &str) -> Vec<String> {
    let line = line.trim_start();
    let quoted = line.strip_prefix('"');
    let rest = quoted.unwrap_or(line);
    let rest = rest.get(keyword(line).len()..).unwrap_or_default();
    let rest = match quoted {
        Some(_) => rest.strip_prefix('"').unwrap_or(rest),
        None => rest,
    };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    shell_words::split(rest)
        .unwrap_or_else(|_| rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str) -> String {
        let without = Without {
            everywhere: &["port", "listenaddress"],
            global: &["usedns".to_owned()],
        };
        let mut include = |patterns: &[String]| -> Result<Vec<String>, ()> {
            Ok(match patterns {
                [none] if none == "none" => vec![],
                some => some.iter().map(|name| format!("<{name}>")).collect(),
            })
        };
        copy(text, &without, &mut include).unwrap()
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
    fn includes_lead_to_the_copies() {
        assert_eq!(
            copied("Include /a/*.conf \"b c\"\n\"include\" = d\nInclude none\n"),
            "Include </a/*.conf> <b c>\nInclude <d>\n# nothing there: Include none\n"
        );
    }

    proptest::proptest! {
        #[test]
        fn every_line_stays_in_its_place(text in "[^\r]*", line in "[ \t]*#?[a-zA-Z]{1,8}[ =][^\r\n]*") {
            let text = format!("{text}\n{line}\n");
            let copy = copied(&text);
            proptest::prop_assert_eq!(copy.lines().count(), text.lines().count());
            for (copied, original) in copy.lines().zip(text.lines()) {
                let kept = keyword(original) == "include" || copied.ends_with(original);
                proptest::prop_assert!(kept, "{copied:?} of {original:?}");
            }
        }
    }

    #[test]
    fn keywords_as_sshd_reads_them() {
        for line in ["Port 22", "\tport=22", "  \"PORT\" 22", "Port"] {
            assert_eq!(keyword(line), "port", "{line}");
        }
        assert_eq!(keyword("#Port 22"), "#port");
        assert_eq!(keyword(""), "");
    }
}
