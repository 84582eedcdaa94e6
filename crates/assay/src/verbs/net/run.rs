//! `assay net run`.

use crate::context::{self, print, write_file};
use crate::global::Global;
use crate::progress::Meter;
use crate::status::Status;
use anyhow::Context as _;
use assay_model::Nanos;
use assay_net::client::Link;
use assay_net::controller::{self, Begin, Event};
use assay_net::plan::Plan;
use assay_net::result::Run;
use assay_net::role::builtin;
use assay_net::verdict::Grade;
use assay_net::wire::Status as RunStatus;
use assay_render::text::escape_line;
use assay_report::net::{Net, json, live, page, terminal};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    /// Built-in plan or a file
    #[arg(value_name = "PLAN", required_unless_present_any = ["list", "clients"])]
    plan: Option<String>,
    /// Use this controller address of `assay net serve`, or @FILE
    #[arg(
        long,
        value_name = "SERVER",
        env = "ASSAY_NET_SERVER",
        hide_env_values = true,
        required_unless_present = "list"
    )]
    server: Option<String>,
    /// Measure for N seconds instead of the plan's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// Wait this long for clients to join
    #[arg(long, value_name = "TIME", default_value = "60s")]
    wait: Nanos,
    /// List plans and roles and stop
    #[arg(long)]
    list: bool,
    /// List the connected clients and stop
    #[arg(long, conflicts_with = "list")]
    clients: bool,
    #[command(flatten)]
    output: Output,
}

/// What becomes of a result.
#[derive(clap::Args)]
pub struct Output {
    /// Print one JSON object: what was seen, and what it means
    #[arg(long)]
    pub json: bool,
    /// Also write a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if args.list {
        print(&list())?;
        return Ok(Status::Ok);
    }
    let link = super::link(args.server.as_deref().unwrap_or_default())?;
    if args.clients {
        let seen = controller::clients(&link)?.clients;
        print(&assay_report::net::clients(&seen))?;
        return Ok(Status::Ok);
    }
    let mut plan = plan(args.plan.as_deref().unwrap_or_default())?;
    plan.seconds = args.seconds.unwrap_or(plan.seconds);
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let run = carry_out(
        &link,
        &plan,
        Duration::from(args.wait),
        args.output.quiet,
        &stop,
    )?;
    match run {
        Some(run) => show(&run, &args.output, global, stop()),
        None => Ok(Status::Interrupted),
    }
}

/// A plan by name or file.
pub fn plan(name: &str) -> anyhow::Result<Plan> {
    if let Some(plan) = Plan::builtin(name) {
        return Ok(plan);
    }
    let text = super::read(name).with_context(|| {
        let known: Vec<&str> = Plan::builtin_names().collect();
        format!(
            "`{}` is no plan that assay brings ({}) and no file",
            escape_line(name),
            known.join(", ")
        )
    })?;
    Ok(Plan::read(&text)?)
}

/// Begins, watches, collects.
pub fn carry_out(
    link: &Link,
    plan: &Plan,
    wait: Duration,
    quiet: bool,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Option<Run>> {
    let whole = Duration::from_secs(u64::from(plan.seconds) + 6);
    let mut meter = Meter::new(quiet, Nanos::from(whole));
    let begin = Begin {
        plan,
        wait,
        now: &context::now,
        stop,
    };
    let run = controller::carry_out(link, &begin, &mut |event| match event {
        Event::Waiting(there, needed) if there < needed => {
            meter.say(format!("{there} of {needed} clients are there"));
        }
        Event::Waiting(..) => {}
        Event::Begins(_) => meter.expect(Nanos::from(whole)),
        Event::Goes(status) => meter.say(goes(status, plan)),
    });
    meter.end();
    Ok(run?)
}

fn goes(status: &RunStatus, plan: &Plan) -> String {
    let since = status.since_us / 1_000_000;
    match since {
        ..0 => "about to begin".to_owned(),
        since if since <= i64::from(plan.seconds) => live(status),
        _ => {
            let there = status
                .people
                .iter()
                .filter(|person| person.delivered)
                .count();
            format!("{there} of {} have delivered", status.people.len())
        }
    }
}

/// Says what it means.
pub fn show(
    run: &Run,
    output: &Output,
    global: &Global,
    interrupted: bool,
) -> anyhow::Result<Status> {
    let judged = run.judged();
    let net = Net {
        run,
        judged: &judged,
        zone: jiff::tz::TimeZone::system(),
    };
    if let Some(path) = &output.html {
        write_file(path, &page(&net))?;
    }
    match output.json {
        true => print(&json(&net))?,
        false => print(&terminal(&net, context::style(global)))?,
    }
    let bad = judged
        .iter()
        .any(|person| matches!(person.grade, Grade::Bad | Grade::Unknown));
    Ok(match (interrupted, bad) {
        (true, _) => Status::Interrupted,
        (_, true) => Status::Findings,
        (_, false) => Status::Ok,
    })
}

fn list() -> String {
    let mut out = String::from("plans:\n");
    let plans: Vec<Vec<String>> = Plan::builtin_names()
        .filter_map(Plan::builtin)
        .map(|plan| {
            let people: Vec<String> = plan
                .people
                .iter()
                .map(|person| format!("{} ({})", person.name, person.roles.join(", ")))
                .collect();
            vec![plan.name, format!("{} s", plan.seconds), people.join("; ")]
        })
        .collect();
    out += &assay_render::table::render_table(2, "lrl", &["name", "takes", "people"], &plans);
    out += "\nroles:\n";
    let roles: Vec<Vec<String>> = builtin()
        .into_iter()
        .map(|role| {
            let goal = role.within_us().map_or_else(
                || "none".to_owned(),
                |us| {
                    format!(
                        "each within {}",
                        assay_render::units::format_latency(us as f64 * 1e3)
                    )
                },
            );
            vec![role.name, role.about, goal]
        })
        .collect();
    out + &assay_render::table::render_table(2, "lll", &["name", "what it does", "goal"], &roles)
}
