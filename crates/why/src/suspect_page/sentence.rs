//! Sentences with placeholders: `{name}` is the name or a text of the entity, `{await:ms}` a formatted number of the
//! entity, and `{m.waiting.disk:percent}` a formatted number of the machine.

use crate::window::{WatchWindow, WatchedEntity};
use assay_render::text::escape_line;

/// Format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Percent,
    Milliseconds,
    Bytes,
    BytesPerSecond,
    Number,
    PerSecond,
    Seconds,
    Text,
}

#[derive(Clone, Debug)]
enum Part {
    Plain(String),
    Placeholder {
        of_machine: bool,
        key: String,
        form: Form,
    },
}

/// A sentence with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Sentence(Vec<Part>);

impl Sentence {
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = source;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').ok_or("a placeholder has no end")? + open;
            parts.push(Part::Plain(rest[..open].to_owned()));
            let inside = &rest[open + 1..close];
            let (key, form) = inside.split_once(':').unwrap_or((inside, "text"));
            let form = match form {
                "percent" => Form::Percent,
                "ms" => Form::Milliseconds,
                "bytes" => Form::Bytes,
                "bytes/s" => Form::BytesPerSecond,
                "number" => Form::Number,
                "/s" => Form::PerSecond,
                "s" => Form::Seconds,
                "text" => Form::Text,
                other => return Err(format!("`{other}` is no form of a number")),
            };
            let (of_machine, key) = match key.strip_prefix("m.") {
                Some(key) => (true, key),
                None => (false, key),
            };
            parts.push(Part::Placeholder {
                of_machine,
                key: key.to_owned(),
                form,
            });
            rest = &rest[close + 1..];
        }
        parts.push(Part::Plain(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Fills in a sentence for users; names are escaped. Returns `None` if a number or text is missing.
    pub(crate) fn fill(&self, window: &WatchWindow, entity: &WatchedEntity) -> Option<String> {
        self.render(window, entity, &|text| Some(escape_line(text)))
    }

    /// Fills in a command; texts are quoted. Returns `None` if a text is missing or cannot be quoted safely.
    pub(crate) fn fill_command(
        &self,
        window: &WatchWindow,
        entity: &WatchedEntity,
    ) -> Option<String> {
        self.render(window, entity, &|text| {
            let is_plain = escape_line(text) == text && !text.starts_with('-');
            is_plain.then(|| shell_words::quote(text).into_owned())
        })
    }

    fn render(
        &self,
        window: &WatchWindow,
        entity: &WatchedEntity,
        text_form: &dyn Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            let (of_machine, key, form) = match part {
                Part::Plain(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Placeholder {
                    of_machine,
                    key,
                    form,
                } => (*of_machine, key, *form),
            };
            let from = if of_machine { &window.machine } else { entity };
            if form == Form::Text {
                let text = match key.as_str() {
                    "name" => Some(&from.name),
                    "id" => Some(&from.id),
                    key => from.texts.get(key),
                };
                out.push_str(&text_form(text?)?);
            } else {
                out.push_str(&format_number(form, *from.numbers.get(key)?));
            }
        }
        Some(out)
    }
}

fn format_number(form: Form, value: f64) -> String {
    match form {
        Form::Percent if value < 0.0995 => format!("{:.1} %", value * 100.0),
        Form::Percent => format!("{:.0} %", value * 100.0),
        Form::Milliseconds if value < 0.01 => format!("{:.2} ms", value * 1000.0),
        Form::Milliseconds => format!("{:.0} ms", value * 1000.0),
        Form::Seconds => format!("{value:.2} s"),
        Form::Bytes => format_bytes(value),
        Form::BytesPerSecond => format!("{}/s", format_bytes(value)),
        Form::PerSecond => format!("{}/s", format_plain(value)),
        Form::Number | Form::Text => format_plain(value),
    }
}

fn format_plain(value: f64) -> String {
    match value {
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn format_bytes(value: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(size, _)| value >= *size) {
        Some((size, unit)) => format!("{} {unit}", format_plain(value / size)),
        None => format!("{value:.0} B"),
    }
}
