//! Parses files with nested settings: blocks in braces as in named and apt, and the simple YAML of servers. Each
//! setting has a path of names, a value and a line number.

/// A statement with its words, its line, and the heads of the blocks around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    /// For each block around the statement, the outermost first: a number that identifies the block, and the words of
    /// its head.
    pub(crate) within: Vec<(usize, Vec<String>)>,
    pub(crate) words: Vec<String>,
    pub(crate) line: usize,
}

/// Parses statements that end with a semicolon or with a block in braces. Comments may have the syntax of C, C++ or
/// shells.
pub(crate) fn read_braces(text: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut within: Vec<(usize, Vec<String>)> = Vec::new();
    let (mut words, mut word): (Vec<String>, String) = (Vec::new(), String::new());
    let (mut line, mut blocks, mut quoted) = (1, 0, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\n' {
            line += 1;
        }
        if quoted || letter == '"' {
            quoted = if letter == '"' { !quoted } else { quoted };
            if letter != '"' {
                word.push(letter);
            }
            continue;
        }
        let comment = letter == '#' || (letter == '/' && letters.peek() == Some(&'/'));
        if comment {
            while letters.peek().is_some_and(|next| *next != '\n') {
                letters.next();
            }
            continue;
        }
        if letter == '/' && letters.peek() == Some(&'*') {
            let mut last = ' ';
            for next in letters.by_ref() {
                line += usize::from(next == '\n');
                if last == '*' && next == '/' {
                    break;
                }
                last = next;
            }
            continue;
        }
        if !letter.is_whitespace() && !"{};".contains(letter) {
            word.push(letter.to_ascii_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match letter {
            '{' => {
                blocks += 1;
                within.push((blocks, std::mem::take(&mut words)));
            }
            ';' | '}' => {
                if !words.is_empty() {
                    statements.push(Statement {
                        within: within.clone(),
                        words: std::mem::take(&mut words),
                        line,
                    });
                }
                if letter == '}' {
                    within.pop();
                }
            }
            _ => {}
        }
    }
    statements
}

/// A value in a YAML file: its path in lower case with dots between the names, its text, and its line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlValue {
    pub(crate) path: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

/// Parses the scalars of block mappings. An item of a list has the path of the list.
pub(crate) fn read_yaml(text: &str) -> Vec<YamlValue> {
    let mut values = Vec::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let body = line.split(" #").next().unwrap_or_default().trim_end();
        let bare = body.trim_start();
        if bare.is_empty() || bare.starts_with('#') || bare == "---" {
            continue;
        }
        let (mut indent, mut bare) = (body.len() - bare.len(), bare);
        while let Some(item) = bare.strip_prefix("- ") {
            indent += 2;
            bare = item.trim_start();
            open.retain(|(at, _)| *at < indent);
            if !bare.contains(": ") && !bare.ends_with(':') {
                push(&mut values, &open, bare, number);
                bare = "";
            }
        }
        let Some((name, value)) = bare.split_once(':') else {
            continue;
        };
        open.retain(|(at, _)| *at < indent);
        open.push((indent, name.trim_matches(['"', '\'']).to_lowercase()));
        if value.trim().starts_with('{') {
            push_flow(&mut values, &open, value.trim(), number);
            continue;
        }
        let items = value
            .trim()
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        match items {
            Some(items) => {
                for item in items.split(',').filter(|item| !item.trim().is_empty()) {
                    push(&mut values, &open, item, number);
                }
            }
            None if !value.trim().is_empty() => push(&mut values, &open, value, number),
            None => {}
        }
    }
    values
}

/// Reads the scalars of a mapping in braces, such as `{port: 1, tls: {mode: x}}`. An empty mapping is one value.
fn push_flow(values: &mut Vec<YamlValue>, open: &[(usize, String)], text: &str, number: usize) {
    let (mut names, mut word) = (open.to_vec(), String::new());
    let (mut quote, mut any) = (None, false);
    let depth = names.len();
    for letter in text.chars() {
        match (letter, quote) {
            ('"' | '\'', None) => quote = Some(letter),
            (letter, Some(mark)) if letter == mark => quote = None,
            (_, Some(_)) => word.push(letter),
            (':', None) if names.last().is_none_or(|(at, _)| *at != usize::MAX) => {
                names.push((usize::MAX, word.trim().to_lowercase()));
                word.clear();
            }
            ('{', None) => {
                // The name before the brace stays open.
                if let Some((at, _)) = names.last_mut().filter(|_| any) {
                    *at = 0;
                }
                any = true;
            }
            (',' | '}' | ']', None) => {
                if names.last().is_some_and(|(at, _)| *at == usize::MAX) {
                    if !word.trim().is_empty() {
                        push(values, &names, &word, number);
                    }
                    names.pop();
                }
                word.clear();
                if letter == '}' && names.len() > depth {
                    names.pop();
                }
            }
            ('[', None) => {}
            (letter, None) => word.push(letter),
        }
    }
    if !any || text.trim() == "{}" {
        push(values, open, text, number);
    }
}

fn push(values: &mut Vec<YamlValue>, open: &[(usize, String)], value: &str, number: usize) {
    let names: Vec<&str> = open.iter().map(|(_, name)| name.as_str()).collect();
    values.push(YamlValue {
        path: names.join("."),
        value: value.trim().trim_matches(['"', '\'']).to_lowercase(),
        line: number + 1,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_named() {
        let text = "// c\noptions {\n  recursion yes; # x\n  allow-recursion { any; };\n};\n\
         /* a\n b */ zone \"a\" { type master; };\n";
        let read = read_braces(text);
        assert_eq!(read[0].words, ["recursion", "yes"]);
        assert_eq!((read[1].line, read[1].words[0].as_str()), (4, "any"));
        assert_eq!(read[1].within[1].1, ["allow-recursion"]);
        assert_eq!(
            (read[2].line, &read[2].within[0].1[0]),
            (7, &"zone".to_owned())
        );
    }

    #[test]
    fn mappings_in_braces() {
        let text = "net: {port: 1, bindIp: \"::,0.0.0.0\", tls: {mode: x, b: true}}\nempty: {}\n";
        let read = read_yaml(text);
        let all: Vec<(&str, &str)> = read
            .iter()
            .map(|one| (one.path.as_str(), one.value.as_str()))
            .collect();
        assert_eq!(
            all,
            [
                ("net.port", "1"),
                ("net.bindip", "::,0.0.0.0"),
                ("net.tls.mode", "x"),
                ("net.tls.b", "true"),
                ("empty", "{}"),
            ]
        );
    }

    #[test]
    fn mappings_of_yaml() {
        let text = "net:\n  port: 1\n  bindIp: \"0.0.0.0\" # x\nsecurity.on: false\nlist:\n  - a\n\
                    \x20 - name: b\nflow: [\"x\", y]\n";
        let read = read_yaml(text);
        let of = |path: &str| {
            let one = read.iter().find(|one| one.path == path).unwrap();
            (one.value.as_str(), one.line)
        };
        assert_eq!(of("net.bindip"), ("0.0.0.0", 3));
        assert_eq!(of("security.on"), ("false", 4));
        assert_eq!(of("list"), ("a", 6));
        assert_eq!(of("list.name"), ("b", 7));
        let items = read.iter().filter(|one| one.path == "flow");
        assert_eq!(
            items.map(|one| one.value.as_str()).collect::<Vec<_>>(),
            ["x", "y"]
        );
    }
}
