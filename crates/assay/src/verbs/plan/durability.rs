//! `assay plan durability`: computes the probability that groups of disks lose data within a year.

use super::read;
use super::show::{print_json, write_page};
use crate::context::print;
use crate::context::{columns, wrap};
use crate::status::Status;
use assay_planner::PlannerError;
use assay_planner::durability::{
    Assumptions, CANNOT_TELL, DiskGroup, HOURS_A_YEAR, LossEstimate, loss_in, mean_hours_to_loss,
    simulate_arrays,
};
use assay_render::text::format_named_value;
use assay_render::units::format_probability;
use assay_report::plan as picture;
use serde::Serialize;
use std::num::NonZero;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay plan durability --disks 8 --survives 2
  assay plan durability --disks 2 --survives 1 --size 16T --rebuild-hours 30 --afr 3%
  assay plan durability --disks 6 --survives 1 --simulate 1000000 --seed 7

The chain: disks fail at a constant rate, failed ones are rebuilt side by side, and in the last
state before loss a rebuild may meet an unreadable sector.

Sizes: 4T and 4TB are 4·10¹² bytes, as disks are sold; 4TiB is 4·2⁴⁰.";

/// Estimate the probability that disks lose data within a year
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Set the number of disks in the group
    #[arg(long, value_name = "N")]
    disks: u64,
    /// Set how many failures the group survives
    #[arg(long, value_name = "N")]
    survives: u64,
    /// Set the number of such groups
    #[arg(long, default_value_t = 1, value_name = "N")]
    groups: u64,
    /// Set the data per disk, which a rebuild reads in full
    #[arg(long, default_value = "4T", value_parser = read::size, value_name = "SIZE")]
    size: u64,
    /// Assume this share of disks fails in a year
    #[arg(long, default_value = "1.5%", value_parser = read::share, value_name = "SHARE")]
    afr: f64,
    /// Set the hours until the replacement of a failed disk begins
    #[arg(long, default_value_t = 24.0, value_name = "H")]
    replace_hours: f64,
    /// Set the hours of a rebuild
    #[arg(long, default_value_t = 24.0, value_name = "H")]
    rebuild_hours: f64,
    /// Set the rate of unreadable bits
    #[arg(long, default_value_t = 1e-15, value_name = "RATE")]
    ure: f64,
    /// Multiply the failure rate while a disk is down
    #[arg(long, default_value_t = 3.0, value_name = "FACTOR")]
    correlation: f64,
    /// Check the result by simulating this many array-years
    #[arg(long, value_name = "YEARS")]
    simulate: Option<u64>,
    /// Set the seed of the simulation
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Write a self-contained page with diagrams (no scripts)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Answer {
    group: DiskGroup,
    groups: u64,
    assumptions: Assumptions,
    loss_per_year: f64,
    mean_years_to_loss: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<LossEstimate>,
    cannot_tell: &'static str,
}

/// Computes the answer of `assay plan durability` and prints it.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    let assumptions = Assumptions {
        afr: args.afr,
        replace_hours: args.replace_hours,
        rebuild_hours: args.rebuild_hours,
        ure_per_bit: args.ure,
        correlation: args.correlation,
    };
    assumptions.check()?;
    if args.disks == 0 || args.disks > 10_000 || args.survives >= args.disks {
        return Err(PlannerError::value(
            format!(
                "{} disks that survive {} failures",
                args.disks, args.survives
            ),
            "needs 1 to 10000 disks and fewer failures than disks",
        )
        .into());
    }
    if args.groups == 0 || args.groups > 1_000_000 {
        return Err(PlannerError::value("groups", "must be 1 to 1000000").into());
    }
    if args
        .simulate
        .is_some_and(|years| years == 0 || years > 10_000_000_000)
    {
        return Err(PlannerError::value("simulate", "must be 1 to 10^10 array-years").into());
    }
    // The rebuild of a mirror reads one other disk; that of raidz reads all data columns.
    let others = match args.survives + 1 == args.disks {
        true => 1,
        false => args.disks - args.survives,
    };
    let group = DiskGroup {
        disks: args.disks,
        survives: args.survives,
        rebuild_reads: args.size as f64 * others as f64,
    };
    let one = loss_in(group, &assumptions, HOURS_A_YEAR);
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let answer = Answer {
        group,
        groups: args.groups,
        assumptions,
        loss_per_year: -((-one).ln_1p() * args.groups as f64).exp_m1(),
        mean_years_to_loss: mean_hours_to_loss(group, &assumptions)
            / HOURS_A_YEAR
            / args.groups as f64,
        simulated: args
            .simulate
            .map(|years| simulate_arrays(group, &assumptions, years, args.seed, threads)),
        cannot_tell: CANNOT_TELL,
    };
    let section = picture::build_durability_section(
        one,
        answer.loss_per_year,
        args.groups,
        answer.simulated.as_ref(),
    );
    let title = format!(
        "{} group{} of {} disks that survive {} failure{}",
        args.groups,
        if args.groups == 1 { "" } else { "s" },
        args.disks,
        args.survives,
        if args.survives == 1 { "" } else { "s" }
    );
    let assumed = format!(
        "Assumed: {:.2} % of disks fail a year, {} h until replaced, {} h rebuild, {:e} unreadable \
         bits for each bit read, others fail {} times as often while one is down.",
        args.afr * 100.0,
        args.replace_hours,
        args.rebuild_hours,
        args.ure,
        args.correlation
    );
    write_page(
        args.html.as_deref(),
        &title,
        &[assumed.clone(), CANNOT_TELL.to_owned()],
        std::slice::from_ref(&section),
    )?;
    if args.json {
        print_json("durability", &answer)?;
        return Ok(Status::Ok);
    }
    let mut text = format!("{}\n", wrap(&title, 0));
    let mut line =
        |name: &str, value: String| text.push_str(&format_named_value(name, &value, 25, columns()));
    line(
        "loss within a year",
        format_probability(answer.loss_per_year),
    );
    line(
        "mean time to loss",
        format!("{:.3e} years", answer.mean_years_to_loss),
    );
    if let Some(seen) = answer.simulated {
        let said = format!(
            "{} of {} array-years lost data: {} (95 %: {} to {}); the chain says {}",
            seen.losses,
            seen.years,
            format_probability(seen.loss),
            format_probability(seen.interval.0),
            format_probability(seen.interval.1),
            format_probability(one),
        );
        line("simulated, one group", said);
    }
    text += &format!(
        "\n{}\n  The scale is logarithmic.\n\n{}\n\n{}\n",
        picture::format_section(&section, 0, columns()).trim_end(),
        wrap(&assumed, 0),
        wrap(CANNOT_TELL, 0)
    );
    print(&text)?;
    Ok(Status::Ok)
}
