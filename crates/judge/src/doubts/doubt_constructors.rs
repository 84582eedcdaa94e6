//! Constructors of doubts. Text from files and other programs is escaped before a sentence contains it.

use assay_model::Doubt;
use assay_model::doubt::Severity;

fn new_doubt(code: &str, severity: Severity, evidence: String, remedy: &str) -> Doubt {
    Doubt {
        code: code.to_owned(),
        severity,
        evidence,
        remedy: remedy.to_owned(),
    }
}

pub(crate) fn suspect_doubt(code: &str, evidence: String, remedy: &str) -> Doubt {
    new_doubt(code, Severity::Suspect, evidence, remedy)
}

pub(crate) fn void_doubt(code: &str, evidence: String, remedy: &str) -> Doubt {
    new_doubt(code, Severity::Void, evidence, remedy)
}

/// Makes text from files and other programs safe for a sentence: escapes control characters and shortens long values.
pub(crate) fn clean_text(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == LONGEST {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
