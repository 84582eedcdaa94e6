//! Measures the points of a data sheet on this storage. Also measures how much a fast log or cache device improves a
//! slow pool in a guest.
//!
//! A configuration with `here = true` is a file in the directory, which is measured with the host's fio. A
//! configuration with `pool = "plain"`, `"log"` or `"cache"` is a pool in a guest. QEMU limits the main disk of the
//! pool to `slow_iops` requests per second; a log or cache device is not limited. No disk waits for flushes, so the
//! fast devices behave like devices with power-loss protection. A figure is an fio workload. With `log_share = true`
//! the figure is the number of bytes that reached the log device per byte that fio wrote, counted by QEMU. The form
//! sets the `runtime` of a sample, the `size` of the file on this machine, the `pool_size` of files in the pools, and
//! `slow_iops`.

use crate::fio::{Jobs, Work};
use crate::guest::{run_command, run_fio};
use crate::{BenchContext, Outline, StudyBench, StudyError, guest, settings, to_observation};
use assay_changes::OwnDirectory;
use assay_host::held::{Access, Held};
use assay_lab::disk::{CacheMode, Throttle};
use assay_lab::{Disk, Guest, counters};
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_model::{Bytes, Nanos};
use serde::Deserialize;
use serde_json::json;
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Additional time of each sample: start and end of fio, and the communication with an emulated guest.
const AROUND: Duration = Duration::from_secs(3);
/// Approximate time in which an emulated guest boots, and creates and fills three pools.
const SETUP: Duration = Duration::from_secs(120);
/// Time limit of a command in an emulated guest.
const LIMIT: Duration = Duration::from_secs(300);
/// Memory of the guest in MiB.
const MEMORY: u32 = 1024;
/// Size of the ARC (`zfs_arc_max`) in bytes. This is the minimum of OpenZFS (`MIN_ARC_MAX`, module/zfs/arc.c), so that
/// the files do not fit into the ARC.
const ARC: u64 = 64 << 20;

/// Devices of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pool {
    /// One slow disk, without a fast device.
    Plain,
    /// A slow disk and a fast log device.
    Log,
    /// A slow disk and a fast cache device.
    Cache,
}

impl Pool {
    /// Returns the name of the pool in the guest. It cannot be `log` or `cache`, because ZFS reserves these words.
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Log => "logged",
            Self::Cache => "cached",
        }
    }

    /// Returns the vdev class of the fast disk, as `zpool create` names the class; `None` without a fast disk.
    fn role(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Log => Some("log"),
            Self::Cache => Some("cache"),
        }
    }

    fn slow(self) -> String {
        format!("slow-{}", self.name())
    }

    /// Returns the name of the pool's fast disk; `None` if it has none.
    fn fast(self) -> Option<String> {
        self.role().map(|role| format!("fast-{role}"))
    }

    /// Returns the path of the pool's test file in the guest.
    fn file(self) -> PathBuf {
        Path::new("/pool").join(self.name()).join("file")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    here: bool,
    pool: Option<Pool>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    runtime: Nanos,
    size: Bytes,
    pool_size: Bytes,
    slow_iops: u32,
}

fn parse_requirements(one: &Configuration) -> Result<Wanted, StudyError> {
    let wanted: Wanted = settings::of_configuration(one)?;
    match wanted.here == wanted.pool.is_some() {
        true => Err(StudyError::Setting {
            of: format!("configuration `{}`", one.name),
            message: "say either here = true, or pool = \"plain\", \"log\" or \"cache\"".to_owned(),
        }),
        false => Ok(wanted),
    }
}

/// Returns the figure without `log_share`, so that only fio's settings remain, and whether `log_share = true` was set.
fn split(figure: &Figure) -> (Figure, bool) {
    let mut plain = figure.clone();
    let share = plain.settings.remove("log_share");
    let share = share.and_then(|value| value.as_bool()).unwrap_or(false);
    (plain, share)
}

/// Bench that measures points of a data sheet and pools with fast devices.
pub(super) struct Points<'a> {
    place: &'a BenchContext<'a>,
    length: Length,
    guest: Option<Guest>,
    file: PathBuf,
    /// Scratch directory. It is kept open so that its path stays valid.
    dir: Option<OwnDirectory>,
    work: Option<Work>,
}

impl<'a> Points<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            length: Length::default(),
            guest: None,
            file: PathBuf::new(),
            dir: None,
            work: None,
        }
    }

    fn pools(study: &Study, form: &Form) -> Result<Vec<Pool>, StudyError> {
        let mut pools = Vec::new();
        for one in study.tried(form) {
            pools.extend(parse_requirements(one)?.pool);
        }
        pools.sort_unstable();
        pools.dedup();
        Ok(pools)
    }

    fn file(&mut self) -> Result<(), StudyError> {
        let made = self.place.scratch_dir("study")?;
        let dir = made.through().to_owned();
        self.dir = Some(made);
        self.work = Some(Work::new(dir.join("fio"))?);
        self.file = dir.join("file");
        fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.file)
            .map_err(StudyError::io(&self.file))?;
        (self.place.say)("writing the file");
        let (size, seed) = (self.length.size, self.place.seed);
        let held = Held::open(&self.file, Access::ReadWrite)?;
        assay_loads::layout::fill(&held, size, seed, self.place.env.cancel, &mut |_, _| {})
            .map_err(|error| StudyError::measure(self.file.to_string_lossy(), error))
    }

    /// Boots the guest and creates the pools. Each pool contains a file that does not fit into the ARC.
    fn guest(&mut self, pools: &[Pool]) -> Result<(), StudyError> {
        let size = self.length.pool_size.0 * 3 + (256 << 20);
        let disk = |name: &str, throttle| Disk {
            cache: CacheMode::Unsafe,
            throttle,
            ..Disk::scratch(name, size)
        };
        let slow = Throttle {
            iops: u64::from(self.length.slow_iops),
            bytes: 0,
        };
        let mut disks = Vec::new();
        for pool in pools {
            disks.push(disk(&pool.slow(), Some(slow)));
            disks.extend(pool.fast().map(|name| disk(&name, None)));
        }
        let guest = self.place.boot("pools", MEMORY, 2, disks)?;
        let run = |argv: &[&str]| run_command(&guest, argv, LIMIT);
        run(&["modprobe", "zfs"])?;
        for (name, value) in [
            ("zfs_arc_max", ARC),
            // Everything evicted from the ARC may go to a cache device at once.
            ("l2arc_noprefetch", 0),
            ("l2arc_write_max", 256 << 20),
            ("l2arc_write_boost", 256 << 20),
        ] {
            set(&guest, name, value)?;
        }
        for pool in pools {
            self.place.go_on()?;
            (self.place.say)(&format!("making the pool {}", pool.name()));
            let device = |name: &str| -> Result<String, StudyError> {
                let found = guest.devices(&[name])?;
                Ok(found
                    .first()
                    .map_or(String::new(), |path| path.display().to_string()))
            };
            let slow = device(&pool.slow())?;
            let mount = format!("mountpoint=/pool/{}", pool.name());
            let mut argv = vec!["-o", "ashift=12", "-O", &mount];
            // Block size of a database page or virtual disk.
            argv.extend([
                "-O",
                "recordsize=16k",
                "-O",
                "compression=off",
                pool.name(),
                &slow,
            ]);
            let fast = pool.fast().map(|name| device(&name)).transpose()?;
            if let (Some(role), Some(fast)) = (pool.role(), &fast) {
                argv.extend([role, fast.as_str()]);
            }
            guest.create_pool(&argv, LIMIT)?;
            // Since 2.3 O_DIRECT would bypass the ARC; older versions have no such property.
            let _ = run(&["zfs", "set", "direct=disabled", pool.name()]);
            let file = pool.file();
            let job = assay_fio::job::layout_job(&file, self.length.pool_size, self.place.seed);
            run_fio(
                &guest,
                &job.map_err(|error| StudyError::measure("layout", error))?,
                LIMIT,
            )?;
            if *pool == Pool::Cache {
                // Read twice, so that evicted data gets into the cache device.
                let from = format!("if={}", file.display());
                for _ in 0..2 {
                    run(&["dd", &from, "of=/dev/null", "bs=1M"])?;
                }
            }
        }
        self.guest = Some(guest);
        Ok(())
    }

    fn in_pool(
        &self,
        pool: Pool,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let lost = || StudyError::measure(&configuration.name, "it was not made");
        let guest = self.guest.as_ref().ok_or_else(lost)?;
        let parts: Vec<(Figure, bool)> = figures.iter().map(|figure| split(figure)).collect();
        let plain: Vec<&Figure> = parts.iter().map(|(figure, _)| figure).collect();
        let jobs = Jobs::of(&plain, self.length.runtime, round)?;
        let seed = self.place.seed ^ (u64::from(round) << 32);
        let job = jobs.render(&pool.file(), self.length.pool_size, seed)?;
        // Outstanding writes of an earlier sample must not count for this one.
        run_command(guest, &["zpool", "sync", pool.name()], LIMIT)?;
        let before = read_written_bytes(guest, pool.fast())?;
        let document = run_fio(guest, &job, jobs.time() + LIMIT)?;
        let after = read_written_bytes(guest, pool.fast())?;
        let bytes: u64 = document
            .jobs
            .iter()
            .filter_map(|job| Some(job.write()?.bytes.0))
            .sum();
        let mut all = jobs.observations(configuration, round, &document);
        for (figure, _) in parts.iter().filter(|(_, share)| *share) {
            // Counted by QEMU, so doubts about a rate do not apply.
            all.retain(|one| one.figure != figure.name);
            let share = after.saturating_sub(before) as f64 / (bytes as f64).max(1.0);
            all.push(to_observation(configuration, figure, round, share));
        }
        Ok(all)
    }
}

/// Sets a parameter of the guest's ZFS module.
fn set(guest: &Guest, name: &str, value: u64) -> Result<(), StudyError> {
    let from = "/run/value";
    guest.push_bytes(value.to_string().as_bytes(), Path::new(from), 0o600)?;
    let to = format!("/sys/module/zfs/parameters/{name}");
    run_command(guest, &["cp", "--no-preserve=all", from, &to], LIMIT).map(drop)
}

/// Returns the number of bytes that were written to a disk until now; 0 without a disk.
fn read_written_bytes(guest: &Guest, disk: Option<String>) -> Result<u64, StudyError> {
    let Some(disk) = disk else {
        return Ok(0);
    };
    let all = guest.qmp("query-blockstats", json!({}))?;
    let bytes = counters::of_disk(&all, &disk).and_then(|ours| ours["wr_bytes"].as_u64());
    bytes.ok_or_else(|| StudyError::measure(disk, "QEMU has no counters for it"))
}

impl StudyBench for Points<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let length: Length = settings::of_form(form)?;
        let pools = Self::pools(study, form)?;
        for figure in study.measured() {
            Jobs::of(&[&split(figure).0], length.runtime, 1)?;
        }
        let mut makes = vec![format!("a file of {} in the directory", length.size)];
        if !pools.is_empty() {
            let names: Vec<&str> = pools.iter().map(|pool| pool.name()).collect();
            makes.push(format!(
                "a throwaway guest with pools ({}) on disks held to {} requests a second, log and \
                 cache on disks that are not",
                names.join(", "),
                length.slow_iops
            ));
        }
        Ok(Outline {
            makes,
            leaves_out: Vec::new(),
            guest: !pools.is_empty(),
            setup: SETUP,
            step: Duration::from(length.runtime) + AROUND,
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        self.length = settings::of_form(form)?;
        let mut here = false;
        for one in study.tried(form) {
            here |= parse_requirements(one)?.here;
        }
        if here {
            self.file()?;
        }
        let pools = Self::pools(study, form)?;
        if !pools.is_empty() {
            self.guest(&pools)?;
        }
        Ok(Vec::new())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        if let Some(pool) = parse_requirements(configuration)?.pool {
            return self.in_pool(pool, configuration, figures, round);
        }
        let jobs = Jobs::of(figures, self.length.runtime, round)?;
        let seed = self.place.seed ^ (u64::from(round) << 32);
        let lost = || StudyError::measure(&configuration.name, "it was not made");
        let work = self.work.as_ref().ok_or_else(lost)?;
        let document = work.jobs(self.place, &jobs, &self.file, self.length.size, seed)?;
        Ok(jobs.observations(configuration, round, &document))
    }

    fn machine(&self) -> Vec<(String, String)> {
        let mut lines = vec![("file here".to_owned(), self.length.size.to_string())];
        let Some(guest) = &self.guest else {
            return lines;
        };
        lines.extend(guest::describe_guest(guest));
        if let Ok(text) = run_command(guest, &["zfs", "version"], LIMIT) {
            lines.push((
                "OpenZFS".to_owned(),
                text.lines().collect::<Vec<_>>().join(", "),
            ));
        }
        lines.push((
            "slow disks".to_owned(),
            format!(
                "held to {} requests a second by QEMU; no disk waits for a flush; ARC {}; files {}",
                self.length.slow_iops,
                Bytes(ARC),
                self.length.pool_size
            ),
        ));
        lines
    }

    fn emulated(&self) -> bool {
        self.guest.as_ref().is_some_and(guest::is_emulated)
    }
}
