//! The catalogue of advice: a search, filters, and whether each piece of advice applies.

use super::{OptionView, filter_options, short_name};
use crate::answer::{Answer, Refusal};
use crate::query::{encode, encode_segment};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_advice::{Applicability, applies};
use assay_model::advice::{Advice, Standing};
use assay_model::{Facts, TargetInfo};
use assay_render::text::escape_line;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A row of the list of advice.
#[derive(Serialize)]
struct AdviceRow {
    href: String,
    title: String,
    statement: String,
    standing: &'static str,
    class: &'static str,
    kind: &'static str,
    applies: &'static str,
    reason: String,
}

#[derive(Serialize)]
struct DomainView {
    name: String,
    rows: Vec<AdviceRow>,
}

/// The machine for which the page judges whether advice applies.
pub(super) enum Judged {
    /// The machine on which the server runs.
    Here,
    /// A machine of the fleet, judged from its newest bundle.
    Machine(Arc<crate::machine_check::MachineCheck>),
}

impl Judged {
    /// Returns the machine that the query names. Without one, returns the machine of this server.
    pub(super) fn choose(site: &Site, name: Option<&str>) -> Self {
        let Some(name) = name else {
            return Self::Here;
        };
        let state = site.fleet_state().ok();
        let host = state
            .as_ref()
            .and_then(|state| state.machine(name)?.hosts.first().cloned());
        match host.and_then(|host| site.check_machine(&host).ok().flatten()) {
            Some(check) => Self::Machine(check),
            None => Self::Here,
        }
    }

    /// Returns the facts of the machine, and the target if it is known.
    pub(super) fn facts<'a>(&'a self, site: &'a Site) -> (&'a Facts, Option<&'a TargetInfo>) {
        match self {
            Self::Here => {
                let (facts, target) = site.facts();
                (facts, target.as_ref())
            }
            Self::Machine(check) => (&check.facts, None),
        }
    }
}

/// Answers `/advice` with the catalogue.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let query = &request.query;
    let words = query.get("q").unwrap_or_default();
    let (domain, standing, wanted) = (
        query.get("domain"),
        query.get("standing"),
        query.get("applies"),
    );
    let catalogue = &site.options.catalogue;
    let list: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let mut found = match list.is_empty() {
        true => catalogue.all(),
        false => catalogue.search(&list),
    };
    found.retain(|advice| {
        domain.is_none_or(|domain| advice.domain == domain)
            && standing.is_none_or(|name| standing_name(advice.literature.standing) == name)
    });
    let machine = query.get("machine");
    let judged = Judged::choose(site, machine);
    let (facts, target) = judged.facts(site);
    let mut domains: Vec<DomainView> = Vec::new();
    let mut count = 0;
    for advice in found {
        let here = applies(advice, facts, target, &BTreeMap::new(), None);
        if wanted.is_some_and(|wanted| wanted != applies_name(&here)) {
            continue;
        }
        count += 1;
        let row = describe_advice(advice, &here);
        // A search has its best matches first; a list has its domains together.
        let name = if list.is_empty() {
            advice.domain.as_str()
        } else {
            ""
        };
        match domains.last_mut().filter(|last| last.name == name) {
            Some(last) => last.rows.push(row),
            None => domains.push(DomainView {
                name: name.to_owned(),
                rows: vec![row],
            }),
        }
    }
    let all = catalogue.all();
    let hosts = checked_machines(site);
    let page = site.render_page(
        "Catalogue",
        Section::Catalogue,
        include_str!("../templates/catalogue.html"),
        context! {
            words,
            count,
            all => all.len(),
            domains => Serde(domains),
            domain_options => Serde(filter_options(all.iter().map(|advice| advice.domain.as_str()), domain)),
            standings => Serde(filter_options(
                all.iter().map(|advice| standing_name(advice.literature.standing)),
                standing,
            )),
            applies => Serde(filter_options(["yes", "no", "unknown"].into_iter(), wanted)),
            machines => Serde(machine_options(&hosts, machine)),
            on => match &judged { Judged::Here => None, Judged::Machine(_) => machine.map(short_name) },
        },
    );
    Ok(Answer::page(page))
}

/// Returns the names of the machines of which a bundle is stored.
pub(super) fn checked_machines(site: &Site) -> Vec<String> {
    let Ok(state) = site.fleet_state() else {
        return Vec::new();
    };
    let kept: Vec<String> = site.history.machines().unwrap_or_default();
    let machines = state.machines.iter();
    machines
        .filter(|machine| machine.hosts.iter().any(|host| kept.contains(host)))
        .map(|machine| machine.name.clone())
        .collect()
}

fn machine_options(names: &[String], chosen: Option<&str>) -> Vec<OptionView> {
    filter_options(names.iter().map(String::as_str), chosen)
}

fn describe_advice(advice: &Advice, here: &Applicability) -> AdviceRow {
    let standing = standing_name(advice.literature.standing);
    AdviceRow {
        href: format!("/advice/{}", encode_segment(&advice.id)),
        title: escape_line(&advice.title),
        statement: escape_line(&advice.statement),
        standing,
        class: standing_class(standing),
        kind: match (&advice.check, &advice.trial) {
            (Some(_), Some(_)) => "check and trial",
            (Some(_), None) => "check",
            (None, Some(_)) => "trial",
            (None, None) => "page",
        },
        applies: applies_name(here),
        reason: match here {
            Applicability::Not { reasons, .. } => reasons
                .first()
                .map_or(String::new(), |reason| escape_line(&reason.otherwise)),
            Applicability::Unknown { missing, .. } => {
                missing.first().map_or(String::new(), |missing| {
                    format!("{} is not known", escape_line(&missing.key))
                })
            }
            Applicability::Applies { .. } => String::new(),
        },
    }
}

/// Returns the display name of a standing, which is how reliable the advice is.
pub(super) fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Confirmed => "confirmed",
        Standing::Conditional => "conditional",
        Standing::Obsolete => "obsolete",
        Standing::Wrong => "wrong",
        Standing::Dangerous => "dangerous",
    }
}

/// Returns the CSS class for the name of a standing.
pub(super) fn standing_class(standing: &str) -> &'static str {
    match standing {
        "confirmed" => "good",
        "wrong" | "dangerous" => "bad",
        "obsolete" => "warn",
        _ => "plain",
    }
}

/// Returns in one word whether advice applies.
pub(super) fn applies_name(here: &Applicability) -> &'static str {
    match here {
        Applicability::Applies { .. } => "yes",
        Applicability::Not { .. } => "no",
        Applicability::Unknown { .. } => "unknown",
    }
}

/// Returns the link to the page of a piece of advice, judged for a machine.
pub(super) fn advice_href(id: &str, machine: Option<&str>) -> String {
    let path = format!("/advice/{}", encode_segment(id));
    match machine {
        Some(name) => format!("{path}?{}", encode(&[("machine", name)])),
        None => path,
    }
}
