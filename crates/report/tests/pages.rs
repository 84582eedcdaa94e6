//! Writes the pages of synthetic runs to the build's temporary directory, so that a person can inspect them.

mod common;

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "pages for looking at, below target/"
)]
fn pages_for_looking_at() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, case) in [("quick", common::quick()), ("matrix", common::matrix())] {
        let comparison = common::compared(&case, 1.03);
        let against = Some((&case.run, &case.judged, &comparison));
        let page = assay_report::html::render_run_page(
            &case.run,
            &case.judged,
            &case.samples,
            against,
            &case.jobs,
        );
        std::fs::write(dir.join(format!("{name}.html")), page).unwrap();
    }
    let cases = common::trials::all();
    for (name, case) in &cases {
        let page = assay_report::trial::render_trial_page(&case.view());
        std::fs::write(dir.join(format!("trial-{name}.html")), page).unwrap();
    }
    let views: Vec<_> = cases.iter().map(|(_, case)| case.view()).collect();
    let page = assay_report::trial::render_campaign_page(&views);
    std::fs::write(dir.join("campaign.html"), page).unwrap();
}
