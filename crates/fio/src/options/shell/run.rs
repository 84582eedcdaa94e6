//! Interprets a script like a shell, and records the commands that the script would run.

use super::expand::{
    Commands, Scope, Value, expand_assignment, expand_fields, expand_text, is_deep,
};
use super::lexer::{Part, Unclosed, Word, split_tokens, word_of};
use super::parse::{Node, Simple, parse};
use super::word_expansion::{
    choose_values, expand_braces, parse_assignment, split_assignments, tee_file,
};
use super::{UNKNOWN, is_name};
use std::collections::BTreeMap;

/// A command that the script runs, with its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::options) struct Command {
    /// Words of the command. [`UNKNOWN`] marks values that the text does not contain.
    pub words: Vec<String>,
    /// Values of loop variables and branches with which the command has these words.
    pub chosen: Vec<(String, String)>,
    /// Variables that are exported, or assigned for this command.
    pub environment: BTreeMap<String, String>,
    /// Text of the standard input, if the script contains it.
    pub input: Option<String>,
}

/// Result of interpreting a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::options) struct Script {
    /// Commands in the order in which they run. A command in a loop is listed once for each value.
    pub commands: Vec<Command>,
    /// Files that the script writes, with their contents.
    pub files: BTreeMap<String, String>,
    /// Notes on parts that could not be interpreted.
    pub notes: Vec<String>,
}

/// Maximum number of values that a loop may have.
pub(super) const MOST_VALUES: usize = 64;
const MOST_COMMANDS: usize = 4096;
const DEEPEST: usize = 12;
/// Maximum size of a script in bytes.
const LONGEST_SCRIPT: usize = 512 * 1024;
/// Maximum size in bytes of a file that a script writes.
const MOST_WRITTEN: usize = 1 << 20;
/// Maximum number of interpreted commands. Nested loops and functions multiply this number.
const MOST_STEPS: usize = 5_000;

/// Interprets a script. `known` contains variables that are set outside of the script.
///
/// # Errors
/// A quotation mark is not closed.
pub(in crate::options) fn read(
    text: &str,
    known: &BTreeMap<String, String>,
) -> Result<Script, Unclosed> {
    let long = text.len() > LONGEST_SCRIPT;
    let text = match long {
        true => &text[..text.floor_char_boundary(LONGEST_SCRIPT)],
        false => text,
    };
    // After truncation a quotation mark may be open.
    let tokens = match split_tokens(text) {
        Err(_) if long => Vec::new(),
        found => found?,
    };
    let nodes = parse(&tokens);
    let mut scope = Scope::default();
    for (name, value) in known {
        scope.set(name, Value::Text(value.clone()));
    }
    let mut runner = Runner::default();
    if long {
        runner
            .script
            .notes
            .push("the script is longer than 512 KiB: only its beginning is looked at".to_owned());
    }
    runner.nodes(&nodes, &mut scope);
    runner.uncalled(&mut scope);
    Ok(runner.script)
}

#[derive(Default)]
struct Runner {
    script: Script,
    functions: BTreeMap<String, (Vec<Node>, bool)>,
    exported: BTreeMap<String, String>,
    /// Output of the previous command, if it is piped to this one.
    piped: Option<String>,
    depth: usize,
    steps: usize,
}

impl Commands for Runner {
    fn output(&mut self, text: &str, scope: &Scope) -> String {
        let unknown = UNKNOWN.to_string();
        if self.depth >= DEEPEST {
            return unknown;
        }
        let Ok(tokens) = split_tokens(text) else {
            return unknown;
        };
        let nodes = parse(&tokens);
        let mut scope = scope.clone();
        self.depth += 1;
        let printed = match nodes.as_slice() {
            [Node::Simple(simple)] => self.printed(simple, &scope),
            _ => None,
        };
        if printed.is_none() {
            self.nodes(&nodes, &mut scope);
        }
        self.depth -= 1;
        printed.map_or(unknown, |printed| printed.trim_end_matches('\n').to_owned())
    }
}

impl Runner {
    fn nodes(&mut self, nodes: &[Node], scope: &mut Scope) {
        for node in nodes {
            self.steps += 1;
            if self.script.commands.len() >= MOST_COMMANDS || self.steps >= MOST_STEPS {
                let note = "the script goes on for long: only its beginning is looked at";
                if !self.script.notes.iter().any(|known| known == note) {
                    self.script.notes.push(note.to_owned());
                }
                return;
            }
            self.node(node, scope);
        }
    }

    fn node(&mut self, node: &Node, scope: &mut Scope) {
        match node {
            Node::Simple(simple) => self.simple(simple, scope),
            Node::Group(body) => self.nodes(body, scope),
            Node::Repeated(body) => {
                let mut inner = scope.clone();
                self.nodes(body, &mut inner);
                scope.merge(vec![inner], false);
            }
            Node::Branches(branches, always) => {
                let mut ends = Vec::new();
                for branch in branches {
                    let mut inner = scope.clone();
                    self.nodes(branch, &mut inner);
                    ends.push(inner);
                }
                scope.merge(ends, *always);
            }
            Node::Function(name, body) => {
                let known = (body.clone(), false);
                self.functions.insert(name.clone(), known);
            }
            Node::For { name, values, body } => {
                self.for_loop((name, values.as_deref(), body), scope)
            }
        }
    }

    /// Interprets functions that are never called. Their arguments are unknown.
    fn uncalled(&mut self, scope: &mut Scope) {
        let left = self.functions.values().filter(|one| !one.1);
        let left: Vec<Vec<Node>> = left.map(|one| one.0.clone()).collect();
        for body in left {
            let mut inner = scope.clone();
            inner.arguments = None;
            self.nodes(&body, &mut inner);
        }
    }

    fn for_loop(
        &mut self,
        (name, values, body): (&str, Option<&[Word]>, &[Node]),
        scope: &mut Scope,
    ) {
        let mut list: Vec<String> = Vec::new();
        match values {
            Some(words) => {
                for word in words {
                    list.extend(
                        expand_fields(word, scope, self)
                            .iter()
                            .flat_map(|one| expand_braces(one, word)),
                    );
                }
            }
            None => list.extend(scope.arguments.clone().unwrap_or_default()),
        }
        if list.is_empty() {
            list.push(UNKNOWN.to_string());
        }
        if list.len() > MOST_VALUES {
            self.script.notes.push(format!(
                "`{}` goes through {} values; looked at the first {MOST_VALUES}",
                name.escape_debug(),
                list.len()
            ));
            list.truncate(MOST_VALUES);
        }
        let several = list.len() > 1;
        let mut end = scope.clone();
        for value in list {
            let mut inner = end.clone();
            inner.set(name, Value::Text(value.clone()));
            if several && !value.contains(UNKNOWN) {
                inner.loops.push((name.to_owned(), value));
            }
            self.nodes(body, &mut inner);
            inner.loops.clone_from(&scope.loops);
            end = inner;
        }
        *scope = end;
    }

    fn simple(&mut self, simple: &Simple, scope: &mut Scope) {
        let input = self.piped.take();
        self.assign_defaults(&simple.words, scope);
        let (assignments, words) = split_assignments(&simple.words);
        if words.is_empty() {
            for (name, adds, word) in assignments {
                let value = expand_assignment(&word, scope, self);
                match adds {
                    true => scope.add(&name, value),
                    false => scope.set(&name, value),
                }
            }
            return;
        }
        let mut environment = self.exported.clone();
        for (name, _, word) in assignments {
            environment.insert(name, expand_text(&word, scope, self));
        }
        if self.builtin(words, scope) {
            return;
        }
        let printed = self.printed(simple, scope);
        if let Some((file, append)) = &simple.output {
            let file = expand_text(file, scope, self);
            let here = self.here(simple, scope);
            if let Some(printed) = printed.clone().or(here) {
                let known = self.script.files.entry(file).or_default();
                if !append {
                    known.clear();
                }
                if known.len() + printed.len() <= MOST_WRITTEN {
                    known.push_str(&printed);
                }
            }
        }
        let input = self.here(simple, scope).or(input);
        if simple.piped {
            self.piped = printed;
        }
        let all = choose_values(words, scope);
        let several = all.len() > 1;
        for way in all {
            let command = Command {
                words: words
                    .iter()
                    .flat_map(|word| expand_fields(word, &way, self))
                    .collect(),
                chosen: way.loops.clone(),
                environment: environment.clone(),
                input: input.clone(),
            };
            let mut inner = way.clone();
            self.command(command, &mut inner);
            // Assignments in a function stay valid.
            if !several {
                scope.variables = inner.variables;
            }
        }
    }

    fn here(&mut self, simple: &Simple, scope: &Scope) -> Option<String> {
        let (body, expands) = simple.here.as_ref()?;
        Some(match expands {
            true => expand_text(&word_of(body, true), scope, self),
            false => body.clone(),
        })
    }

    /// Calls a function of the script, or records a command.
    fn command(&mut self, command: Command, scope: &mut Scope) {
        let Some(first) = command.words.first() else {
            return;
        };
        if let Some(file) = tee_file(&command)
            && let Some(input) = &command.input
        {
            self.script.files.insert(file, input.clone());
        }
        if first == "eval" && self.depth < DEEPEST {
            let text = command.words.get(1..).unwrap_or_default().join(" ");
            if let Ok(tokens) = split_tokens(&text) {
                self.depth += 1;
                self.nodes(&parse(&tokens), scope);
                self.depth -= 1;
            }
            return;
        }
        if let Some((body, called)) = self.functions.get_mut(first) {
            if self.depth < DEEPEST {
                *called = true;
                let body = body.clone();
                let mut inner = scope.clone();
                inner.arguments = Some(command.words.get(1..).unwrap_or_default().to_vec());
                self.depth += 1;
                self.nodes(&body, &mut inner);
                self.depth -= 1;
                scope.variables = inner.variables;
            }
            return;
        }
        self.script.commands.push(command);
    }

    /// Sets the variables in `${NAME:=DEFAULT}` that have no value yet, as in `: "${DEVICE:=/dev/sdb}"`.
    fn assign_defaults(&mut self, words: &[Word], scope: &mut Scope) {
        for part in words.iter().flatten() {
            let Part::Variable(name, rest, _) = part else {
                continue;
            };
            let Some(default) = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('=')) else {
                continue;
            };
            let is_empty = |value: &Value| value.first().is_empty();
            let replaces_empty = rest.starts_with(':');
            let is_missing = scope
                .value(name)
                .is_none_or(|value| replaces_empty && is_empty(value));
            if is_missing && is_name(name) && !is_deep(default) {
                let value = expand_text(&word_of(default, false), scope, self);
                scope.set(name, Value::Text(value));
            }
        }
    }

    /// Interprets shell builtins that change variables.
    fn builtin(&mut self, words: &[Word], scope: &mut Scope) -> bool {
        let [first, rest @ ..] = words else {
            return false;
        };
        let [Part::Text(name, false)] = first.as_slice() else {
            return false;
        };
        match name.as_str() {
            "export" | "local" | "readonly" | "declare" | "typeset" => {
                for word in rest {
                    if let Some((key, adds, value)) = parse_assignment(word) {
                        let value = expand_assignment(&value, scope, self);
                        if name == "export"
                            && let Value::Text(text) = &value
                        {
                            self.exported.insert(key.clone(), text.clone());
                        }
                        match adds {
                            true => scope.add(&key, value),
                            false => scope.set(&key, value),
                        }
                    } else if name == "export" {
                        let key = expand_text(word, scope, self);
                        if let Some(Value::Text(value)) =
                            scope.variables.get(&key).and_then(|all| all.first())
                        {
                            self.exported.insert(key, value.clone());
                        }
                    }
                }
                true
            }
            "read" | "mapfile" | "readarray" | "unset" | "getopts" => {
                for word in rest {
                    let key = expand_text(word, scope, self);
                    if is_name(&key) {
                        scope.set(&key, Value::unknown());
                    }
                }
                scope.set("OPTARG", Value::unknown());
                true
            }
            "shift" => {
                if let Some(words) = scope.arguments.as_mut().filter(|words| !words.is_empty()) {
                    words.remove(0);
                }
                true
            }
            "set" => {
                let all: Vec<String> = rest
                    .iter()
                    .flat_map(|word| expand_fields(word, scope, self))
                    .collect();
                if let Some(at) = all.iter().position(|word| word == "--") {
                    scope.arguments = Some(all[at + 1..].to_vec());
                }
                true
            }
            ":" | "true" | "false" | "return" | "exit" | "break" | "continue" | "trap" => true,
            _ => false,
        }
    }

    /// Returns the output of `echo`, `printf`, `seq`, and of `cat` with a here-document.
    fn printed(&mut self, simple: &Simple, scope: &Scope) -> Option<String> {
        let (_, words) = split_assignments(&simple.words);
        let [Part::Text(name, false)] = words.first()?.as_slice() else {
            return None;
        };
        let mut rest = || -> Vec<String> {
            let words = words.get(1..).unwrap_or_default();
            words
                .iter()
                .flat_map(|word| expand_fields(word, scope, self))
                .collect()
        };
        match name.as_str() {
            "echo" => {
                let all = rest();
                let skipped = all
                    .iter()
                    .take_while(|word| matches!(word.as_str(), "-e" | "-n" | "-en"))
                    .count();
                let text = all[skipped..].join(" ");
                Some(text.replace("\\n", "\n") + "\n")
            }
            "printf" => {
                let all = rest();
                let format = all.first()?.replace("\\n", "\n");
                let mut values = all[1..].iter();
                let mut out = String::new();
                loop {
                    let mut pieces = format.split("%s");
                    out.push_str(pieces.next().unwrap_or_default());
                    for piece in pieces {
                        out.push_str(values.next().map_or("", String::as_str));
                        out.push_str(piece);
                    }
                    if values.len() == 0 || !format.contains("%s") {
                        return (!format.replace("%s", "").contains('%')).then_some(out);
                    }
                }
            }
            "cat" if simple.here.is_some() => self.here(simple, scope),
            "seq" => {
                let numbers: Option<Vec<u64>> =
                    rest().iter().map(|word| word.parse().ok()).collect();
                let numbers = numbers?;
                let (from, step, to) = match numbers.as_slice() {
                    [to] => (1, 1, *to),
                    [from, to] => (*from, 1, *to),
                    [from, step, to] => (*from, (*step).max(1), *to),
                    _ => return None,
                };
                let step = usize::try_from(step).ok()?;
                let all = (from..=to).step_by(step).take(MOST_VALUES * 2);
                Some(
                    all.map(|number| number.to_string())
                        .collect::<Vec<_>>()
                        .join("\n"),
                )
            }
            _ => None,
        }
    }
}
