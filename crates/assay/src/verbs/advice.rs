//! `assay advice`: shows pages of the catalogue, and whether they apply to this machine.

mod list;
mod page;

use crate::context::{self, print};
use crate::global::Global;
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_advice::{Applicability, Catalogue, CatalogueError, applies};
use assay_facts::TargetError;
use assay_host::{Host as _, LiveHost};
use assay_model::advice::Advice;
use assay_model::{Facts, SCHEMA_VERSION, TargetInfo};
use assay_pool::Pooled;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay advice                          all, by domain: its standing, and whether it applies here
  assay advice qcow2-cluster-size       one: the claim, what speaks for it, how it is tested
  assay advice --domain ssh             one domain
  assay advice --search write barrier   all words, anywhere in a page, best match first
  assay advice noatime --target /srv    does it apply to the file system there?
  assay advice --json | jq '.advice[] | select(.here.applies == \"yes\") | .id'

Standing is today's state of the literature: confirmed, conditional, obsolete, wrong or
dangerous. Facts of this machine decide whether the advice applies; `unknown` names the fact
that is missing. Pages of your own lie in $XDG_CONFIG_HOME/assay/advice/DOMAIN/ID.md.

Exit status: 0 done, 2 error, 3 a page or the target cannot be read.";

/// Browse and search the catalogue of tuning advice
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Advice to show; all are listed if omitted
    #[arg(value_name = "ID", conflicts_with_all = ["search", "domain"])]
    id: Option<String>,
    /// Find advice by words or synonyms, best match first
    #[arg(long, value_name = "WORD", num_args = 1..)]
    search: Vec<String>,
    /// Show only advice of this domain
    #[arg(long)]
    domain: Option<String>,
    /// Judge whether the advice applies to this path
    #[arg(long, value_name = "PATH", default_value = ".")]
    target: PathBuf,
    /// Set a parameter of the advice
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment, requires = "id")]
    parameters: Vec<(String, String)>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    own: Own,
}

/// Directory of the user's own pages.
#[derive(clap::Args, Clone)]
pub struct Own {
    /// Also read advice from DIR [default: $XDG_CONFIG_HOME/assay/advice]
    #[arg(long, value_name = "DIR", env = "ASSAY_ADVICE", hide_env_values = true)]
    pub advice_dir: Option<PathBuf>,
}

/// Parses the argument `NAME=VALUE` of `--set`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "write NAME=VALUE, such as size=64K".to_owned())
}

/// Returns the catalogue with the user's own pages. A directory on the command line must exist; the default directory
/// need not.
pub fn catalogue(own: &Own) -> anyhow::Result<Catalogue> {
    let unreadable = |error: CatalogueError| Unreadable(error.to_string());
    let builtin = Catalogue::builtin()?;
    let dir = match &own.advice_dir {
        Some(dir) => Some(dir.clone()),
        None => context::own_advice().filter(|dir| LiveHost.stat(dir).is_ok()),
    };
    Ok(match dir {
        Some(dir) => builtin.with_dir(&LiveHost, &dir).map_err(unreadable)?,
        None => builtin,
    })
}

/// Formats the page of a rule, without the check whether the rule applies here.
pub fn explain(advice: &Advice, style: assay_render::Style) -> String {
    page::explain(advice, style)
}

/// A page of advice, and whether it applies here.
struct Entry<'a> {
    advice: &'a Advice,
    here: Applicability,
    /// Combined results of trials on other machines. Loaded only if a single page is shown.
    elsewhere: Vec<Pooled>,
}

/// Runs `assay advice`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let catalogue = catalogue(&args.own)?;
    let chosen = choose(&catalogue, args)?;
    let (facts, target) = look(&args.target)?;
    let given: BTreeMap<String, String> = args.parameters.iter().cloned().collect();
    let entries: Vec<Entry> = chosen
        .into_iter()
        .map(|advice| Entry {
            advice,
            here: applies(advice, &facts, target.as_ref(), &given, None),
            elsewhere: match args.id {
                Some(_) => super::pool::elsewhere(advice, global),
                None => Vec::new(),
            },
        })
        .collect();
    let style = context::style(global);
    match (args.json, &args.id, entries.as_slice()) {
        (true, ..) => print(&json(&catalogue, &entries)?)?,
        (false, Some(_), [entry]) => {
            let file = catalogue.file(&entry.advice.id).unwrap_or_default();
            print(&page::page(entry, file, &given, style)?)?;
        }
        _ if !args.search.is_empty() => print(&list::matches(&entries, style))?,
        _ => print(&list::list(&entries, &args.target.to_string_lossy(), style))?,
    }
    Ok(Status::Ok)
}

fn choose<'a>(catalogue: &'a Catalogue, args: &Args) -> anyhow::Result<Vec<&'a Advice>> {
    if let Some(id) = &args.id {
        return Ok(vec![catalogue.get(id)?]);
    }
    let mut chosen = match args.search.is_empty() {
        true => catalogue.all(),
        false => catalogue.search(&args.search),
    };
    if let Some(domain) = &args.domain {
        let mut domains: Vec<&str> = catalogue.all().iter().map(|a| a.domain.as_str()).collect();
        domains.dedup();
        anyhow::ensure!(
            domains.contains(&domain.as_str()),
            "unknown domain `{domain}`; use one of {}",
            domains.join(", ")
        );
        chosen.retain(|advice| advice.domain == *domain);
    }
    Ok(chosen)
}

/// Returns the facts of this machine, and the layers under the target. The layers are `None` if the mount table is
/// malformed.
fn look(target: &Path) -> anyhow::Result<(Facts, Option<TargetInfo>)> {
    let unreadable = |error: String| anyhow::Error::from(Unreadable(error));
    let path = LiveHost
        .realpath(&absolute(target)?)
        .map_err(|error| unreadable(format!("{}: {}", target.display(), error.reason())))?;
    match assay_facts::survey_at(&LiveHost, &path) {
        Ok((survey, info)) => Ok((survey.facts, Some(info))),
        Err(error @ TargetError::NoMount { .. }) => {
            eprintln!("{error}: what rests on its file system is not known");
            Ok((assay_facts::survey(&LiveHost, &[]).facts, None))
        }
        Err(error) => Err(unreadable(error.to_string())),
    }
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// The catalogue or a part of it, and whether the pages apply here.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    schema: u32,
    advice: Vec<Shown<'a>>,
}

/// A page of advice in the document, and whether it applies here.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Shown<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    /// Whether the advice applies to this machine.
    here: &'a Applicability,
    /// Combined results of shared trials. Present only if a single page is shown.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    elsewhere: &'a [Pooled],
    /// Path of the page below `advice/`; for a page of the user, the path of its file.
    file: Option<&'a str>,
}

fn json(catalogue: &Catalogue, entries: &[Entry<'_>]) -> anyhow::Result<String> {
    let advice = entries.iter().map(|entry| Shown {
        advice: entry.advice,
        here: &entry.here,
        elsewhere: &entry.elsewhere,
        file: catalogue.file(&entry.advice.id),
    });
    let document = Document {
        schema: SCHEMA_VERSION,
        advice: advice.collect(),
    };
    Ok(format!("{:#}\n", serde_json::to_value(document)?))
}

/// Returns the standing of the advice as pages write it: confirmed, conditional, obsolete, wrong or dangerous.
fn standing(advice: &Advice) -> &'static str {
    use assay_model::advice::Standing;
    match advice.literature.standing {
        Standing::Confirmed => "confirmed",
        Standing::Conditional => "conditional",
        Standing::Obsolete => "obsolete",
        Standing::Wrong => "wrong",
        Standing::Dangerous => "dangerous",
    }
}

/// Returns the ANSI colour code for a standing; empty for the default colour.
fn colour(standing: &str) -> &'static str {
    match standing {
        "confirmed" => "32",
        "dangerous" | "wrong" => "31",
        "obsolete" => "33",
        _ => "",
    }
}
