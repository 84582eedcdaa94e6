//! `assay web`: load web servers: capacity, then what users wait at shares of it.

mod arguments;
mod progress;

pub use arguments::{Args, speed};

use crate::context::{self, print, write_file};
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_judge::web::judge;
use assay_model::web::Step;
use assay_report::web::{Web, json, page, terminal};
use assay_web::{Server, Target, carry_out, estimate, find};

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let settings = args.settings(context::random_seed()?)?;
    let asked = args.asked()?;
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let today = context::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut targets: Vec<Target> = Vec::new();
    for url in &args.urls {
        targets.push(find(url, &asked, today, &stop)?);
    }
    let servers = targets
        .iter()
        .map(|target| server(args, target))
        .collect::<anyhow::Result<Vec<Server>>>()?;
    let urls: Vec<String> = targets
        .iter()
        .map(|target| target.url.to_string())
        .collect();
    let remarks: Vec<Vec<String>> = targets.iter().map(remarks).collect();

    let mut progress =
        progress::Progress::new(args.quiet, &urls, estimate(targets.len(), &settings));
    let mut steps: Vec<Step> = Vec::new();
    let carried = carry_out(
        &targets,
        &servers,
        &settings,
        &mut steps,
        &stop,
        &mut |event| {
            progress.tell(&event);
        },
    );
    progress.end();
    carried.context("the load could not be carried out")?;
    let judged = judge(&steps, targets.len());
    let interrupted = stop();
    let web = Web {
        urls: &urls,
        remarks: &remarks,
        settings: serde_json::to_value(&settings)?,
        steps: &steps,
        judged: &judged,
        interrupted,
    };
    if let Some(path) = &args.html {
        write_file(path, &page(&web))?;
    }
    match args.json {
        true => print(&json(&web))?,
        false => print(&terminal(&web, context::style(global)))?,
    }
    Ok(match () {
        () if interrupted => Status::Interrupted,
        // A server that never gave a good answer was not measured.
        () if judged.steps.iter().all(|step| step.rate.is_none()) => Status::Findings,
        () => Status::Ok,
    })
}

/// Where the CPU time of a target is counted.
fn server(args: &Args, target: &Target) -> anyhow::Result<Server> {
    Ok(match (&args.server_pid, &args.cgroup) {
        (Some(pid), _) => Server::process(*pid)?,
        (_, Some(group)) => Server::group(group)?,
        _ if target.here => Server::listening(&target.addresses[0]),
        _ => Server::Unknown("it is on another machine".to_owned()),
    })
}

fn remarks(target: &Target) -> Vec<String> {
    let mut remarks = target.remarks.clone();
    if let Some(consent) = &target.consent {
        remarks.push(format!(
            "the server agrees to a load until {}",
            consent.until
        ));
    }
    remarks
}
