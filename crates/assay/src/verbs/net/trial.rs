//! `assay net trial`: compares two settings of a network in randomised order. Also implements `assay lab net
//! --against`.

use super::run as net_run;
use crate::context::{self, print, write_file};
use crate::global::Global;
use crate::status::Status;
use assay_changes::{ChangeSession, Journal, RecoveryOutcome, Switch};
use assay_host::LiveHost;
use assay_model::Nanos;
use assay_model::change::Setting;
use assay_model::trial::{Side, Verdict};
use assay_net::plan::NetPlan;
use assay_net::result::Run;
use assay_net::trial::{Ended, GUARD, MARGIN, Trial};
use assay_report::net::{trial_json, trial_page, trial_pair, trial_terminal};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay net trial four --server @controller --value Home-5GHz \\
      --read nmcli -g GENERAL.CONNECTION device show wlan0 ';' \\
      --apply nmcli connection up {value} ';'
                                  is the other access point the better one?
  assay net trial evening.toml --server @controller --value fq_codel \\
      --read /root/qdisc show ';' --apply /root/qdisc set {value} ';' \\
      --undo /root/qdisc set {value} ';'

A is the network as it is, B with --value. The commands are run where assay runs, without a shell;
each ends with `;`. What --read prints is the value in effect, and nothing else: it is read back
after every change. The value that was there is entered in assay's journal before anything is
changed, and reverted at the end, after Ctrl-C, and by `assay trial --recover` after a kill.

Without any network: assay lab net four --queue fifo --against fq-codel";

/// Arguments of `assay net trial`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Built-in plan or a file
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Use this controller address of `assay net serve`, or @FILE
    #[arg(
        long,
        value_name = "SERVER",
        env = "ASSAY_NET_SERVER",
        hide_env_values = true
    )]
    server: String,
    /// Command that prints the value in effect
    #[arg(long, value_name = "COMMAND", num_args = 1.., value_terminator = ";", allow_hyphen_values = true, required = true)]
    read: Vec<String>,
    /// Command that sets a value; {value} stands for it
    #[arg(long, value_name = "COMMAND", num_args = 1.., value_terminator = ";", allow_hyphen_values = true, required = true)]
    apply: Vec<String>,
    /// Command that restores the previous value [default: --apply's]
    #[arg(long, value_name = "COMMAND", num_args = 1.., value_terminator = ";", allow_hyphen_values = true)]
    undo: Vec<String>,
    /// Value of the change (B)
    #[arg(long, value_name = "VALUE")]
    value: String,
    /// Wait this long after a change before waiting for clients
    #[arg(long, value_name = "TIME", default_value = "3s")]
    settle: Nanos,
    /// Wait this long for clients before each run
    #[arg(long, value_name = "TIME", default_value = "60s")]
    wait: Nanos,
    /// Measure each run for N seconds instead of the plan's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    #[command(flatten)]
    pairs: Pairs,
    #[command(flatten)]
    output: net_run::Output,
}

/// Number of pairs, and the smallest relevant difference.
#[derive(clap::Args)]
pub struct Pairs {
    /// Measure at most N pairs; a verdict needs at least six
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(6..=60))]
    pairs: u32,
    /// Ignore smaller differences in the share of events in time
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN * 100.0)]
    margin: f64,
}

pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let mut plan = net_run::plan(&args.plan)?;
    plan.seconds = args.seconds.unwrap_or(plan.seconds);
    let link = super::link(&args.server)?;
    let undo = if args.undo.is_empty() {
        &args.apply
    } else {
        &args.undo
    };
    let setting = Setting::Command {
        read: args.read.clone(),
        apply: args.apply.clone(),
        undo: undo.clone(),
    };
    let journal = Journal::open(&context::journal_dir()?)?;
    let cancel = context::on_signals()?;
    let stop = || cancel.is_cancelled();
    let session = journal.begin(
        "trial of two networks",
        &format!("net {}", args.apply.join(" ")),
    )?;
    let tried = || {
        let switch = Switch::open(&session, &LiveHost, &setting)?;
        let now = switch.original().value.clone().unwrap_or_default();
        if now == args.value {
            anyhow::bail!(
                "--value {}: that is in effect already, so A and B would be the same",
                args.value
            );
        }
        let trial = begin(
            plan,
            [now, args.value.clone()],
            &args.pairs,
            context::random_seed()?,
        )?;
        let mut measure = |side: Side, _: u32, plan: &NetPlan| {
            let read_back = match side {
                Side::Now => switch.restore()?,
                Side::Changed => switch.set(Some(&args.value))?,
            };
            pause(args.settle, &stop);
            let run = net_run::carry_out(&link, plan, Duration::from(args.wait), true, &stop)?;
            anyhow::Ok(run.map(|run| (read_back, run)))
        };
        carry_out(trial, args.output.quiet, &mut measure)
    };
    let done = tried();
    set_back(session)?;
    let (trial, ended) = done?;
    show(&trial, ended, &args.output, global)
}

/// Reverts all changes of the session that are still in effect.
fn set_back(session: ChangeSession) -> anyhow::Result<()> {
    for left in session.close(&LiveHost)? {
        if let RecoveryOutcome::Failed(error) = left.outcome {
            anyhow::bail!(
                "{} is not as it was: {error}; `assay trial --recover` tries again",
                left.what
            );
        }
    }
    Ok(())
}

fn pause(time: Nanos, stop: &dyn Fn() -> bool) {
    const SLICE: Duration = Duration::from_millis(50);
    let mut left = Duration::from(time);
    while !left.is_zero() && !stop() {
        std::thread::sleep(left.min(SLICE));
        left = left.saturating_sub(SLICE);
    }
}

/// Creates a trial, and determines its randomised order.
pub fn begin(plan: NetPlan, sides: [String; 2], pairs: &Pairs, seed: u64) -> anyhow::Result<Trial> {
    let margin = pairs.margin / 100.0;
    if !(0.001..=0.5).contains(&margin) {
        anyhow::bail!("--margin {}: it is 0.1 to 50 percent", pairs.margin);
    }
    let trial = Trial {
        plan,
        sides,
        margin,
        guard: GUARD.max(margin),
        alpha: 0.05,
        seed,
        first: assay_measure::trials::draw_order(seed, pairs.pairs),
        slots: Vec::new(),
    };
    trial.check().map_err(anyhow::Error::msg)?;
    Ok(trial)
}

/// Function that runs the plan with the setting of one side of a pair. Returns `None` if the user interrupted the run.
pub type Measure<'a> = dyn FnMut(Side, u32, &NetPlan) -> anyhow::Result<Option<(String, Run)>> + 'a;

/// Measures the pairs one after the other, and prints the result of each.
pub fn carry_out(
    mut trial: Trial,
    quiet: bool,
    measure: &mut Measure<'_>,
) -> anyhow::Result<(Trial, Ended)> {
    let plan = trial.plan.clone();
    let mut one = |side: Side, slot: u32| {
        let taken = measure(side, slot, &plan)?;
        // An interrupted run has no result for its side.
        anyhow::Ok(taken.filter(|(_, run)| !run.aborted))
    };
    let ended = trial.carry_out(&mut one, &mut |trial, judgement| {
        if !quiet {
            eprintln!("{}", trial_pair(trial, judgement));
        }
    })?;
    Ok((trial, ended))
}

/// Prints the verdict of the trial.
pub fn show(
    trial: &Trial,
    ended: Ended,
    output: &net_run::Output,
    global: &Global,
) -> anyhow::Result<Status> {
    if let Some(path) = &output.html {
        write_file(path, &trial_page(trial))?;
    }
    match output.json {
        true => print(&trial_json(trial))?,
        false => print(&trial_terminal(trial, context::style(global)))?,
    }
    if let Ended::Fruitless(why) = &ended {
        anyhow::bail!(
            "three pairs in a row had no result: {}",
            assay_render::text::escape_line(why)
        );
    }
    Ok(match (ended, trial.judgement().verdict) {
        (Ended::Stopped, _) => Status::Interrupted,
        (_, Verdict::Worse | Verdict::Unsafe) => Status::Findings,
        _ => Status::Ok,
    })
}
