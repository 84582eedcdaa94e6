//! The values that the template shows. Everything from outside is cleaned here and escaped by the
//! template; only the charts, which escape for themselves, are passed on as markup.

use crate::format::{NONE, plus_minus, value};
use crate::subject;
use crate::text::clean;
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::{Judged, RunComparison, WorkloadResult};
use assay_model::{Run, Sample};
use minijinja::{Environment, context};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn render(
    run: &Run,
    judged: &Judged,
    _samples: &[Sample],
    _against: Option<(&Run, &Judged, &RunComparison)>,
    jobs: &[(String, String)],
) -> String {
    let mut environment = Environment::new();
    let rendered = environment
        .add_template("page.html", TEMPLATE)
        .and_then(|()| {
            environment.get_template("page.html")?.render(context! {
                title => subject::title(run),
                name => subject::name(run),
                when => subject::when(run),
                rows => judged.results.iter().map(row).collect::<Vec<_>>(),
                jobs => minijinja::value::Serde(jobs),
            })
        });
    match rendered {
        Ok(page) => page,
        Err(error) => unreachable!("the template is part of the program: {error:#}"),
    }
}

fn row(result: &WorkloadResult) -> Vec<String> {
    let estimate = |quantity| result.estimates.get(&Metric::all(quantity));
    let figure =
        |quantity| estimate(quantity).map_or(NONE.to_owned(), |e| value(quantity, e.value));
    vec![
        clean(&result.workload),
        figure(Quantity::Iops),
        estimate(Quantity::Iops).map(plus_minus).unwrap_or_default(),
        figure(Quantity::Throughput),
        figure(Quantity::P50),
        figure(Quantity::P99),
        figure(Quantity::P999),
    ]
}
