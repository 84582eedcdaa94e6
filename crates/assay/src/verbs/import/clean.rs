//! Removes secrets from an imported run. A file may contain secrets if it was written by an older version or forged.

use anyhow::Context as _;
use assay_model::{Run, Sample, secrets};

/// Applies the current redaction rules to a run before it is stored, exported or reported.
pub(super) fn clean(run: Run, mut samples: Vec<Sample>) -> anyhow::Result<(Run, Vec<Sample>)> {
    let mut value = serde_json::to_value(&run).context("the run")?;
    secrets::json(&mut value);
    let mut run: Run = serde_json::from_value(value).context("the run")?;
    assay_facts::redact::facts(&mut run.facts);
    for target in &mut run.targets {
        let fs_type = target.fs_type.clone().unwrap_or_default();
        let options = target.mount_options.as_deref();
        target.mount_options = options.map(assay_facts::redact::mount_options);
        let source = target.mount_source.as_deref();
        target.mount_source =
            source.map(|source| assay_facts::redact::mount_source(&fs_type, source));
    }
    for job in samples.iter_mut().flat_map(|sample| &mut sample.workers) {
        job.name = secrets::withhold_in_text(&job.name);
        job.fio.options = std::mem::take(&mut job.fio.options)
            .into_iter()
            .map(|(key, value)| {
                let value = assay_fio::options::harmless_value(&key, &value);
                (key, value)
            })
            .collect();
    }
    Ok((run, samples))
}
