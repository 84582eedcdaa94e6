//! `assay lab net`: simulates many people behind one bottleneck, on one machine.

use super::Lab;
use crate::global::Global;
use crate::status::Status;
use crate::verbs::net::run::{self as net_run, Output, Sending};
use crate::verbs::net::trial::{self, Pairs};
use anyhow::Context as _;
use assay_lab::network_bed::{Bed, Discipline, LinkShape, Rate, SERVER, Trace};
use assay_model::Nanos;
use assay_model::trial::Side;
use assay_net::client::{self, ServerLink};
use assay_net::plan::NetPlan;
use assay_net::result::Run;
use assay_net::server::NetServer;
use clap::ValueEnum as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Arguments of `assay lab net`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab net four                four people behind 150 Mbit/s with 400 ms of buffer
  assay lab net four --queue fq-codel
                                    the same link with a queue that is fair and short
  assay lab net four --queue fifo --against fq-codel --seconds 10
                                    both in turns, with a verdict that chance seldom gives
  assay lab net four --down 50mbit --up 10mbit --delay 20ms --loss 1
  assay lab net four --trace lte.down --up-trace lte.up
                                    a link as it was recorded, for mahimahi
  assay lab net evening.toml --html r.html

It needs root, iproute2 and /dev/net/tun, and touches no interface of this machine: everything lies in
network namespaces that go with assay.")]
pub struct Net {
    /// Built-in plan or a file
    #[arg(value_name = "PLAN", default_value = "four")]
    plan: String,
    /// Set the download speed of the bottleneck
    #[arg(long, value_name = "SPEED", default_value = "150mbit", value_parser = crate::verbs::web::speed, conflicts_with = "trace")]
    down: f64,
    /// Set the upload speed of the bottleneck [default: as --down]
    #[arg(long, value_name = "SPEED", value_parser = crate::verbs::web::speed)]
    up: Option<f64>,
    /// Replay this mahimahi trace for the download direction
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Replay this trace for the upload direction [default: as --trace]
    #[arg(long, value_name = "FILE", requires = "trace", conflicts_with = "up")]
    up_trace: Option<PathBuf>,
    /// Choose the queue at the bottleneck
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Queue::Fifo)]
    queue: Queue,
    /// Also measure this queue in turn, and judge both as a trial
    #[arg(long, value_name = "KIND", value_enum)]
    against: Option<Queue>,
    #[command(flatten)]
    pairs: Pairs,
    /// Set the length of a full FIFO queue
    #[arg(long, value_name = "TIME", default_value = "400ms")]
    buffer: Nanos,
    /// Set the one-way delay of a packet, in each direction
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    delay: Nanos,
    /// Set the percentage of packets lost at random
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    loss: f64,
    /// Measure for N seconds instead of the plan's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// Set the random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    sending: Sending,
    #[command(flatten)]
    output: Output,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Queue {
    /// One queue for all packets, until it is full
    Fifo,
    /// A short queue for each flow
    FqCodel,
}

impl Queue {
    fn discipline(self) -> Discipline {
        match self {
            Self::Fifo => Discipline::Fifo,
            Self::FqCodel => Discipline::FqCodel,
        }
    }

    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Maximum size of a recorded trace in bytes.
const LONGEST: u64 = 64 << 20;

fn recording(path: &Path) -> anyhow::Result<Rate> {
    let bytes = crate::input::bytes(path, LONGEST, "a recording of a link")?;
    let trace = Trace::read(&bytes)
        .with_context(|| format!("cannot read {} as a mahimahi trace", path.display()))?;
    Ok(Rate::Recorded(Arc::new(trace)))
}

/// Returns the settings of the bottleneck in both directions, with this queue.
fn shapes(args: &Net, rates: &[Rate; 2], queue: Queue) -> [LinkShape; 2] {
    rates.clone().map(|rate| LinkShape {
        rate,
        discipline: queue.discipline(),
        buffer: args.buffer.into(),
        delay: args.delay.into(),
        loss: args.loss / 100.0,
    })
}

pub fn run(lab: &Lab, args: &Net, global: &Global) -> anyhow::Result<Status> {
    let mut plan = net_run::plan(&args.plan)?;
    plan.seconds = args.seconds.unwrap_or(plan.seconds);
    args.sending.apply(&mut plan)?;
    let cancel = &lab.cancel;
    let stop = || cancel.is_cancelled();
    let down = match &args.trace {
        Some(path) => recording(path)?,
        None => Rate::BitPerS(args.down),
    };
    let up = match (&args.up_trace, args.up) {
        (Some(path), _) => recording(path)?,
        (None, Some(speed)) => Rate::BitPerS(speed),
        (None, None) => down.clone(),
    };
    let rates = [down, up];
    if let Some(other) = args.against {
        return against(args, plan, &rates, other, global, &stop);
    }
    net_run::in_turn(&plan, &args.output, global, &stop, &mut |plan| {
        let [down, up] = shapes(args, &rates, args.queue);
        let bed = Bed::new(plan.people.len(), down, up, args.seed)?;
        let run = carry_out(&bed, plan, args.output.quiet, &stop)?;
        if !args.output.json {
            report_bottleneck(&bed);
        }
        Ok(run)
    })
}

/// Prints for each direction how many bytes passed the bottleneck, and how many packets it dropped.
fn report_bottleneck(bed: &Bed) {
    let sent = |(bytes, packets, dropped): (u64, u64, u64)| {
        format!(
            "{} MB in {packets} packets, {dropped} dropped",
            bytes / 1_000_000
        )
    };
    let (down, up) = bed.counters();
    eprintln!(
        "through the bottleneck, down: {}; up: {}",
        sent(down.read()),
        sent(up.read())
    );
}

/// Runs the plan with both queues in randomised order, each in a separate network.
fn against(
    args: &Net,
    plan: NetPlan,
    rates: &[Rate; 2],
    other: Queue,
    global: &Global,
    stop: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<Status> {
    if other == args.queue {
        anyhow::bail!(
            "--queue {0} --against {0}: both sides would be the same",
            other.name()
        );
    }
    anyhow::ensure!(
        plan.congestion.len() <= 1,
        "--against compares two queues: name one algorithm of congestion control"
    );
    let sides = [args.queue.name(), other.name()];
    let settled = trial::begin(plan, sides, &args.pairs, args.seed)?;
    let mut measure = |side: Side, slot: u32, plan: &NetPlan| {
        let queue = match side {
            Side::Now => args.queue,
            Side::Changed => other,
        };
        let [down, up] = shapes(args, rates, queue);
        // Each run has other random losses; a trial with the same seed has the same.
        let seed = args.seed.wrapping_add(u64::from(slot) << 32);
        let bed = Bed::new(plan.people.len(), down, up, seed)?;
        let run = carry_out(&bed, plan, true, stop)?;
        anyhow::Ok(run.map(|run| (queue.name(), run)))
    };
    let (settled, ended) = trial::carry_out(settled, args.output.quiet, &mut measure)?;
    trial::show(&settled, ended, &args.output, global)
}

/// Assigns a device to every person of the plan. Otherwise the assignment would depend on the order in which devices
/// join.
fn with_devices(plan: &NetPlan) -> NetPlan {
    let mut plan = plan.clone();
    for (number, person) in plan.people.iter_mut().enumerate() {
        let device = || format!("device-{}", number + 1);
        person.client.get_or_insert_with(device);
    }
    plan
}

/// Runs server, clients and controller, each in its network namespace.
fn carry_out(
    bed: &Bed,
    plan: &NetPlan,
    quiet: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<Option<Run>> {
    let plan = &with_devices(plan);
    let host = IpAddr::from(SERVER);
    let server = bed
        .server()
        .inside(|| NetServer::bind((host, 7443).into(), &[]))??;
    let (clients, controllers) = (server.for_clients(host), server.for_controllers(host));
    let clients = clients.context("the server printed no address for clients")?;
    let controllers = controllers.context("the server printed no address for controllers")?;
    let over = AtomicBool::new(false);
    let ended = || over.load(Ordering::SeqCst);
    thread::scope(|scope| {
        // Ends the threads in any case.
        let done = EndsAll(&over);
        let (server, ended, clients) = (&server, &ended, &clients);
        scope.spawn(move || bed.server().inside(|| server.serve(ended)));
        for (number, person) in plan.people.iter().enumerate() {
            let name = person.client.clone().unwrap_or_default();
            scope.spawn(move || {
                let Some(person) = bed.person(number) else {
                    return;
                };
                let agent = format!("assay {}", env!("CARGO_PKG_VERSION"));
                // The run reports the result.
                let _ = person.inside(|| {
                    let link = ServerLink::new(clients)?;
                    client::run(&link, &name, &agent, Some(1), ended, &mut |_| {})
                });
            });
            // Devices join in the order of the people.
            thread::sleep(Duration::from_millis(20));
        }
        let link = ServerLink::new(&controllers)?;
        let wait = Duration::from_secs(30 + plan.people.len() as u64);
        let run = bed
            .server()
            .inside(|| net_run::carry_out(&link, plan, wait, quiet, stop))?;
        drop(done);
        run
    })
}

struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
