//! Values of variables, and the expansion of words.

use super::lexer::{Part, Word, word_of};
use super::{UNKNOWN, is_name};
use std::collections::BTreeMap;

/// Value of a variable in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A text. Unknown parts are [`UNKNOWN`].
    Text(String),
    /// An array with its elements.
    List(Vec<String>),
}

/// Maximum length of a variable or word, because `A=$A$A` doubles the length with every iteration.
pub(super) const LONGEST: usize = 64 * 1024;
/// Maximum nesting of substitutions in a word.
const DEEPEST: usize = 16;

/// Returns whether a text may contain deeply nested substitutions.
pub(super) fn is_deep(text: &str) -> bool {
    text.matches("${").count() + text.matches("$(").count() > DEEPEST
}

impl Value {
    /// Returns the value. If it is too long, returns an unknown value.
    fn bounded(self) -> Self {
        let length = match &self {
            Self::Text(text) => text.len(),
            Self::List(list) => list.iter().map(|one| one.len() + 1).sum(),
        };
        match length > LONGEST {
            true => Self::unknown(),
            false => self,
        }
    }

    pub fn unknown() -> Self {
        Self::Text(UNKNOWN.to_string())
    }

    pub(super) fn first(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(list) => list.first().cloned().unwrap_or_default(),
        }
    }
}

/// Variables, arguments and loops at one point of a script.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Possible values of each variable. There are several if branches set different values.
    pub variables: BTreeMap<String, Vec<Value>>,
    /// Arguments of the current function; `None` if they are unknown.
    pub arguments: Option<Vec<String>>,
    /// Enclosing loops, as (variable, current value).
    pub loops: Vec<(String, String)>,
}

/// Keywords of fio that look like variables (`fio_keywords`, options.c). They are not replaced.
const KEYWORDS: [&str; 4] = ["pagesize", "mb_memory", "ncpus", "jobname"];

/// Evaluates the commands of command substitutions.
pub(super) trait Commands {
    /// Returns the output of commands. Unknown parts of the output are [`UNKNOWN`].
    fn output(&mut self, text: &str, scope: &Scope) -> String;
}

impl Scope {
    /// Returns the value of a variable in the branches that are currently selected.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.variables.get(name).and_then(|values| values.first())
    }

    /// Sets a variable. All its previous values are dropped.
    pub fn set(&mut self, name: &str, value: Value) {
        self.variables
            .insert(name.to_owned(), vec![value.bounded()]);
    }

    /// Appends a value to a variable, like `NAME+=`.
    pub fn add(&mut self, name: &str, value: Value) {
        let known = self.value(name).cloned();
        let sum = match (known, value) {
            (Some(Value::List(mut list)), Value::List(more)) => {
                list.extend(more);
                Value::List(list)
            }
            (Some(Value::List(mut list)), Value::Text(more)) => {
                list.push(more);
                Value::List(list)
            }
            (Some(Value::Text(text)), Value::Text(more)) => Value::Text(text + &more),
            (_, value) => value,
        };
        self.set(name, sum);
    }

    /// Merges the states after several branches. Exactly one branch ran if `always` is true, otherwise at most one.
    pub fn merge(&mut self, ends: Vec<Scope>, always: bool) {
        const MOST: usize = 8;
        let before = (!always).then(|| self.variables.clone());
        let mut merged: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let all = ends.into_iter().map(|end| end.variables).chain(before);
        let all: Vec<_> = all.collect();
        for name in all.iter().flat_map(BTreeMap::keys) {
            if merged.contains_key(name) {
                continue;
            }
            let mut values: Vec<Value> = Vec::new();
            for variables in &all {
                let unset = vec![Value::unknown()];
                for value in variables.get(name).unwrap_or(&unset) {
                    if !values.contains(value) && values.len() < MOST {
                        values.push(value.clone());
                    }
                }
            }
            merged.insert(name.clone(), values);
        }
        if !all.is_empty() {
            self.variables = merged;
        }
    }
}

/// Expands a word into fields.
pub(super) fn expand_fields(
    word: &Word,
    scope: &Scope,
    commands: &mut dyn Commands,
) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut length = 0;
    for part in word {
        let known = current.as_ref().map_or(0, String::len);
        length = done
            .last()
            .map_or(known, |last| last.len().max(known))
            .max(length);
        if length > LONGEST || done.len() > LONGEST {
            return vec![UNKNOWN.to_string()];
        }
        match part {
            Part::Text(text, _) => current.get_or_insert_default().push_str(text),
            Part::Array(_) => {}
            Part::Variable(name, rest, quoted) => match list_of(name, rest, scope) {
                Some(list) if *quoted => {
                    let mut list = list.into_iter();
                    if let Some(first) = list.next() {
                        current.get_or_insert_default().push_str(&first);
                    }
                    for next in list {
                        done.extend(current.take());
                        current = Some(next);
                    }
                }
                Some(list) => split(&list.join(" "), &mut done, &mut current),
                None => {
                    let text = expand_variable(name, rest, scope, commands);
                    put(&text, *quoted, &mut done, &mut current);
                }
            },
            Part::Commands(text, quoted) => {
                let text = commands.output(text, scope);
                put(&text, *quoted, &mut done, &mut current);
            }
            Part::Arithmetic(text) => {
                let text = expand_arithmetic(text, scope, commands);
                current.get_or_insert_default().push_str(&text);
            }
        }
    }
    done.extend(current);
    done
}

/// Expands a word into text without splitting it.
pub(super) fn expand_text(word: &Word, scope: &Scope, commands: &mut dyn Commands) -> String {
    let quoted: Word = word
        .iter()
        .map(|part| match part.clone() {
            Part::Text(text, _) => Part::Text(text, true),
            Part::Variable(name, rest, _) => Part::Variable(name, rest, true),
            Part::Commands(text, _) => Part::Commands(text, true),
            other => other,
        })
        .collect();
    expand_fields(&quoted, scope, commands).join(" ")
}

/// Expands the value of an assignment.
pub(super) fn expand_assignment(word: &Word, scope: &Scope, commands: &mut dyn Commands) -> Value {
    if let [Part::Array(elements)] = word.as_slice() {
        let all = elements
            .iter()
            .flat_map(|one| expand_fields(one, scope, commands));
        return Value::List(all.collect());
    }
    Value::Text(expand_text(word, scope, commands))
}

fn put(text: &str, quoted: bool, done: &mut Vec<String>, current: &mut Option<String>) {
    match quoted {
        true => current.get_or_insert_default().push_str(text),
        false => split(text, done, current),
    }
}

fn split(text: &str, done: &mut Vec<String>, current: &mut Option<String>) {
    if text.starts_with(char::is_whitespace) {
        done.extend(current.take());
    }
    let mut words = text.split_whitespace();
    if let Some(first) = words.next() {
        current.get_or_insert_default().push_str(first);
    }
    for next in words {
        done.extend(current.take());
        *current = Some(next.to_owned());
    }
    if text.ends_with(char::is_whitespace) {
        done.extend(current.take());
    }
}

/// Returns the elements of an array, or the arguments of a function.
fn list_of(name: &str, rest: &str, scope: &Scope) -> Option<Vec<String>> {
    if matches!(name, "@" | "*") && rest.is_empty() {
        let unknown = || vec![UNKNOWN.to_string()];
        return Some(scope.arguments.clone().unwrap_or_else(unknown));
    }
    match (scope.value(name), rest) {
        (Some(Value::List(list)), "[@]" | "[*]") => Some(list.clone()),
        _ => None,
    }
}

fn expand_variable(name: &str, rest: &str, scope: &Scope, commands: &mut dyn Commands) -> String {
    let known = match name.parse::<usize>() {
        Ok(0) => None,
        Ok(number) => scope
            .arguments
            .as_ref()
            .map(|words| words.get(number - 1).cloned().unwrap_or_default()),
        Err(_) => scope.value(name).map(Value::first),
    };
    if KEYWORDS.contains(&name) && known.is_none() && rest.is_empty() {
        return format!("${name}");
    }
    let unknown = || UNKNOWN.to_string();
    if !is_name(name) && name.parse::<usize>().is_err() {
        return unknown();
    }
    let mut filled = |default: &str| match is_deep(default) {
        true => UNKNOWN.to_string(),
        false => expand_text(&word_of(default, false), scope, commands),
    };
    let set = known.clone().filter(|value| !value.is_empty());
    match rest {
        "" | "[@]" | "[*]" => known.unwrap_or_else(unknown),
        "[0]" => known.unwrap_or_else(unknown),
        ",," => known.map_or_else(unknown, |text| text.to_lowercase()),
        "^^" => known.map_or_else(unknown, |text| text.to_uppercase()),
        _ => {
            let default = [":-", ":=", "-", "="]
                .into_iter()
                .find_map(|sign| rest.strip_prefix(sign));
            if let Some(default) = default {
                return set.unwrap_or_else(|| filled(default));
            }
            if let Some(other) = rest.strip_prefix(":+").or_else(|| rest.strip_prefix('+')) {
                return match known {
                    Some(text) if text.is_empty() => String::new(),
                    Some(_) => filled(other),
                    None => unknown(),
                };
            }
            if rest.starts_with(":?") || rest.starts_with('?') {
                return known.unwrap_or_else(unknown);
            }
            let list = scope.value(name);
            let at = rest
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            match (list, at.and_then(|at| at.parse::<usize>().ok())) {
                (Some(Value::List(list)), Some(at)) => list.get(at).cloned().unwrap_or_default(),
                _ => unknown(),
            }
        }
    }
}

/// Evaluates an arithmetic expression if all its values are known.
fn expand_arithmetic(sum: &str, scope: &Scope, commands: &mut dyn Commands) -> String {
    if is_deep(sum) {
        return UNKNOWN.to_string();
    }
    let filled = expand_text(&word_of(sum, false), scope, commands);
    let mut named = String::new();
    let mut word = String::new();
    for c in filled.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match is_name(&word) {
            true => named.push_str(&expand_variable(&word, "", scope, commands)),
            false => named.push_str(&word),
        }
        word.clear();
        named.push(c);
    }
    crate::options::quantity::sum(&named).map_or_else(|| UNKNOWN.to_string(), |sum| sum.to_string())
}
