//! Storage planning. The user adds and removes disks by dragging, and sees the capacity and redundancy of the possible
//! layouts.

use crate::answer::{Answer, Refusal};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_model::size::Convention::{Binary, Decimal};
use assay_planner::layout::{
    Context, Disk, Io, LayoutPlan, Want, best, nearest_buildable, pareto, rank, search,
};
use assay_planner::size;
use assay_render::html::{render_page, split_page};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_duration, format_plural, format_probability};
use assay_report::plan::layout::layout_text::{describe_disks, list_assumptions};
use assay_report::plan::render_layouts_page;
use axum::http::StatusCode;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

/// Maximum number of disks. A search over more disks would take too long for a page.
const MOST_DISKS: usize = 16;
/// Maximum number of layouts that are shown.
const MOST_LAYOUTS: usize = 12;
/// Disks that the page shows on the first visit.
const EXAMPLE: &str = "4T 4T 4T 4T 2T 2T";

/// A disk that the form shows.
#[derive(Serialize)]
struct DiskView {
    number: usize,
    size: String,
    is_used: bool,
}

/// Question of the user, from the query of the URL.
struct Question {
    /// Sizes of the disks, each as written by the user and in bytes.
    sizes: Vec<(String, u64)>,
    used: Vec<usize>,
    survive: Option<u64>,
    io: Option<Io>,
    /// Layout whose figures are shown beside the disks; `None` shows the default.
    layout: Option<String>,
}

/// Answers `/plan` with the form and the possible layouts.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let question = read_question(request)?;
    let disks: Vec<Disk> = question
        .used
        .iter()
        .filter_map(|at| question.sizes.get(*at))
        .map(|(_, size)| Disk {
            size: *size,
            price: None,
        })
        .collect();
    let context = Context::default();
    let plans = find_layouts(&question, &disks, &context)?;
    let chosen = question
        .layout
        .as_deref()
        .and_then(|name| plans.iter().find(|plan| plan.layout == name))
        .or_else(|| plans.first());
    let report = render_layouts_page(&describe_disks(&disks), &list_assumptions(&context), &plans);
    let form = build_form(&question, &plans, chosen);
    Ok(Answer::page(site.frame_with_toolbar(
        &report,
        Section::Plan,
        &form,
    )))
}

fn refuse(text: &str) -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "These disks cannot be planned",
        text,
    )
}

fn read_question(request: &PageRequest) -> Result<Question, Refusal> {
    let query = &request.query;
    let mut sizes = Vec::new();
    let is_first = query.get("disks").is_none() && query.get("add").is_none();
    let known = query
        .get("disks")
        .unwrap_or(if is_first { EXAMPLE } else { "" });
    let before = parse_sizes(known, &mut sizes)?;
    let added = parse_sizes(query.get("add").unwrap_or_default(), &mut sizes)?;
    if sizes.len() > MOST_DISKS {
        return Err(refuse(&format!(
            "There are {} disks; this page plans at most {MOST_DISKS}. `assay plan layout` plans more.",
            sizes.len()
        )));
    }
    let mut used: Vec<usize> = match query.get("chosen") {
        // A form sends only the boxes that are ticked.
        Some(_) => query
            .all("use")
            .iter()
            .filter_map(|text| text.parse().ok())
            .filter(|at| *at < before)
            .chain(before..before + added)
            .collect(),
        None => (0..sizes.len()).collect(),
    };
    used.sort_unstable();
    used.dedup();
    Ok(Question {
        sizes,
        used,
        survive: query.get("survive").and_then(|text| text.parse().ok()),
        io: match query.get("io") {
            Some("random") => Some(Io::Random),
            Some("stream") => Some(Io::Stream),
            _ => None,
        },
        layout: query.get("layout").map(str::to_owned),
    })
}

/// Appends the sizes in a text such as `2x4T 750G`. Returns the number of appended sizes.
fn parse_sizes(text: &str, sizes: &mut Vec<(String, u64)>) -> Result<usize, Refusal> {
    let before = sizes.len();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let (count, size) = match word.split_once(['x', '*']) {
            Some((count, size)) => (count.parse().unwrap_or(0), size),
            None => (1, word),
        };
        if !(1..=MOST_DISKS).contains(&count) {
            return Err(refuse(&format!(
                "{} is no disk: write 4T, or 2x4T for two.",
                escape_line(word)
            )));
        }
        let (bytes, _) =
            size::parse(size).map_err(|error| refuse(&escape_line(&error.to_string())))?;
        sizes.extend(std::iter::repeat_n((size.to_owned(), bytes), count));
    }
    Ok(sizes.len() - before)
}

fn find_layouts(
    question: &Question,
    disks: &[Disk],
    context: &Context,
) -> Result<Vec<LayoutPlan>, Refusal> {
    if disks.is_empty() {
        return Ok(Vec::new());
    }
    let found =
        search(disks, &[], context).map_err(|error| refuse(&escape_line(&error.to_string())))?;
    let mut plans = found.plans;
    let wants: Vec<Want> = question.survive.map(Want::survive).into_iter().collect();
    let is_possible = nearest_buildable(&plans, &wants).is_some();
    rank(&mut plans, &wants, question.io);
    pareto(&mut plans);
    best(&mut plans);
    if !is_possible {
        plans.clear();
    }
    plans.truncate(MOST_LAYOUTS);
    Ok(plans)
}

/// Renders the form above the answer.
fn build_form(question: &Question, plans: &[LayoutPlan], chosen: Option<&LayoutPlan>) -> String {
    let disks: Vec<DiskView> = question
        .sizes
        .iter()
        .enumerate()
        .map(|(number, (_, bytes))| DiskView {
            number,
            size: Decimal.show(*bytes),
            is_used: question.used.contains(&number),
        })
        .collect();
    let figures: Vec<(&str, String)> = chosen.map_or_else(Vec::new, |plan| {
        vec![
            ("Usable", Binary.show(plan.usable)),
            ("Of raw", format!("{:.0} %", plan.efficiency * 100.0)),
            (
                "Survives",
                format_plural(plan.survives, "failed disk", "failed disks"),
            ),
            (
                "Pool lost in a year",
                format_probability(plan.pool_loss_per_year),
            ),
            (
                "Some blocks lost",
                format_probability(plan.block_loss_per_year),
            ),
            (
                "Rebuild",
                plan.rebuild_seconds
                    .map_or(NONE.to_owned(), format_duration),
            ),
        ]
    });
    let texts: Vec<&str> = question
        .sizes
        .iter()
        .map(|(text, _)| text.as_str())
        .collect();
    let values = context! {
        disks => Serde(disks),
        sizes => texts.join(" "),
        figures,
        layout => chosen.map(|plan| escape_line(&plan.layout)),
        picked => question.layout.as_deref().map(escape_line),
        layouts => plans.iter().map(|plan| escape_line(&plan.layout)).collect::<Vec<_>>(),
        survive => question.survive,
        io => question.io.map(|io| match io { Io::Random => "random", Io::Stream => "stream" }),
        is_empty => question.used.is_empty(),
    };
    let page = render_page("", "", include_str!("../templates/plan.html"), values);
    split_page(&page).map_or_else(String::new, |parts| parts.body.to_owned())
}
