//! Validates a page without a machine.

use crate::acts_table;
use crate::condition;
use crate::nearest_name;
use crate::resolve;
use assay_model::advice::{Advice, ParameterKind};
use assay_model::finding::{Check, ModeBits, Words};

/// An error in a page, and the path of the key in the front matter that causes it.
pub(crate) struct Found {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
}

pub(crate) fn found(path: &[&str], message: impl Into<String>) -> Found {
    Found {
        path: path.iter().map(|&step| step.to_owned()).collect(),
        message: message.into(),
    }
}

pub(crate) fn check(advice: &Advice) -> Result<(), Found> {
    filled(advice)?;
    parameters(advice)?;
    for (number, condition) in advice.when.iter().enumerate() {
        condition::syntax(&condition.cel).map_err(|error| {
            found(
                &["when", &number.to_string(), "cel"],
                format!("condition `{}`: {error}", condition.cel),
            )
        })?;
    }
    if let Some(check) = &advice.check {
        rule(check)?;
    }
    if let Some(trial) = &advice.trial {
        resolve::shape(advice, trial).map_err(|fault| Found {
            path: fault.path,
            message: fault.message,
        })?;
    }
    if let Some(acts) = &advice.acts {
        acts_table::check(advice, acts)?;
    }
    unused(advice)
}

/// Validates the `[check]` table of the page.
fn rule(rule: &Check) -> Result<(), Found> {
    let conditions = [
        ("violated", Some(&rule.violated)),
        ("applies", rule.applies.as_ref()),
    ];
    for (name, cel) in conditions {
        if let Some(cel) = cel {
            condition::syntax(cel)
                .map_err(|error| found(&["check", name], format!("condition `{cel}`: {error}")))?;
        }
    }
    for (name, text) in [("title", &rule.say.title), ("text", &rule.say.text)] {
        if text.trim().is_empty() {
            return Err(found(&["check", "say", name], format!("`{name}` is empty")));
        }
    }
    let edits = rule.remedy.iter().flat_map(|remedy| &remedy.edits);
    for (number, edit) in edits.enumerate() {
        let ways = [
            edit.to.is_some(),
            edit.drop.is_some(),
            !edit.replace.is_empty(),
            edit.add.is_some(),
            !edit.line.is_empty(),
            edit.comment.is_some(),
            edit.mode.is_some(),
            edit.create.is_some(),
        ];
        let empty = |words: &Option<Words>| {
            let words = words.as_ref();
            words.is_some_and(|words| words.with.iter().any(String::is_empty))
        };
        let wrong = match () {
            () if ways.iter().filter(|way| **way).count() > 1 => {
                "an edit sets a value, drops, replaces or adds words, changes a line or a mode, or creates a file: \
                 one of these"
            }
            () if edit
                .create
                .as_deref()
                .is_some_and(|text| !text.ends_with('\n') || !edit.key.starts_with("/etc/")) =>
            {
                "an edit that creates a file has a path below /etc as key, and a text of whole lines"
            }
            () if edit
                .mode
                .as_deref()
                .is_some_and(|mode| ModeBits::parse(mode).is_none()) =>
            {
                "`mode` is one clause of chmod, such as o-rwx"
            }
            () if edit.comment.as_deref() == Some("") => "`comment` is the sign of a comment",
            () if empty(&edit.drop) || empty(&edit.add) => {
                "an edit that drops or adds words names them"
            }
            () if edit
                .line
                .iter()
                .any(|[from, _]| from.trim_matches(['^', ' ']).is_empty()) =>
            {
                "an edit of a line names the part"
            }
            () if edit.replace.iter().any(|[from, _]| from.is_empty()) => {
                "an edit that replaces a part names it"
            }
            () if edit.fact.is_empty() || edit.key.is_empty() => {
                "an edit names a fact and the key in the file"
            }
            _ => continue,
        };
        let path = ["check", "remedy", "edits", &number.to_string()];
        return Err(found(&path, wrong));
    }
    let steps = rule
        .remedy
        .as_ref()
        .map(|remedy| (remedy.steps.len(), remedy.undo.len()));
    match (&rule.not_actionable, steps) {
        (None, None) => Err(found(
            &["check"],
            "a check has a `remedy`, or says in `not_actionable` why nothing can be done",
        )),
        (Some(_), Some(_)) => Err(found(
            &["check"],
            "a check has a `remedy` or a `not_actionable`, not both",
        )),
        (None, Some((0, _) | (_, 0))) => Err(found(
            &["check", "remedy"],
            "a remedy has at least one step, and says how it is reverted",
        )),
        _ => Ok(()),
    }
}

fn filled(advice: &Advice) -> Result<(), Found> {
    let texts: [(&[&str], &str); 8] = [
        (&["title"], &advice.title),
        (&["statement"], &advice.statement),
        (&["predicts"], &advice.predicts),
        (&["source", "who"], &advice.source.who),
        (&["source", "claimed"], &advice.source.claimed),
        (&["risk", "text"], &advice.risk.text),
        (&["literature", "text"], &advice.literature.text),
        (
            &["literature", "references"],
            advice
                .literature
                .references
                .first()
                .map_or("", String::as_str),
        ),
    ];
    for (path, text) in texts {
        if text.trim().is_empty() {
            return Err(found(path, format!("`{}` is empty", path.join("."))));
        }
    }
    match advice.title.contains('\n') || advice.statement.contains('\n') {
        true => Err(found(
            &["title"],
            "`title` and `statement` are one line each",
        )),
        false => Ok(()),
    }
}

fn parameters(advice: &Advice) -> Result<(), Found> {
    for (name, parameter) in &advice.parameters {
        let path = ["parameters", name];
        if resolve::BUILTIN.contains(&name.as_str()) || resolve::LATER.contains(&name.as_str()) {
            return Err(found(
                &path,
                format!("`{name}` cannot be a parameter: assay fills it in itself"),
            ));
        }
        let values = parameter.default.iter().chain(&parameter.choices);
        for value in values {
            resolve::fits(name, parameter, value)
                .map_err(|error| found(&path, error.to_string()))?;
        }
        if parameter.kind == ParameterKind::Flag && !parameter.choices.is_empty() {
            return Err(found(
                &path,
                format!("`{name}` is a flag and needs no `choices`"),
            ));
        }
    }
    Ok(())
}

/// Rejects parameters that the page does not use, because such parameters mislead the user.
fn unused(advice: &Advice) -> Result<(), Found> {
    let Some(trial) = &advice.trial else {
        return Ok(());
    };
    let used = resolve::placeholders(trial);
    for name in advice.parameters.keys() {
        let in_conditions = advice.when.iter().any(|condition| {
            condition.cel.contains(&format!("parameters[\"{name}\"]"))
                || condition.cel.contains(&format!("parameters.{name}"))
        });
        if !used.contains(name) && !in_conditions {
            return Err(found(
                &["parameters", name],
                format!(
                    "parameter `{name}` is used nowhere; the trial uses {}",
                    nearest_name::list(used.iter().map(String::as_str))
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::page;

    pub(crate) const PAGE: &str = r#"+++
title = "Swappiness"
statement = "Set vm.swappiness to 10."
predicts = "p99 falls."

[[when]]
# a comment
cel = '"tool.fio" in facts'
otherwise = "fio is not installed"

[source]
who = "Somebody, 2014"
claimed = "It is faster."
[literature]
standing = "conditional"
text = "It depends."
references = ["sysctl/vm.rst, Linux 6.1"]

[risk]
level = "low"
text = "None."

[parameters.swap]
about = "The value."
default = "10"
[trial]
target = "directory"
metric = "p99"
change = { kind = "set", value = "{swap}", setting = {
  kind = "sysctl", key = "vm.swappiness" } }
load = { kind = "command", argv = ["true", "{target}"] }
+++
## Claim

It.

## Why it may help

It.

## When it does not apply

Never.

## How we test

So.

## Undo

Nothing.

## Sources

None.
"#;

    fn message(from: &str, to: &str) -> String {
        let text = PAGE.replacen(from, to, 1);
        assert_ne!(text, PAGE, "{from}");
        page::parse("a/b.md", &text).unwrap_err().to_string()
    }

    #[test]
    fn what_misleads_is_refused() {
        insta::assert_snapshot!(message("predicts = \"p99 falls.\"", "predicts = \" \""), @"a/b.md:4: `predicts` is empty");
        assert!(
            message(
                "references = [\"sysctl/vm.rst, Linux 6.1\"]",
                "references = []"
            )
            .contains("references")
        );
        insta::assert_snapshot!(message("value = \"{swap}\"", "value = \"10\""), @"a/b.md:23: parameter `swap` is used nowhere; the trial uses `target`");
        assert!(
            message("default = \"10\"", "default = \"ten\"\nkind = \"number\"").contains("number")
        );
        assert!(message("[parameters.swap]", "[parameters.target]").contains("itself"));
        assert!(message("default = \"10\"", "default = \"10\"\nchoices = [\"1\"]").contains("`1`"));
    }
}
