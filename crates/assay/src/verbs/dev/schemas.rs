//! Writes the JSON schemas of the `--json` documents, derived from the serialised types.

use super::form::{Form, form};
use crate::context::write_file;
use crate::verbs::{
    advice, cert, changed, check, compare, disks, dups, facts, fleet, lab, login, pins, plan,
    probe, run, runs, store, trial, version, watch,
};
use std::fmt::Write as _;
use std::path::Path;

fn all() -> Vec<Form> {
    let mut forms = vec![
        (
            "runs",
            "assay report runs --json",
            form::<runs::Document<'_>>(),
        ),
        (
            "run-login",
            "assay login --json",
            form::<login::Document<'_>>(),
        ),
        (
            "run-share",
            "assay run smb://SERVER/SHARE --json, assay run nfs://SERVER/EXPORT --json",
            form::<run::ShareDocument<'_>>(),
        ),
        (
            "stack",
            "assay stack --json",
            form::<assay_report::stack::StackDocument<'_>>(),
        ),
        (
            "why",
            "assay why --json, assay why --show N --json",
            form::<assay_report::why::WhyDocument<'_>>(),
        ),
        (
            "why-list",
            "assay why --list --json",
            form::<crate::observation_log::ObservationDocument>(),
        ),
        (
            "stack-measure",
            "assay stack --measure --json, assay stack --show RUN --json",
            form::<assay_report::waterfall::WaterfallDocument<'_>>(),
        ),
        (
            "disks",
            "assay stack disks --json",
            form::<disks::Document<'_>>(),
        ),
        (
            "disks-list",
            "assay stack disks --list --json",
            form::<disks::List<'_>>(),
        ),
        (
            "study",
            "assay study NAME --json, assay study show RUN --json",
            form::<assay_report::study::StudyDocument<'_>>(),
        ),
        (
            "study-list",
            "assay study --json",
            form::<assay_report::study::CatalogueDocument<'_>>(),
        ),
        (
            "study-runs",
            "assay study --list --json",
            form::<assay_report::study::StudyRunsDocument<'_>>(),
        ),
        (
            "pins",
            "assay probe pins --json",
            form::<pins::Document<'_>>(),
        ),
        ("cert", "assay cert show --json", form::<cert::Document>()),
        (
            "check-mail",
            "assay check mail --json",
            form::<check::mail::Document>(),
        ),
        (
            "run",
            "assay run --json, assay report show --json, assay report --json",
            form::<assay_report::json::RunDocument<'_>>(),
        ),
        (
            "compare",
            "assay report compare --json",
            form::<compare::Document<'_>>(),
        ),
        (
            "tune",
            "assay tune --json, assay tune --show SESSION --json",
            form::<assay_report::tune::TuneDocument>(),
        ),
        (
            "tune-list",
            "assay tune --list --json",
            form::<assay_report::tune::TuneListDocument>(),
        ),
        (
            "trial",
            "assay trial --json, assay trial --show ID --json",
            form::<assay_report::trial::TrialReport<'_>>(),
        ),
        (
            "trial-campaign",
            "assay trial --show ID --json, of several pages by assay 0.2",
            form::<Vec<assay_report::trial::TrialReport<'_>>>(),
        ),
        (
            "trial-list",
            "assay trial --list --json",
            form::<assay_report::trial::TrialListDocument<'_>>(),
        ),
        (
            "trial-recover",
            "assay trial --recover --json",
            form::<trial::Recovery<'_>>(),
        ),
        (
            "advice",
            "assay advice --json",
            form::<advice::Document<'_>>(),
        ),
        (
            "check",
            "assay check --json",
            form::<assay_report::check::Findings<'_>>(),
        ),
        (
            "check-diff",
            "assay check diff --json",
            form::<check::Differences<'_>>(),
        ),
        (
            "check-fix",
            "assay check --fix ID --json",
            form::<assay_changes::fixes::FixDocument<'_>>(),
        ),
        (
            "check-confirm",
            "assay check --confirm --json",
            form::<check::Confirmed<'_>>(),
        ),
        (
            "check-undo",
            "assay check --undo --json",
            form::<check::TakenBack<'_>>(),
        ),
        (
            "check-wifi-census",
            "assay check wifi --census --json",
            form::<assay_report::wifi::CensusDocument<'_>>(),
        ),
        (
            "fleet-list",
            "assay fleet list --json",
            form::<fleet::Inventoried<'_>>(),
        ),
        (
            "fleet-check",
            "assay fleet check --json",
            form::<assay_report::fleet::Document<'_>>(),
        ),
        (
            "fleet-facts",
            "assay fleet facts --json",
            form::<fleet::facts::Document<'_>>(),
        ),
        (
            "changed",
            "assay fleet changed --json",
            form::<assay_report::fleet::Changes<'_>>(),
        ),
        (
            "changed-key",
            "assay fleet changed --key --json",
            form::<changed::key::Document<'_>>(),
        ),
        (
            "pool",
            "assay fleet pool show --json",
            form::<assay_report::pool::PoolDocument<'_>>(),
        ),
        ("facts", "assay facts --json", form::<facts::Document<'_>>()),
        (
            "lint",
            "assay lint --json",
            form::<assay_report::lint::LintDocument<'_>>(),
        ),
        (
            "dups",
            "assay dups scan --json, assay dups report --json",
            form::<assay_dups::format::GroupDocument>(),
        ),
        (
            "web",
            "assay web --json",
            form::<assay_report::web::Document<'_>>(),
        ),
        (
            "net",
            "assay net run --json, assay lab net --json",
            form::<assay_report::net::Document<'_>>(),
        ),
        (
            "net-compare",
            "assay net compare --json",
            form::<assay_report::net::Compared<'_>>(),
        ),
        (
            "net-trial",
            "assay net trial --json",
            form::<assay_report::net::TrialDocument<'_>>(),
        ),
        (
            "import",
            "assay report import --json",
            form::<assay_report::import::ImportDocument<'_>>(),
        ),
        (
            "probe",
            "assay probe tls --json, assay probe dtls --json, assay probe ssh --json, assay probe smb --json, assay \
             probe http --json",
            form::<probe::Document<'_>>(),
        ),
        (
            "store-move",
            "assay report store move --json",
            form::<store::Document>(),
        ),
        (
            "store-prune",
            "assay report store prune --json",
            form::<store::PruneDocument>(),
        ),
        (
            "watch",
            "assay fleet watch now --json, assay fleet watch list --json",
            form::<watch::Document<'_>>(),
        ),
        (
            "version",
            "assay version --json",
            form::<version::Document>(),
        ),
    ];
    forms.extend(plan::documents());
    forms.extend(dups::documents::all());
    forms.extend(lab::documents::all());
    forms
}

/// Writes one schema file for each document, and a page that lists all of them.
pub(super) fn write(dir: &Path) -> anyhow::Result<()> {
    let mut page = String::from(PAGE);
    for (name, commands, mut schema) in all() {
        schema.insert("title".to_owned(), commands.into());
        let file = format!("{name}.schema.json");
        write_file(&dir.join(&file), &format!("{:#}\n", schema.as_value()))?;
        let commands: Vec<String> = commands.split(", ").map(|one| format!("`{one}`")).collect();
        let _ = writeln!(page, "| {} | [{file}]({file}) |", commands.join(", "));
    }
    write_file(&dir.join("README.md"), &page)
}

const PAGE: &str = "\
# JSON documents

Each of these commands prints one JSON document, described by a JSON Schema (2020-12). The schemas are generated
from the types in the code, and tests compare the output of the commands with them.

`schema` is the version of a document. It rises when a field changes its meaning or disappears, but not for new
fields; a schema contains the fields of its own version of assay. Values are in base units: nanoseconds, bytes,
bytes per second. Missing values are `null`.

| command | schema |
|---|---|
";
