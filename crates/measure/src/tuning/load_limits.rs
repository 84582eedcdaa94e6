//! Finds the resource that limits the load of a session, and measures the performance of the lowest layer under the
//! same load. The lowest layer depends on the load:
//! - for a command, the start of a process;
//! - for durable writes, a direct write that waits for the device;
//! - for direct reads, the disk itself;
//! - for a web server, its fastest answer.
//!
//! `assay_tune::Diagnosis` interprets the result.

use super::driver::MachineDriver;
use super::error::TuneError;
use crate::engine::LoadTarget;
use crate::runner::OpenTarget;
use crate::trials::TrialError;
use crate::trials::bench::Clocks;
use crate::trials::loader::Loader;
use assay_judge::trial::judge_slots_for_display;
use assay_judge::{LoadDiagnosis, diagnose_load};
use assay_model::result::Interval;
use assay_model::trial::{Side, Trial};
use assay_model::workload::Durability;
use assay_model::{Load, Nanos, TargetInfo};
use assay_tune::{BottomRung, Diagnosis, OperationPart, PartTime, Want};

/// Number of baseline samples that a resumed session takes, because it has no samples yet.
const ROUNDS: u32 = 2;
/// Confidence that the interval between the smallest and the largest of eight values contains the median: 1 − 2 ÷ 2⁸.
const RANGE_OF_EIGHT: f64 = 0.99;

/// A load that measures the lowest layer, and its target.
struct BottomLoad {
    what: String,
    load: Load,
    /// Disk, which is only read. `None` if the load uses the target of the session.
    disk: Option<OpenTarget>,
    /// Whether the settings that the session tries also affect this load.
    is_tunable: bool,
}

impl MachineDriver<'_> {
    /// Finds the resource that limits the load, and measures the lowest layer for `rounds` rounds.
    pub(super) fn diagnose_load(
        &mut self,
        objective: &Want,
        rounds: u32,
    ) -> Result<Diagnosis, TuneError> {
        self.make_ready()?;
        self.enter_base()?;
        while self.baseline.len() < ROUNDS as usize {
            self.pairs += 1;
            let since = self.clocks();
            let slot = self.slot(self.pairs, Side::Now, String::new(), since)?;
            self.baseline.push(slot.sample);
        }
        let found = diagnose_load(&self.trial, &self.baseline);
        let mut diagnosis = Diagnosis {
            parts: found.as_ref().map_or_else(Vec::new, list_parts),
            limit: found.map(|found| found.limit),
            ..Diagnosis::default()
        };
        if rounds > 0 {
            match self.measure_bottom(objective, rounds)? {
                Ok(bottom) => diagnosis.bottom = Some(bottom),
                Err(why) => diagnosis.no_bottom = Some(why),
            }
        }
        Ok(diagnosis)
    }

    /// Measures the lowest layer. The inner error is the reason why no lowest layer can be measured.
    fn measure_bottom(
        &mut self,
        objective: &Want,
        rounds: u32,
    ) -> Result<Result<BottomRung, String>, TuneError> {
        let env = self.lent.env;
        self.make_ready()?;
        if self.arms.is_some() {
            let why = "no floor is known: the load runs on objects that the session creates";
            return Ok(Err(why.to_owned()));
        }
        let bottom = match &self.trial.plan.load {
            Load::Http(_) => self.find_smallest_answer(),
            _ => find_bottom_load(&self.trial, |disk| OpenTarget::open(env.host, disk).ok()),
        };
        let bottom = match bottom {
            Ok(bottom) => bottom,
            Err(why) => return Ok(Err(why)),
        };
        let mut trial = self.trial.clone();
        trial.plan.load = bottom.load.clone();
        let work = self.lent.scratch.dir();
        let loader = match Loader::new(&trial, &env, work, false) {
            Ok(loader) => loader,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let own = self.ready.as_ref().map(|(_, place)| place);
        let disk = match bottom.disk.as_ref().and_then(OpenTarget::file) {
            Some(held) => Some(LoadTarget::held(work, "disk", held).map_err(TrialError::from)?),
            None => None,
        };
        let Some(place) = disk.as_ref().or(own) else {
            return Ok(Err("the load has no place".to_owned()));
        };
        let mut values = Vec::new();
        for round in 0..rounds {
            let number = self.pairs + 1 + round;
            let since = Clocks::read(env.now);
            let load = (&loader, place, &trial.plan);
            let slot = self.run_load(load, (number, Side::Now), String::new(), since)?;
            let judged = judge_slots_for_display(&trial, &[slot], &[]).samples;
            values.extend(judged[0].figures.get(&objective.metric()).copied());
        }
        self.pairs += rounds;
        Ok(summarise(bottom, objective, &values, rounds))
    }

    /// Returns a load that requests the web server's fastest answer.
    fn find_smallest_answer(&self) -> Result<BottomLoad, String> {
        let answer = self.ready.as_ref();
        let answer = answer.and_then(|(loader, _)| loader.find_smallest_answer());
        let answer = answer.ok_or(
            "no floor is known: the server answers no harmless request much quicker than this one",
        )?;
        Ok(BottomLoad {
            what: format!("the smallest answer of this server ({})", answer.describe()),
            load: Load::Http(Box::new(answer.load)),
            disk: None,
            is_tunable: true,
        })
    }
}

fn summarise(
    bottom: BottomLoad,
    objective: &Want,
    values: &[f64],
    rounds: u32,
) -> Result<BottomRung, String> {
    if (values.len() as u32) < rounds {
        let metric = objective.metric();
        return Err(format!("{} gives no figure `{metric}`", bottom.what));
    }
    let figure = Interval {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        confidence: RANGE_OF_EIGHT,
    };
    Ok(BottomRung {
        what: bottom.what,
        figure,
        is_tunable: bottom.is_tunable,
    })
}

/// Lists the parts of an operation whose time is known.
fn list_parts(found: &LoadDiagnosis) -> Vec<PartTime> {
    let nanos = |time: f64| Nanos(time.max(0.0) as u64);
    let mut parts = Vec::new();
    if let Some((flush, whole)) = found.flush.filter(|(_, whole)| *whole > 0.0) {
        parts.push(PartTime {
            part: OperationPart::Flush,
            takes: nanos(flush.min(whole)),
            of: nanos(whole),
        });
    }
    if let (Some(busy), Some(latency)) = (found.machine_busy, found.latency) {
        // All CPUs, of all programs: no operation can have used more.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let used = latency * (busy * cpus / found.in_flight).min(1.0);
        parts.push(PartTime {
            part: OperationPart::Cpu,
            takes: nanos(used),
            of: nanos(latency),
        });
    }
    parts
}

/// Returns the load for the lowest layer below the session's load. The error is the reason why no such load exists.
fn find_bottom_load(
    trial: &Trial,
    open_disk: impl Fn(&str) -> Option<OpenTarget>,
) -> Result<BottomLoad, String> {
    let load = &trial.plan.load;
    let Load::Fio { workload, size } = load else {
        return match load {
            Load::Command {
                prints: Some(figure),
                ..
            } => Err(format!(
                "no floor is known for `{}`: the load prints it, and no lower layer does",
                figure.name
            )),
            Load::Command { .. } => Ok(BottomLoad {
                what: "starting a program that does nothing".to_owned(),
                load: Load::Command {
                    argv: vec!["true".to_owned()],
                    prints: None,
                },
                disk: None,
                is_tunable: false,
            }),
            _ => Err(format!(
                "no lower layer of this load ({}) is known",
                load.name()
            )),
        };
    };
    let info = trial.target.as_ref();
    let mut workload = workload.clone();
    if workload.pattern.writes() {
        if workload.durability == Durability::None {
            return Err("writes that are not flushed may stay in memory".to_owned());
        }
        if workload.direct && workload.durability == Durability::Dsync {
            return Err("the load is the lowest layer that may be written to".to_owned());
        }
        (workload.direct, workload.durability) = (true, Durability::Dsync);
        let disk = info.and_then(|info| info.disks.first());
        let disk = disk.map_or_else(|| "the device".to_owned(), Clone::clone);
        return Ok(BottomLoad {
            what: format!("a direct write that waits for {disk} (O_DSYNC)"),
            load: Load::Fio {
                workload,
                size: *size,
            },
            disk: None,
            is_tunable: false,
        });
    }
    if !workload.direct {
        return Err("reads may come from memory".to_owned());
    }
    let disk = info.and_then(single_disk);
    let disk = disk.ok_or("there is not exactly one disk below the target")?;
    let ground = open_disk(&format!("/dev/{disk}"));
    let ground = ground.ok_or_else(|| format!("/dev/{disk} cannot be read; root can"))?;
    Ok(BottomLoad {
        what: format!("{disk} read directly"),
        load: Load::Fio {
            workload,
            size: *size,
        },
        disk: Some(ground),
        is_tunable: false,
    })
}

fn single_disk(info: &TargetInfo) -> Option<&String> {
    match &info.disks[..] {
        [disk]
            if info.devices.len() == 1
                && info.kind == assay_model::target::TargetKind::Directory =>
        {
            Some(disk)
        }
        _ => None,
    }
}
