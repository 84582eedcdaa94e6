//! Replaces the placeholders in a remedy's steps, so that a user can paste commands between backticks.

/// Replaces the placeholders in all steps. Drops a step whose command lacks a value, provided that another step
/// remains.
pub(super) fn fill_steps(
    steps: &[String],
    words: &dyn Fn(&str) -> Option<Vec<String>>,
) -> Vec<String> {
    let filled: Vec<(String, bool)> = steps.iter().map(|step| fill_step(step, words)).collect();
    let some_are_whole = filled.iter().any(|(_, whole)| *whole);
    let kept = filled
        .into_iter()
        .filter(|(_, whole)| *whole || !some_are_whole);
    kept.map(|(step, _)| step).collect()
}

/// Replaces the placeholders in one step. Returns the step, and whether its commands are complete.
fn fill_step(step: &str, words: &dyn Fn(&str) -> Option<Vec<String>>) -> (String, bool) {
    let (mut out, mut whole) = (String::new(), true);
    for (number, part) in step.split('`').enumerate() {
        let is_code = number % 2 == 1;
        if number > 0 {
            out.push('`');
        }
        let mut rest = part;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let name = after.split_once('}').filter(|(name, _)| is_name(name));
            let value = name.and_then(|(name, behind)| Some((words(name)?, behind)));
            match value {
                Some((value, behind)) if is_code => {
                    let quoted: Vec<String> = value.iter().map(|word| quote_word(word)).collect();
                    out.push_str(&quoted.join(" "));
                    rest = behind;
                }
                Some((value, behind)) => {
                    out.push_str(&value.join(", "));
                    rest = behind;
                }
                None => {
                    whole &= !(is_code && name.is_some());
                    out.push('{');
                    rest = after;
                }
            }
        }
        out.push_str(rest);
    }
    (out, whole)
}

/// Returns whether the text between braces is a placeholder, and not syntax of a shell or a configuration.
fn is_name(name: &str) -> bool {
    let known =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-*".contains(&byte);
    !name.is_empty() && name.bytes().all(known)
}

/// Quotes a value for a shell if necessary.
fn quote_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@%:,=".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        // A backtick would end the command in the text.
        false => format!("'{}'", word.replace('\'', r"'\''").replace('`', r"'\140'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Option<Vec<String>> {
        let words: &[&str] = match name {
            "plain" => &["/etc/ssl/key.pem"],
            "blank" => &["/etc/ssl/my key.pem"],
            "quote" => &["it's"],
            "shell" => &["$(reboot);x"],
            "list" => &["a.service", "b c.service"],
            "empty" => &[""],
            _ => return None,
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn filled(steps: &[&str]) -> Vec<String> {
        let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
        fill_steps(&steps, &known)
    }

    #[test]
    fn what_stands_in_a_command_is_one_word_of_a_shell() {
        for (step, wanted) in [
            ("`chmod o-r {plain}`", "`chmod o-r /etc/ssl/key.pem`"),
            ("`chmod o-r {blank}`", "`chmod o-r '/etc/ssl/my key.pem'`"),
            ("`echo {quote}`", r"`echo 'it'\''s'`"),
            ("`echo {shell}`", "`echo '$(reboot);x'`"),
            (
                "`systemctl restart {list}`",
                "`systemctl restart a.service 'b c.service'`",
            ),
            ("`echo {empty}`", "`echo ''`"),
            // Other text and other braces stay unchanged.
            (
                "{list} and {blank}",
                "a.service, b c.service and /etc/ssl/my key.pem",
            ),
            ("`server { listen 80; }`", "`server { listen 80; }`"),
            (
                "`awk '{print $1}' {plain}`",
                "`awk '{print $1}' /etc/ssl/key.pem`",
            ),
        ] {
            assert_eq!(filled(&[step]), [wanted]);
        }
    }

    #[test]
    fn a_command_that_is_not_whole_is_left_out() {
        assert_eq!(
            filled(&["`restart {unit}`.", "Log in anew."]),
            ["Log in anew."]
        );
        assert_eq!(filled(&["`restart {unit}`."]), ["`restart {unit}`."]);
        assert_eq!(filled(&["{unit} in words.", "more"]).len(), 2);
    }
}
