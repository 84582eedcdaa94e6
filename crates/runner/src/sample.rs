//! From what fio left to a sample.

use assay_instruments::fio::{Ended, Output, complaint};
use assay_model::sample::{Counters, JobResult, Outcome};

/// Reads fio's result and says how the sample ended.
#[must_use]
pub fn read(output: &Output) -> (Outcome, Vec<JobResult>) {
    let failed = |error: String| Outcome::Failed { error };
    let said = complaint(&output.stderr)
        .map(|line| format!(": {line}"))
        .unwrap_or_default();
    let document = match assay_fio::json::parse(&output.json) {
        Ok(documents) => documents.into_iter().next_back(),
        Err(_) if output.ended == Ended::Cancelled => return (Outcome::Interrupted, Vec::new()),
        Err(error) => {
            let outcome = match output.ended {
                Ended::TimedOut => Outcome::TimedOut { after: output.wall },
                Ended::Exited(0) => failed(format!("fio printed no usable result: {error}{said}")),
                Ended::Exited(code) => failed(format!("fio ended with status {code}{said}")),
                Ended::Cancelled => Outcome::Interrupted,
            };
            return (outcome, Vec::new());
        }
    };
    let jobs = document.map(|document| document.jobs).unwrap_or_default();
    let outcome = match output.ended {
        Ended::Cancelled => Outcome::Interrupted,
        Ended::TimedOut => Outcome::TimedOut { after: output.wall },
        Ended::Exited(code) => {
            let errno = jobs.iter().map(|job| job.error).find(|errno| *errno != 0);
            match errno {
                Some(errno) => {
                    let reason = std::io::Error::from_raw_os_error(errno);
                    failed(format!("I/O error: {reason}{said}"))
                }
                None if code != 0 => failed(format!("fio ended with status {code}{said}")),
                None if jobs.is_empty() => failed(format!("fio reported no job{said}")),
                None => Outcome::Completed,
            }
        }
    };
    (outcome, jobs)
}

/// Completes the counters with what fio's process itself used.
#[must_use]
pub fn with_tool(mut counters: Counters, output: &Output) -> Counters {
    counters.tool_cpu = output.cpu;
    counters
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::Nanos;

    fn output(json: &str, stderr: &str, ended: Ended) -> Output {
        Output {
            json: json.as_bytes().to_vec(),
            stderr: stderr.to_owned(),
            ended,
            wall: Nanos(1),
            cpu: None,
            series: Vec::new(),
        }
    }

    fn error(output: &Output) -> String {
        match read(output).0 {
            Outcome::Failed { error } => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn garbage_truncation_and_silence_are_failures_with_a_reason() {
        let said = error(&output(
            "",
            "fio: engine libaio not loadable\n",
            Ended::Exited(1),
        ));
        assert!(
            said.contains("status 1") && said.contains("libaio"),
            "{said}"
        );
        let said = error(&output("not json", "", Ended::Exited(0)));
        assert!(said.contains("no usable result"), "{said}");
        let said = error(&output(
            "{\"fio version\": \"fio-3.33\", \"jobs\": [",
            "",
            Ended::Exited(0),
        ));
        assert!(said.contains("no usable result"), "{said}");
    }

    #[test]
    fn a_timeout_is_a_timeout_whatever_was_printed() {
        let (outcome, _) = read(&output("", "", Ended::TimedOut));
        assert!(matches!(outcome, Outcome::TimedOut { .. }));
        let (outcome, _) = read(&output("", "", Ended::Cancelled));
        assert_eq!(outcome, Outcome::Interrupted);
    }

    #[test]
    fn an_io_error_names_itself() {
        let json = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","error":28}]}"#;
        let said = error(&output(json, "", Ended::Exited(1)));
        assert!(said.contains("No space left"), "{said}");
    }
}
