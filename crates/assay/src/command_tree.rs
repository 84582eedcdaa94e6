//! Position of each verb in the command line: the groups of `assay --help`, and verbs that are subcommands of other
//! verbs. The module `verbs` contains the verbs themselves.

use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::{ArgMatches, Command};
use std::fmt::Write as _;

/// The groups of `assay --help` in their order.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("Diagnose", &["why", "check", "stack", "facts", "probe"]),
    (
        "Measure",
        &["run", "web", "net", "login", "lint", "report", "serve"],
    ),
    ("Improve", &["tune", "trial", "advice", "study"]),
    ("Plan", &["plan", "dups"]),
    ("Many machines", &["fleet"]),
    ("Tools", &["lab"]),
];

/// Verbs that are subcommands of another verb. Their former names at the top level are hidden aliases.
pub const BELOW: [(&str, &[&str]); 5] = [
    ("stack", &["disks"]),
    ("probe", &["pins", "cert"]),
    (
        "report",
        &["runs", "show", "compare", "export", "import", "store"],
    ),
    ("fleet", &["changed", "watch", "pool"]),
    ("lab", &["demo"]),
];

/// Verbs that the help does not list.
const HIDDEN: [&str; 1] = ["version"];

/// Moves each verb to its place, and lists the groups in the top-level help.
pub fn arrange(mut command: Command) -> Command {
    for (parent, verbs) in BELOW {
        for verb in verbs {
            let Some(found) = command.find_subcommand(verb).cloned() else {
                continue;
            };
            command = command
                .mut_subcommand(verb, |verb| verb.hide(true))
                .mut_subcommand(parent, |parent| parent.subcommand(found));
        }
        let takes_words = command
            .find_subcommand(parent)
            .is_some_and(|parent| parent.get_positionals().next().is_some());
        command = command.mut_subcommand(parent, |parent| {
            parent.args_conflicts_with_subcommands(takes_words)
        });
    }
    for verb in HIDDEN {
        command = command.mut_subcommand(verb, |verb| verb.hide(true));
    }
    let template = template(&command);
    command.help_template(template)
}

/// Returns the part of the parsed command line whose subcommand is the verb. This is the top level, or the verb above
/// (`assay report show`).
pub fn verb_matches(matches: &ArgMatches) -> &ArgMatches {
    let Some((parent, below)) = matches.subcommand() else {
        return matches;
    };
    let verbs = BELOW.iter().find(|(name, _)| *name == parent);
    let is_below = verbs
        .zip(below.subcommand_name())
        .is_some_and(|((_, verbs), name)| verbs.contains(&name));
    match is_below {
        true => below,
        false => matches,
    }
}

/// Returns the template of the top-level help: that of clap, but with groups instead of one list of verbs.
fn template(command: &Command) -> StyledStr {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut groups = String::new();
    for (title, verbs) in GROUPS {
        let _ = writeln!(groups, "{header}{title}:{header:#}");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(groups, "  {literal}{verb:<7}{literal:#} {about}");
        }
        groups.push('\n');
    }
    StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} \
         {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}
