//! `assay net run`: starts a run on a server and reports the verdicts.

use crate::context::{self, print, write_file};
use crate::global::Global;
use crate::observation_log::{self, ObservedThing};
use crate::progress::Meter;
use crate::status::Status;
use anyhow::Context as _;
use assay_model::Nanos;
use assay_net::client::ServerLink;
use assay_net::controller::{self, Begin, ControllerEvent};
use assay_net::plan::NetPlan;
use assay_net::result::Run;
use assay_net::role::builtin;
use assay_net::verdict::{Grade, PersonVerdict};
use assay_net::wire::Status as RunStatus;
use assay_render::text::escape_line;
use assay_report::net::{
    NamedRun, Net, compared, compared_json, compared_page, json, live, page, summarize_grades,
    terminal,
};
use assay_store::Observer;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `assay net run`.
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
    /// List the connected clients and exit
    #[arg(long, conflicts_with = "list")]
    clients: bool,
    #[command(flatten)]
    sending: Sending,
    #[command(flatten)]
    output: Output,
}

/// Congestion control of server and devices.
#[derive(clap::Args)]
pub struct Sending {
    /// Send with these algorithms (cubic, bbr …), each in a run of its own
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    congestion: Vec<String>,
}

impl Sending {
    /// Adds the algorithms to a plan, if any are given.
    pub fn apply(&self, plan: &mut NetPlan) -> anyhow::Result<()> {
        if !self.congestion.is_empty() {
            plan.congestion.clone_from(&self.congestion);
        }
        plan.check().map_err(|why| anyhow::anyhow!("{why}"))
    }
}

/// Output of a result.
#[derive(clap::Args)]
pub struct Output {
    /// Print one JSON object: the records and the verdicts
    #[arg(long)]
    pub json: bool,
    /// Also write an HTML page
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
    args.sending.apply(&mut plan)?;
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let wait = Duration::from(args.wait);
    let quiet = args.output.quiet;
    in_turn(&plan, &args.output, global, &stop, &mut |plan| {
        let run = carry_out(&link, plan, wait, quiet, &stop)?;
        if let Some(run) = &run {
            keep(run, global);
        }
        Ok(run)
    })
}

/// Stores the run as an observation.
fn keep(run: &Run, global: &Global) {
    let thing = ObservedThing {
        by: Observer::Net,
        started: run.began,
        subject: run.plan.name.clone(),
        summary: summarize_grades(&run.judged()),
        is_here: true,
    };
    observation_log::keep(thing, run, global);
}

/// Executes a plan once for each congestion control algorithm, and prints the results. If there are two runs, compares
/// them.
pub fn in_turn(
    plan: &NetPlan,
    output: &Output,
    global: &Global,
    stop: &dyn Fn() -> bool,
    carry_out: &mut dyn FnMut(&NetPlan) -> anyhow::Result<Option<Run>>,
) -> anyhow::Result<Status> {
    let plans = plan.runs();
    anyhow::ensure!(
        plans.len() <= 2 || !(output.json || output.html.is_some()),
        "--json and --html hold two runs at most: name two algorithms of congestion control, or one"
    );
    let mut runs = Vec::new();
    for plan in &plans {
        match carry_out(plan)? {
            Some(run) => runs.push(run),
            None => return Ok(Status::Interrupted),
        }
        if stop() {
            break;
        }
    }
    match runs.as_slice() {
        [one] => show(one, output, global, stop()),
        [one, two] => show_two(&plans, [one, two], output, global),
        many => {
            let shown = many.iter().zip(&plans).map(|(run, plan)| {
                print(&heading(plan, global))?;
                show(run, output, global, stop())
            });
            shown.reduce(worse).unwrap_or(Ok(Status::Ok))
        }
    }
}

/// Combines the results of two runs. If a run failed, returns the error of the first failed run. Otherwise returns the
/// first status that is not `Ok`.
fn worse(one: anyhow::Result<Status>, two: anyhow::Result<Status>) -> anyhow::Result<Status> {
    match (one?, two?) {
        (Status::Ok, two) => Ok(two),
        (one, _) => Ok(one),
    }
}

/// Formats the congestion control algorithms of a run, as a heading for its verdicts.
fn heading(plan: &NetPlan, global: &Global) -> String {
    let name = escape_line(&plan.congestion.join(", "));
    let title = context::style(global).bold(&format!("congestion control {name}"));
    format!("{title}\n\n")
}

/// Prints two runs with different congestion control, and which of the networks people would choose.
fn show_two(
    plans: &[NetPlan],
    runs: [&Run; 2],
    output: &Output,
    global: &Global,
) -> anyhow::Result<Status> {
    let named = [0, 1].map(|at| NamedRun {
        name: plans[at].congestion.join(", "),
        run: runs[at],
    });
    if let Some(path) = &output.html {
        write_file(path, &compared_page(&named, &jiff::tz::TimeZone::system()))?;
    }
    if output.json {
        print(&compared_json(&named))?;
    }
    let mut status = Status::Ok;
    for (run, plan) in runs.iter().zip(plans) {
        let judged = run.judged();
        if !output.json {
            print(&heading(plan, global))?;
            print_run(run, &judged, global)?;
        }
        if is_bad(&judged) {
            status = Status::Findings;
        }
    }
    if !output.json {
        print(&compared(&named, context::style(global)))?;
    }
    Ok(status)
}

fn print_run(run: &Run, judged: &[PersonVerdict], global: &Global) -> anyhow::Result<()> {
    let net = Net {
        run,
        judged,
        zone: jiff::tz::TimeZone::system(),
    };
    print(&format!("{}\n", terminal(&net, context::style(global))))
}

fn is_bad(judged: &[PersonVerdict]) -> bool {
    let mut people = judged.iter();
    people.any(|person| matches!(person.grade, Grade::Bad | Grade::Unknown))
}

/// Returns the built-in plan with this name, or reads the plan from a file.
pub fn plan(name: &str) -> anyhow::Result<NetPlan> {
    if let Some(plan) = NetPlan::builtin(name) {
        return Ok(plan);
    }
    let text = super::read(name).with_context(|| {
        let known: Vec<&str> = NetPlan::builtin_names().collect();
        format!(
            "`{}` is no plan that assay brings ({}) and no file",
            escape_line(name),
            known.join(", ")
        )
    })?;
    Ok(NetPlan::read(&text)?)
}

/// Starts a run, watches it, and collects the records.
pub fn carry_out(
    link: &ServerLink,
    plan: &NetPlan,
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
        ControllerEvent::Waiting(there, needed) if there < needed => {
            meter.say(format!("{there} of {needed} clients are there"));
        }
        ControllerEvent::Waiting(..) => {}
        ControllerEvent::Begins(_) => meter.expect(Nanos::from(whole)),
        ControllerEvent::Goes(status) => meter.say(goes(status, plan)),
    });
    meter.end();
    Ok(run?)
}

fn goes(status: &RunStatus, plan: &NetPlan) -> String {
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

/// Prints the verdicts of a run.
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
    Ok(match (interrupted, is_bad(&judged)) {
        (true, _) => Status::Interrupted,
        (_, true) => Status::Findings,
        (_, false) => Status::Ok,
    })
}

fn list() -> String {
    let mut out = String::from("plans:\n");
    let plans: Vec<Vec<String>> = NetPlan::builtin_names()
        .filter_map(NetPlan::builtin)
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
