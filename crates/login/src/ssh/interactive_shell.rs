//! Builds the remote command that opens the user's shell as an interactive shell. The parent module sends it.
//!
//! An interactive shell with `-c` writes no history and shows no prompt. So the command itself runs what the shell
//! runs for a prompt. Two shells read the command: the user's login shell, which may be any shell, passes all of it as
//! one word to `/bin/sh`, and `/bin/sh` starts the interactive shell.

/// Text that the remote side prints when the session is established and the interactive shell starts.
pub(super) const BEGINS: &str = "assay-shell-begins";

/// Script for `/bin/sh`. It contains no single quote, so that every login shell takes it as one word. Each mark stands
/// in two parts, so that a trace of the command does not contain the mark. [`PROMPTS`] take the place of `CASES`.
const SCRIPT: &str = r#"
    printf "%s-%s\n" assay-shell begins;
    p=;
    case "${SHELL##*/}" in CASES esac;
    exec "${SHELL:-/bin/sh}" -l -i -c "$p printf %s-%s\\\\n assay-login is-there; exit"
"#;

/// Patterns for the name of a shell, and the commands with which this shell does what it does for a prompt.
const PROMPTS: [(&str, &str); 3] = [
    // The trap DEBUG does not run for the commands in a function. Bash before 4.4 cannot expand PS1 by name.
    (
        "bash|rbash",
        r#"
            assay_p() {
                for assay_c in "${PROMPT_COMMAND[@]}"; do eval "$assay_c"; done;
                case $BASH_VERSION in
                    [1-3].*|4.[0-3].*) ;;
                    *) eval ": \"\${PS1@P}\"";;
                esac;
            };
            assay_p;
        "#,
    ),
    (
        "zsh",
        r#"
            for f in precmd $precmd_functions; do typeset -f $f >/dev/null && $f; done;
            print -rP -- "$PS1$RPS1" >/dev/null;
        "#,
    ),
    ("fish", "emit fish_prompt; fish_prompt >/dev/null;"),
];

/// Returns the remote command that opens an interactive shell, prints [`BEGINS`] and then [`super::MARK`], and ends the
/// shell as `exit` does.
pub(super) fn open_interactive_shell() -> String {
    let cases = PROMPTS
        .map(|(shells, commands)| format!("{shells}) p={};;", double_quote(&join_lines(commands))));
    let script = join_lines(SCRIPT).replace("CASES", &cases.join(" "));
    format!("exec /bin/sh -c '{script}'")
}

/// Joins the lines of a script with blanks.
fn join_lines(script: &str) -> String {
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    lines.join(" ").trim().to_owned()
}

/// Quotes a text for `/bin/sh`.
fn double_quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}
