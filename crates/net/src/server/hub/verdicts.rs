//! Computes the verdicts that the devices show. They are equal to the verdicts of the controller.

use super::Run;
use crate::queue::LinkLoad;
use crate::record::PersonRecord;
use crate::role::Role;
use crate::verdict::{Grade, PersonVerdict, judge_among};
use crate::wire::Verdict;
use std::fmt;
use std::sync::Arc;

/// Maximum length of a verdict's text, in bytes.
const LONGEST: usize = 4000;

type Write = dyn Fn(&PersonVerdict, &[Role], i64) -> String + Send + Sync;

/// Function that formats a verdict as text. Its parameters are the verdict, the role definitions and the microseconds
/// since the start of the run. Without a function, the text consists of the grade and the texts of the roles.
#[derive(Clone, Default)]
pub struct VerdictWriter(Option<Arc<Write>>);

impl VerdictWriter {
    /// Creates a writer from a function.
    pub fn new(
        write: impl Fn(&PersonVerdict, &[Role], i64) -> String + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(write)))
    }

    fn write(&self, verdict: &PersonVerdict, roles: &[Role], since_us: i64) -> String {
        let mut text = match &self.0 {
            Some(write) => write(verdict, roles, since_us),
            None => words_of_roles(verdict, roles),
        };
        while text.len() > LONGEST {
            text.pop();
        }
        text
    }
}

impl fmt::Debug for VerdictWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

fn words_of_roles(verdict: &PersonVerdict, roles: &[Role]) -> String {
    let pairs = roles.iter().zip(&verdict.roles);
    let words = pairs.filter_map(|(role, verdict)| match verdict.grade {
        Grade::Good => Some(&*role.fine),
        Grade::Tolerable | Grade::Bad => Some(&*role.trouble),
        Grade::Unknown => None,
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Judges all people of a finished run.
pub(super) fn judge(run: &Run, writer: &VerdictWriter, now: i64) -> Vec<Verdict> {
    let mut load = LinkLoad::default();
    for part in &run.parts {
        if let Some(record) = &part.record {
            load.add(record, &part.roles);
        }
    }
    let nothing = PersonRecord::default();
    let one = |part: &super::Part| {
        let record = part.record.as_ref().unwrap_or(&nothing);
        let verdict = judge_among(record, &part.roles, &load);
        Verdict {
            run: run.number,
            grade: verdict.grade,
            text: writer.write(&verdict, &part.roles, now - run.start),
        }
    };
    run.parts.iter().map(one).collect()
}
