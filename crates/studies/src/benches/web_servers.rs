//! Compares web servers of this machine that serve the same small files. Each server has its own configuration and a
//! free port of the loopback interface.
//!
//! A configuration selects the program: `server = "nginx"`, `"lighttpd"`, `"apache"` (with `mpm`), `"varnish"` (with
//! `before`, the name of the configuration behind it), `"h2o"`, `"caddy"` or `"node"`. A configuration also sets
//! `workers`, `port` (default: a free one) and `lines`, which are copied into the configuration file.
//!
//! A figure sets the number of `connections` and the value `of`:
//! - `rate`: good answers per second;
//! - `cpu`: the server's percentage of all CPUs;
//! - `per-cpu-second`: good answers per second of the server's CPU time;
//! - `per-percent`: good answers per second for each percent of all CPUs;
//! - `p50`, `p90`, `p99`: percentiles of the latency.
//!
//! The form sets the number of `files` and their `file_size`, the counted `time` and the `washout`.
//!
//! All servers run from the first round to the last, but only one server at a time receives requests.

mod configuration;
mod served_directory;
mod server;

use crate::{BenchContext, Outline, StudyBench, StudyError, settings};
use assay_host::Limits;
use assay_loads::counters::Sources;
use assay_measure::engine::{Meter, MeterSlot, Tools};
use assay_model::doubt::Validity;
use assay_model::load::Http;
use assay_model::sample::Outcome;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_model::web::Step;
use assay_model::{Bytes, Load, Nanos};
use configuration::{Program, Wanted};
use serde::Deserialize;
use served_directory::Ground;
use server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit of a request. A slower request counts as failed.
const LIMIT: Nanos = Nanos(5_000_000_000);
/// Approximate time in which all servers start.
const SETUP: Duration = Duration::from_secs(10);
/// Additional time of each step, for reading the CPU time of the processes.
const AROUND: Duration = Duration::from_millis(300);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    time: Nanos,
    washout: Nanos,
    files: u32,
    file_size: Bytes,
}

impl Length {
    fn of(form: &Form) -> Result<Self, StudyError> {
        let length: Self = settings::of_form(form)?;
        let wrong = |message: &str| {
            Err(StudyError::Setting {
                of: "the form".to_owned(),
                message: message.to_owned(),
            })
        };
        match &length {
            one if one.time.0 < 100_000_000 => wrong("time is at least 100ms"),
            one if !(1..=10_000).contains(&one.files) => wrong("files is from 1 to 10000"),
            one if !(1..=16 << 20).contains(&one.file_size.0) => {
                wrong("file_size is from 1 byte to 16M")
            }
            _ => Ok(length),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Of {
    Rate,
    Cpu,
    PerCpuSecond,
    PerPercent,
    P50,
    P90,
    P99,
}

impl Of {
    /// Returns the value of a step; `None` if too few requests were answered.
    fn value(self, step: &Step) -> Option<f64> {
        let measured = &step.measured;
        let percentile = |percent| {
            let found = measured.percentile(&measured.latency, percent)?;
            Some(found.0 as f64)
        };
        // Mean number of CPUs that the server used.
        let cpus = || {
            let server = step.server.as_ref().ok()?;
            (server.window.0 > 0).then(|| server.cpu.0 as f64 / server.window.0 as f64)
        };
        let percent = || Some(100.0 * cpus()? / f64::from(step.machine.cpus));
        let value = match self {
            Self::Rate => measured.rate(),
            Self::Cpu => percent()?,
            Self::PerCpuSecond => measured.rate() / cpus()?,
            Self::PerPercent => measured.rate() / percent()?,
            Self::P50 => percentile(50.0)?,
            Self::P90 => percentile(90.0)?,
            Self::P99 => percentile(99.0)?,
        };
        value.is_finite().then_some(value)
    }

    /// Returns whether a doubt (a reason to distrust a figure) applies to this value. For example, a generator without
    /// free CPU time sends fewer requests than the server could answer. This does not affect the CPU time per answer.
    fn is_touched(self, doubt: &str) -> bool {
        doubt != "generator-full" || !matches!(self, Self::PerCpuSecond | Self::PerPercent)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    connections: u32,
    of: Of,
}

impl Asked {
    fn of(figure: &Figure) -> Result<Self, StudyError> {
        let asked: Self = settings::of_figure(figure)?;
        match (1..=10_000).contains(&asked.connections) {
            true => Ok(asked),
            false => Err(StudyError::Setting {
                of: format!("figure `{}`", figure.name),
                message: "connections is from 1 to 10000".to_owned(),
            }),
        }
    }
}

/// Bench that starts web servers and sends requests to one of them at a time.
pub(super) struct WebServers<'a> {
    place: &'a BenchContext<'a>,
    length: Option<Length>,
    versions: Vec<(String, String)>,
    tools: Tools,
    load: f64,
    /// Running servers, by the name of the configuration. This field is dropped before `dir`, because servers must end
    /// before their directory is removed.
    servers: BTreeMap<String, Server>,
    ground: Option<Ground>,
}

impl<'a> WebServers<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            length: None,
            versions: Vec::new(),
            tools: Tools::default(),
            load: 0.0,
            servers: BTreeMap::new(),
            ground: None,
        }
    }

    /// Returns the configurations of the study in starting order. A server that depends on another server comes after
    /// that server.
    fn wanted<'s>(
        study: &'s Study,
        form: &Form,
    ) -> Result<Vec<(&'s Configuration, Wanted)>, StudyError> {
        let tried = study.tried(form);
        let mut all = Vec::new();
        for one in &tried {
            let wanted = Wanted::of(one)?;
            if let Some(before) = &wanted.before {
                let behind = tried.iter().find(|other| other.name == *before);
                let behind = behind.map(|other| Wanted::of(other)).transpose()?;
                if behind.is_none_or(|behind| behind.before.is_some()) {
                    return Err(StudyError::Setting {
                        of: format!("configuration `{}`", one.name),
                        message: format!(
                            "before = {before:?}: name a configuration of the same form that serves \
                             files itself"
                        ),
                    });
                }
            }
            all.push((*one, wanted));
        }
        all.sort_by_key(|(_, wanted)| wanted.before.is_some());
        Ok(all)
    }

    /// Returns the program of a configuration, or why it is unavailable.
    fn program(&self, wanted: &Wanted) -> Result<Program, String> {
        Program::find(self.place.env.host, wanted)
    }

    /// Returns for each configuration that cannot be tested, by its name, the reason.
    fn lacking(&self, all: &[(&Configuration, Wanted)]) -> BTreeMap<String, String> {
        let mut lacking: BTreeMap<String, String> = BTreeMap::new();
        for (one, wanted) in all {
            let behind = wanted.before.as_ref();
            let why = match self.program(wanted) {
                Err(why) => Some(why),
                Ok(_) => behind
                    .filter(|behind| lacking.contains_key(*behind))
                    .map(|behind| format!("it stands before {behind}, which is not there")),
            };
            if let Some(why) = why {
                lacking.insert(one.name.clone(), why);
            }
        }
        lacking
    }

    /// Starts a server and returns the version of its program.
    fn start(
        &mut self,
        ground: &Ground,
        one: &Configuration,
        wanted: &Wanted,
    ) -> Result<String, StudyError> {
        let name = &one.name;
        let program = self.program(wanted);
        let program = program.map_err(|why| StudyError::measure(name, why))?;
        let behind = match &wanted.before {
            None => None,
            Some(behind) => match self.servers.get(behind) {
                Some(server) => Some(server.port()),
                None => {
                    let why = format!("it stands before {behind}, which did not start");
                    return Err(StudyError::measure(name, why));
                }
            },
        };
        let server = Server::start(self.place, ground, name, wanted, &program, behind)?;
        self.servers.insert(name.clone(), server);
        Ok(program.version(self.place.env.host))
    }

    fn load(&self, url: &str, paths: &[String], connections: u32) -> Load {
        Load::Http(Box::new(Http {
            url: url.to_owned(),
            connections,
            paths: paths.to_vec(),
            shuffle: true,
            ..Http::default()
        }))
    }

    /// Sends requests to one server in a closed loop.
    fn step(&mut self, name: &str, connections: u32, round: u32) -> Result<Step, StudyError> {
        let lost = || StudyError::measure(name, "it was not started");
        let (Some(ground), Some(length)) = (&self.ground, &self.length) else {
            return Err(lost());
        };
        let server = self.servers.get_mut(name).ok_or_else(lost)?;
        server.is_alive()?;
        let url = server.url();
        let paths = ground.paths();
        let load = self.load(&url, paths, connections);
        let meter: Meter<'_> = self.place.env.meter(&self.place.dir, &self.tools);
        let slot = MeterSlot {
            load: &load,
            name,
            ramp: length.washout,
            runtime: length.time,
            limit: LIMIT,
            size: Bytes(0),
            // Determines the files and their order.
            seed: self.place.seed ^ (u64::from(round) << 32) ^ u64::from(connections),
            place: &assay_measure::engine::LoadTarget::Itself,
            sources: &Sources::find(self.place.env.host, &[]),
            target: "",
            round,
            number: 0,
        };
        let sample = meter.take(&slot);
        let sample = sample.map_err(|error| StudyError::measure(name, error))?;
        let server = self.servers.get_mut(name).ok_or_else(lost)?;
        // Answers of a server that died do not count.
        server.is_alive()?;
        let seen = sample.workers.into_iter().find_map(|worker| worker.http);
        match (sample.outcome, seen) {
            (Outcome::Completed, Some(step)) => Ok(*step),
            // On a busy machine a server may get no CPU time within a short step. The step does not count.
            (Outcome::Failed { .. }, Some(step)) if step.measured.failed() == 0 => Ok(*step),
            (Outcome::Failed { error }, _) => Err(StudyError::measure(name, error)),
            (Outcome::Completed, None) => Err(StudyError::measure(name, "nothing was seen")),
            (Outcome::Interrupted | Outcome::TimedOut { .. }, _) => Err(StudyError::Cancelled),
        }
    }
}

impl StudyBench for WebServers<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let length = Length::of(form)?;
        let all = Self::wanted(study, form)?;
        let mut together: BTreeMap<&String, u32> = BTreeMap::new();
        for figure in study.measured() {
            let asked = Asked::of(figure)?;
            if let Some(word) = &figure.together
                && *together.entry(word).or_insert(asked.connections) != asked.connections
            {
                return Err(StudyError::Setting {
                    of: format!("figure `{}`", figure.name),
                    message: format!("the figures of {word:?} differ in their connections"),
                });
            }
        }
        let lacking = self.lacking(&all);
        let there = all
            .iter()
            .filter(|(one, _)| !lacking.contains_key(&one.name));
        let titles: Vec<&str> = there.map(|(one, _)| one.title()).collect();
        let user = match served_directory::is_root() {
            true => ", as the user nobody",
            false => "",
        };
        let makes = vec![
            format!(
                "a directory with {} files of {} and what the servers write, removed at the end",
                length.files, length.file_size
            ),
            format!(
                "servers{user}, each on a port of 127.0.0.1: {}",
                titles.join("; ")
            ),
        ];
        Ok(Outline {
            makes,
            leaves_out: lacking.into_keys().collect(),
            guest: false,
            setup: SETUP,
            step: Duration::from(length.time) + Duration::from(length.washout) + AROUND,
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        let length = Length::of(form)?;
        let all = Self::wanted(study, form)?;
        let mut lacking = self.lacking(&all);
        (self.place.say)("writing the files");
        let ground = Ground::make(self.place, length.files, length.file_size)?;
        let mut versions = BTreeSet::new();
        for (one, wanted) in &all {
            self.place.go_on()?;
            if lacking.contains_key(&one.name) {
                continue;
            }
            (self.place.say)(&format!("starting {}", one.title()));
            match self.start(&ground, one, wanted) {
                Ok(version) => versions.insert((wanted.program_name().to_owned(), version)),
                Err(StudyError::Cancelled) => return Err(StudyError::Cancelled),
                // Other servers can still be measured.
                Err(StudyError::Measure { reason, .. }) => {
                    lacking.insert(one.name.clone(), reason);
                    continue;
                }
                Err(error) => return Err(error),
            };
        }
        if self.servers.is_empty() {
            let why = lacking.iter().map(|(name, why)| format!("{name}: {why}"));
            let why: Vec<String> = why.collect();
            return Err(StudyError::measure("there is no server", why.join("; ")));
        }
        let loads: Vec<Load> = self
            .servers
            .values()
            .map(|server| self.load(&server.url(), ground.paths(), 1))
            .collect();
        (self.place.say)("asking each server for each file");
        let found = Tools::find(&self.place.env, self.place.seed, &loads);
        self.tools = found.map_err(|error| match self.place.env.cancel.is_cancelled() {
            true => StudyError::Cancelled,
            false => StudyError::measure("the servers", error),
        })?;
        self.load = served_directory::load_average(self.place.env.host);
        self.versions = versions.into_iter().collect();
        self.ground = Some(ground);
        self.length = Some(length);
        let not_tried = lacking.into_iter().map(|(configuration, why)| NotTried {
            configuration,
            figure: None,
            why,
        });
        Ok(not_tried.collect())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let asked: Vec<Asked> = figures
            .iter()
            .map(|figure| Asked::of(figure))
            .collect::<Result<_, _>>()?;
        let connections = asked.first().map_or(1, |asked| asked.connections);
        let step = self.step(&configuration.name, connections, round)?;
        let doubts = assay_judge::web::doubts(&step);
        let mut all = Vec::new();
        for (figure, asked) in figures.iter().zip(asked) {
            // Without a value, the figure is omitted.
            let Some(value) = asked.of.value(&step) else {
                continue;
            };
            let against: Vec<_> = doubts
                .iter()
                .filter(|doubt| asked.of.is_touched(&doubt.code))
                .cloned()
                .collect();
            all.push(Observation {
                configuration: configuration.name.clone(),
                figure: figure.name.clone(),
                round,
                value,
                doubts: against.iter().map(|doubt| doubt.code.clone()).collect(),
                void: Validity::of(&against) == Validity::Void,
            });
        }
        Ok(all)
    }

    fn machine(&self) -> Vec<(String, String)> {
        let host = self.place.env.host;
        let mut lines = Vec::new();
        let argv = [OsStr::new("uname"), OsStr::new("-srm")];
        if let Ok(output) = host.run(&argv, Limits::default()) {
            lines.push(("kernel".to_owned(), output.text().trim().to_owned()));
        }
        let cpus = served_directory::count_cpus(host);
        lines.push((
            "CPUs".to_owned(),
            format!(
                "{cpus}; the generator ({}) and the server that it asks share them, over the loopback \
                 interface",
                match (cpus / 2).max(1) {
                    1 => "one thread".to_owned(),
                    n => format!("{n} threads"),
                }
            ),
        ));
        lines.push((
            "load before".to_owned(),
            format!("{:.2} on average in the last minute", self.load),
        ));
        if let Some(length) = &self.length {
            lines.push((
                "files".to_owned(),
                format!(
                    "{} of {}, asked at random, kept alive as the server allows; no access log",
                    length.files, length.file_size
                ),
            ));
        }
        lines.extend(self.versions.iter().cloned());
        lines
    }
}

impl Drop for WebServers<'_> {
    fn drop(&mut self) {
        // All at once, so that no server waits for another's end.
        for server in self.servers.values() {
            server.ask_to_end();
        }
        self.servers.clear();
    }
}
