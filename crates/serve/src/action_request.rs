//! Command lines of assay that a visitor can start with a form. No other command is ever started, and no shell
//! interprets the arguments.

use assay_advice::Catalogue;
use std::collections::BTreeMap;

/// Maximum length of a form field in bytes.
const MOST_BYTES: usize = 1_024;
/// Maximum number of fields in a form.
const MOST_FIELDS: usize = 16;

/// Fields of a form, as the browser sent them.
#[derive(Debug, Default)]
pub(crate) struct FormFields(BTreeMap<String, String>);

impl FormFields {
    /// Decodes the body of a form. A value that is too long is refused and not cut, because a cut name could be the
    /// name of another object.
    ///
    /// # Errors
    /// A field occurs twice, a value is too long, or there are too many fields.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            if value.len() > MOST_BYTES || all.len() >= MOST_FIELDS {
                return Err(format!(
                    "A field has more than {MOST_BYTES} bytes, or there are more than {MOST_FIELDS} fields."
                ));
            }
            if all
                .insert(name.clone().into_owned(), value.into_owned())
                .is_some()
            {
                return Err(format!("The field {} stands twice.", name.escape_debug()));
            }
        }
        Ok(Self(all))
    }

    /// Returns the value of a field. An empty field counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

/// A command of assay that a visitor requested with a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActionRequest {
    /// Kind of the command: `trial`, `run`, `web`, `why`, `tune` or `undo`.
    pub(crate) kind: &'static str,
    /// Subject of the command for users, such as the advice or the target.
    pub(crate) subject: String,
    /// Arguments that follow the program name `assay`.
    pub(crate) words: Vec<String>,
}

/// Builds the command line that a form requests.
///
/// # Errors
/// A field is missing or invalid. The text is a sentence for the user.
pub(crate) fn build_request(
    fields: &FormFields,
    catalogue: &Catalogue,
) -> Result<ActionRequest, String> {
    match fields.get("kind") {
        Some("trial") => build_trial(fields, catalogue),
        Some("run") => build_run(fields),
        Some("web") => build_web(fields),
        Some("why") => build_why(fields),
        Some("tune") => build_tune(fields),
        Some("undo") => build_undo(fields),
        _ => Err("The form names nothing that can be started.".to_owned()),
    }
}

fn build_trial(fields: &FormFields, catalogue: &Catalogue) -> Result<ActionRequest, String> {
    let id = fields.get("advice").unwrap_or_default();
    // Only an id: on the command line a path would be advice as well.
    let known = catalogue.all().into_iter().find(|one| one.id == id);
    let advice = known.ok_or_else(|| {
        format!(
            "The catalogue has no advice {}.",
            id.chars().take(80).collect::<String>().escape_debug()
        )
    })?;
    if advice.trial.is_none() {
        return Err(format!("{} has no trial.", advice.id));
    }
    let target = read_target(fields)?;
    let mut words = vec!["trial".to_owned(), "--yes".to_owned()];
    add_option(&mut words, "--budget", fields.get("budget"), is_time)?;
    add_option(&mut words, "--slot", fields.get("slot"), is_time)?;
    add_option(&mut words, "--size", fields.get("size"), is_size)?;
    add_option(&mut words, "--pairs", fields.get("pairs"), is_number)?;
    words.extend(["--".to_owned(), advice.id.clone(), target.clone()]);
    Ok(ActionRequest {
        kind: "trial",
        subject: format!("{} on {target}", advice.id),
        words,
    })
}

fn build_run(fields: &FormFields) -> Result<ActionRequest, String> {
    let plan = fields.get("plan").unwrap_or("quick");
    if !is_name(plan) {
        return Err("A plan is one of those that are built in, such as quick.".to_owned());
    }
    let target = read_target(fields)?;
    Ok(ActionRequest {
        kind: "run",
        subject: format!("{plan} on {target}"),
        words: ["run", "--", plan, &target].map(str::to_owned).to_vec(),
    })
}

fn build_web(fields: &FormFields) -> Result<ActionRequest, String> {
    let url = fields.get("url").unwrap_or_default();
    check_text("The URL", url)?;
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    match host {
        None | Some("") => return Err("The URL begins with http:// or https://.".to_owned()),
        Some(host) if host.contains('@') => {
            return Err("The URL contains a password, which the log would show.".to_owned());
        }
        Some(_) => {}
    }
    let mut words = vec!["web".to_owned()];
    add_option(&mut words, "--rate", fields.get("rate"), is_number)?;
    words.extend(["--".to_owned(), url.to_owned()]);
    Ok(ActionRequest {
        kind: "web",
        subject: url.to_owned(),
        words,
    })
}

fn build_why(fields: &FormFields) -> Result<ActionRequest, String> {
    let mut words = vec!["why".to_owned()];
    let time = fields.get("for").unwrap_or("10s");
    add_option(&mut words, "--for", Some(time), is_time)?;
    let mut subject = "this machine".to_owned();
    if let Some(thing) = fields.get("thing") {
        check_text("The thing", thing)?;
        words.extend(["--".to_owned(), thing.to_owned()]);
        thing.clone_into(&mut subject);
    }
    Ok(ActionRequest {
        kind: "why",
        subject,
        words,
    })
}

fn build_tune(fields: &FormFields) -> Result<ActionRequest, String> {
    let goal = fields.get("want").unwrap_or_default();
    if goal.parse::<assay_tune::Want>().is_err() {
        return Err("The goal is not one: write more randread-4k-qd16.iops.".to_owned());
    }
    let target = read_target(fields)?;
    let mut words = vec!["tune".to_owned(), "--yes".to_owned()];
    // As one word, so that no goal is taken for an option.
    words.push(format!("--want={goal}"));
    add_option(&mut words, "--budget", fields.get("budget"), is_time)?;
    words.extend(["--".to_owned(), target.clone()]);
    Ok(ActionRequest {
        kind: "tune",
        subject: format!("{goal} on {target}"),
        words,
    })
}

fn build_undo(fields: &FormFields) -> Result<ActionRequest, String> {
    let session = fields.get("session").filter(|text| is_number(text));
    let session = session.ok_or_else(|| "The session is no number.".to_owned())?;
    Ok(ActionRequest {
        kind: "undo",
        subject: format!("session {session}"),
        words: vec!["tune".to_owned(), format!("--undo={session}")],
    })
}

/// Returns the target of a form, which must be an absolute path without control characters.
fn read_target(fields: &FormFields) -> Result<String, String> {
    let target = fields.get("target").unwrap_or_default();
    check_text("The target", target)?;
    match target.starts_with('/') {
        true => Ok(target.to_owned()),
        false => Err("The target is an absolute path, such as /srv/scratch.".to_owned()),
    }
}

/// Refuses control characters, and characters that reverse the direction of text, because the log must show which
/// command was started.
fn check_text(what: &str, text: &str) -> Result<(), String> {
    match assay_render::text::escape_line(text) == text {
        true => Ok(()),
        false => Err(format!(
            "{what} contains a line break or another character that cannot be shown."
        )),
    }
}

fn add_option(
    words: &mut Vec<String>,
    name: &str,
    value: Option<&str>,
    is_valid: fn(&str) -> bool,
) -> Result<(), String> {
    if let Some(value) = value {
        if !is_valid(value) {
            return Err(format!(
                "{} is no value for {name}.",
                value.chars().take(40).collect::<String>().escape_debug()
            ));
        }
        words.push(format!("{name}={value}"));
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() < 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(is_part)
}

fn is_number(text: &str) -> bool {
    (1..=6).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_time(text: &str) -> bool {
    let number = text.trim_end_matches(['s', 'm', 'h']);
    text.len() - number.len() == 1 && is_number(number)
}

fn is_size(text: &str) -> bool {
    let number = text
        .strip_suffix("iB")
        .unwrap_or(text)
        .trim_end_matches(['K', 'M', 'G']);
    is_number(number) && text.len() <= number.len() + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(body: &str) -> Result<ActionRequest, String> {
        let fields = FormFields::parse(body.as_bytes())?;
        build_request(&fields, &Catalogue::builtin().unwrap())
    }

    #[test]
    fn a_form_becomes_words() {
        let request =
            build("kind=trial&advice=cache-unsafe&target=%2Fsrv%2Fa+b&budget=90s&size=64MiB")
                .unwrap();
        assert_eq!(
            request.words,
            [
                "trial",
                "--yes",
                "--budget=90s",
                "--size=64MiB",
                "--",
                "cache-unsafe",
                "/srv/a b"
            ]
        );
        assert_eq!(
            build("kind=why&for=5s&thing=--record%3D%2Fetc%2Fpasswd")
                .unwrap()
                .words,
            ["why", "--for=5s", "--", "--record=/etc/passwd"]
        );
        assert_eq!(
            build("kind=web&url=https%3A%2F%2Fshop%2F&rate=300")
                .unwrap()
                .words,
            ["web", "--rate=300", "--", "https://shop/"]
        );
        assert_eq!(
            build("kind=undo&session=3").unwrap().words,
            ["tune", "--undo=3"]
        );
    }

    #[test]
    fn attack_what_is_no_value_starts_nothing() {
        for body in [
            "",
            "kind=shell&target=/",
            "kind=trial&advice=--recover&target=/srv",
            "kind=trial&advice=/tmp/mine.md&target=/srv",
            "kind=trial&advice=cache-unsafe&target=srv",
            "kind=trial&advice=cache-unsafe&target=--keep",
            "kind=trial&advice=cache-unsafe&target=%2Fsrv%0A--keep",
            "kind=trial&advice=cache-unsafe&target=%2Fsrv%00",
            "kind=trial&advice=cache-unsafe&target=%2Fsrv%E2%80%AEx",
            "kind=trial&advice=cache-unsafe&target=/srv&budget=1s+--keep",
            "kind=trial&advice=cache-unsafe&target=/srv&size=64MiB%0A",
            "kind=trial&advice=cache-unsafe&target=/srv&target=/etc",
            "kind=run&plan=../x&target=/srv",
            "kind=run&plan=--store%3Dx&target=/srv",
            "kind=tune&want=--may%3Dservice&target=/srv",
            "kind=web&url=--list%3D%2Fetc%2Fshadow",
            "kind=web&url=%2Fetc%2Fshadow",
            "kind=web&url=http%3A%2F%2F",
            "kind=web&url=http%3A%2F%2Fme%3Asecret%40shop%2F",
            "kind=web&url=http%3A%2F%2Fshop%2F%0A",
            "kind=web&url=http%3A%2F%2Fshop%2F&rate=1+--log",
            "kind=undo&session=-1",
            "kind=undo&session=1+--force",
        ] {
            assert!(build(body).is_err(), "{body}");
        }
        let long = format!("kind=run&target=/{}", "x".repeat(5_000));
        assert!(build(&long).is_err());
    }
}
