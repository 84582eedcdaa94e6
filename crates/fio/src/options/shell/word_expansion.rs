//! Expands the words of a command: assignments before the command, variables with several values, and braces.

use super::expand::{Scope, Value};
use super::lexer::{Part, Word};
use super::run::{Command, MOST_VALUES};
use super::{UNKNOWN, is_name};

/// Maximum number of combinations of the values of one command's variables.
const MOST_WAYS: usize = 16;

/// Returns the file to which `tee` writes.
pub(super) fn tee_file(command: &Command) -> Option<String> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let at = words
        .iter()
        .position(|word| *word == "tee")
        .filter(|at| *at <= 1)?;
    let mut names = words[at + 1..].iter().filter(|word| !word.starts_with('-'));
    names.next().map(|name| (*name).to_owned())
}

/// Returns one scope for each combination of values, if variables in the words have several possible values.
pub(super) fn choose_values(words: &[Word], scope: &Scope) -> Vec<Scope> {
    let mut all = vec![scope.clone()];
    let names = words.iter().flatten().filter_map(|part| match part {
        Part::Variable(name, _, _) => Some(name),
        _ => None,
    });
    let mut seen: Vec<&String> = Vec::new();
    for name in names {
        let Some(values) = scope.variables.get(name).filter(|values| values.len() > 1) else {
            continue;
        };
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        if all.len() * values.len() > MOST_WAYS {
            all.iter_mut()
                .for_each(|way| way.set(name, Value::unknown()));
            continue;
        }
        all = all
            .into_iter()
            .flat_map(|way| {
                values.iter().map(move |value| {
                    let mut way = way.clone();
                    way.set(name, value.clone());
                    if let Value::Text(text) = value
                        && !text.contains(UNKNOWN)
                    {
                        way.loops.push((name.clone(), text.clone()));
                    }
                    way
                })
            })
            .collect();
    }
    all
}

/// Parses `NAME=VALUE` and `NAME+=VALUE`. Returns the name, whether the value is appended, and the value.
pub(super) fn parse_assignment(word: &Word) -> Option<(String, bool, Word)> {
    let [Part::Text(first, false), rest @ ..] = word.as_slice() else {
        return None;
    };
    let (name, value) = first.split_once('=')?;
    let adds = name.ends_with('+');
    let name = name.strip_suffix('+').unwrap_or(name);
    if !is_name(name) {
        return None;
    }
    let mut word: Word = Vec::new();
    if !value.is_empty() {
        word.push(Part::Text(value.to_owned(), false));
    }
    word.extend(rest.iter().cloned());
    Some((name.to_owned(), adds, word))
}

/// Separates the assignments at the beginning of a command from its other words.
pub(super) fn split_assignments(words: &[Word]) -> (Vec<(String, bool, Word)>, &[Word]) {
    let before: Vec<_> = words.iter().map_while(parse_assignment).collect();
    let rest = &words[before.len()..];
    (before, rest)
}

/// Expands braces in an unquoted word that consists only of `{1..4}` or `{a,b}`. Returns any other word unchanged.
pub(super) fn expand_braces(field: &str, word: &Word) -> Vec<String> {
    let whole = vec![field.to_owned()];
    let unquoted = matches!(word.as_slice(), [Part::Text(_, false)]);
    let inner = field
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let Some(inner) = inner.filter(|_| unquoted) else {
        return whole;
    };
    if let Some((from, to)) = inner.split_once("..") {
        let (to, step) = to.split_once("..").unwrap_or((to, "1"));
        let (Ok(from), Ok(to), Ok(step)) = (
            from.parse::<u64>(),
            to.parse::<u64>(),
            step.parse::<usize>(),
        ) else {
            return whole;
        };
        let all = (from.min(to)..=from.max(to)).step_by(step.max(1));
        return all
            .take(MOST_VALUES * 2)
            .map(|value| value.to_string())
            .collect();
    }
    match inner.contains(',') {
        true => inner.split(',').map(str::to_owned).collect(),
        false => whole,
    }
}
