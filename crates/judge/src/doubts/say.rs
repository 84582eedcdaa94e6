//! A doubt in words.

use assay_model::Doubt;
use assay_model::doubt::Severity;

fn doubt(code: &str, severity: Severity, evidence: String, remedy: &str) -> Doubt {
    Doubt {
        code: code.to_owned(),
        severity,
        evidence,
        remedy: remedy.to_owned(),
    }
}

pub(crate) fn suspect(code: &str, evidence: String, remedy: &str) -> Doubt {
    doubt(code, Severity::Suspect, evidence, remedy)
}

pub(crate) fn void(code: &str, evidence: String, remedy: &str) -> Doubt {
    doubt(code, Severity::Void, evidence, remedy)
}

/// Foreign text as part of a sentence: control characters escaped, long values cut.
pub(crate) fn clean(text: &str) -> String {
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
