//! Compares virtual disks of one guest. The guest boots once with all disks, and fio runs in the guest.
//!
//! A configuration sets where its image is stored on the host:
//! - `on = "ext4"`, `"xfs"` or `"btrfs"`: assay creates the file system on a loop device, unless the user names a
//!   directory on such a file system;
//! - `on = "here"`: the directory of the study;
//! - `on = "zfs"` or `"zvol"` (an ext4 on a zvol): the user must name a directory.
//!
//! A configuration also describes the disk as for `assay lab` (`disk = "format=qcow2,cache=none,bus=ide"`).
//! `bare = true` measures a host file with the host's fio instead. A figure is an fio workload. The form sets the
//! `runtime` of a sample and the `size` of a disk.

use crate::fio::{Jobs, Work};
use crate::{BenchContext, Outline, StudyBench, StudyError, guest, settings};
use assay_changes::OwnDirectory;
use assay_changes::side_by_side::Mounted;
use assay_host::held::{Access, Held};
use assay_lab::{Disk, Guest};
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_model::{Bytes, Nanos};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Additional time of each sample: start and end of fio, and the communication with an emulated guest.
const AROUND: Duration = Duration::from_secs(2);
/// Approximate boot time of an emulated guest.
const BOOT: Duration = Duration::from_secs(60);
/// Approximate time to fill one disk in an emulated guest.
const FILL: Duration = Duration::from_secs(4);
/// File systems that assay can create on a loop device.
const MADE: [&str; 3] = ["ext4", "xfs", "btrfs"];
/// Memory of the guest in MiB. The guest needs little memory, because fio bypasses the page cache.
const MEMORY: u32 = 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    on: String,
    #[serde(default)]
    disk: String,
    #[serde(default)]
    bare: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    runtime: Nanos,
    size: Bytes,
}

/// Object that a configuration measures.
enum MeasuredObject {
    /// A disk of the guest; the path is its device in the guest.
    Disk(PathBuf),
    /// A file on the host.
    File(PathBuf),
}

/// Bench that compares virtual disks.
pub(super) struct GuestDisks<'a> {
    place: &'a BenchContext<'a>,
    length: Length,
    // Fields are dropped in this order: the guest uses files on the mounts.
    guest: Option<Guest>,
    things: BTreeMap<String, MeasuredObject>,
    mounts: BTreeMap<String, Mounted<'a>>,
    /// Scratch directories that were created in the user's directories, by the name of the file system.
    own: BTreeMap<String, OwnDirectory>,
    /// Scratch directory of the study. It is kept open so that its path stays valid.
    base: Option<OwnDirectory>,
    work: Option<Work>,
}

fn wrong_configuration(one: &Configuration, message: impl Into<String>) -> StudyError {
    StudyError::Setting {
        of: format!("configuration `{}`", one.name),
        message: message.into(),
    }
}

fn parse_requirements(one: &Configuration) -> Result<Wanted, StudyError> {
    let wanted: Wanted = settings::of_configuration(one)?;
    let known = [&MADE[..], &["here", "zfs", "zvol"]].concat();
    if !known.contains(&wanted.on.as_str()) {
        let message = format!("on = {:?}: there are {}", wanted.on, known.join(", "));
        return Err(wrong_configuration(one, message));
    }
    match wanted.bare && !wanted.disk.is_empty() {
        true => Err(wrong_configuration(
            one,
            "what is bare is no disk of a guest",
        )),
        false => Ok(wanted),
    }
}

/// Builds the disk of a configuration. `dir` contains the file of the disk.
fn make_disk(
    one: &Configuration,
    wanted: &Wanted,
    name: &str,
    length: Length,
    dir: &Path,
) -> Result<Disk, StudyError> {
    let mut text = length.size.0.to_string();
    if !wanted.disk.is_empty() {
        text = format!("{text},{}", wanted.disk);
    }
    let disk =
        Disk::parse(&text, name).map_err(|error| wrong_configuration(one, error.to_string()))?;
    Ok(Disk {
        name: name.to_owned(),
        dir: Some(dir.to_owned()),
        ..disk
    })
}

impl<'a> GuestDisks<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            length: Length::default(),
            guest: None,
            things: BTreeMap::new(),
            mounts: BTreeMap::new(),
            own: BTreeMap::new(),
            base: None,
            work: None,
        }
    }

    fn zfs_reason(&self) -> &'static str {
        match self.place.env.host.exists(Path::new("/dev/zfs")) {
            Ok(true) => "assay makes no pool on a host; --dir zfs=DIRECTORY names a place on yours",
            _ => "this host has no ZFS: a disk cannot lie on it",
        }
    }

    /// Returns the directory on a file system. At the first call, creates the file system with space for `many`
    /// configurations.
    fn directory(&mut self, on: &str, many: usize, base: &Path) -> Result<PathBuf, StudyError> {
        if on == "here" {
            return Ok(base.to_owned());
        }
        if let Some(named) = self.place.dirs.get(on) {
            return self.own(on, named);
        }
        if let Some(mounted) = self.mounts.get(on) {
            return Ok(mounted.dir());
        }
        (self.place.say)(&format!("making {on}"));
        let place = assay_changes::side_by_side::ArmSite {
            dir: base.to_owned(),
            name: on.to_owned(),
            size: Bytes(self.length.size.0.saturating_mul(many as u64)),
        };
        let (env, session) = (&self.place.env, self.place.session);
        let mounted =
            assay_changes::side_by_side::mount(env.host, session, on, &place, env.cancel)?;
        let dir = mounted.dir();
        self.mounts.insert(on.to_owned(), mounted);
        Ok(dir)
    }

    /// Creates a scratch directory in a directory from the user, and checks the type of the file system.
    fn own(&mut self, on: &str, named: &Path) -> Result<PathBuf, StudyError> {
        if let Some(made) = self.own.get(on) {
            return Ok(made.through().to_owned());
        }
        let made = self.place.scratch_dir_in(named, on)?;
        let dir = made.through().to_owned();
        self.own.insert(on.to_owned(), made);
        Ok(dir)
    }

    /// Returns whether this storage needs a directory from the user (`zfs`, `zvol`), but the user named none.
    fn lacks(&self, on: &str) -> bool {
        on.starts_with('z') && !self.place.dirs.contains_key(on)
    }

    /// Fills a disk with data, so that reads do not hit holes.
    fn fill(&self, guest: &Guest, device: &Path) -> Result<(), StudyError> {
        let job = assay_fio::job::layout_job(device, self.length.size, self.place.seed);
        let job = job.map_err(|error| StudyError::measure("layout", error))?;
        guest::run_fio(guest, &job, Duration::from_secs(600)).map(drop)
    }
}

impl StudyBench for GuestDisks<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let length: Length = settings::of_form(form)?;
        let (mut made, mut disks) = (BTreeSet::new(), 0);
        let mut leaves_out = Vec::new();
        for one in study.tried(form) {
            let wanted = parse_requirements(one)?;
            make_disk(one, &wanted, "d", length, Path::new("/"))?;
            if self.lacks(&wanted.on) {
                leaves_out.push(one.name.clone());
                continue;
            }
            disks += u32::from(!wanted.bare);
            let own = self.place.dirs.contains_key(&wanted.on);
            if MADE.contains(&wanted.on.as_str()) && !own {
                made.insert(wanted.on);
            }
        }
        let steps = crate::execute::group_figures(study);
        let mut longest = Duration::ZERO;
        for figures in &steps {
            let mut asked = figures.clone();
            asked.retain(|one| {
                form.figures
                    .as_ref()
                    .is_none_or(|names| names.contains(&one.name))
            });
            // Parse all figures, so that mistakes are found early.
            Jobs::of(figures, length.runtime, 1)?;
            longest = longest.max(Jobs::of(&asked, length.runtime, 1)?.time());
        }
        let made: Vec<String> = made.into_iter().collect();
        let mut makes = Vec::new();
        if !made.is_empty() {
            let made = made.join(", ");
            makes.push(format!(
                "file systems on loop devices in the directory: {made}"
            ));
        }
        for (on, dir) in &self.place.dirs {
            let dir = self.place.env.host.realpath(dir)?;
            makes.push(format!("files for {on} in {}", dir.display()));
        }
        makes.push(format!(
            "a throwaway guest with {disks} disks of {}, their files there",
            length.size
        ));
        Ok(Outline {
            makes,
            leaves_out,
            guest: disks > 0,
            setup: BOOT + FILL * disks,
            step: longest + AROUND,
        })
    }

    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        self.length = settings::of_form(form)?;
        let made = self.place.scratch_dir("study")?;
        let base = made.through().to_owned();
        self.base = Some(made);
        let work = Work::new(base.join("fio"))?;
        self.work = Some(work);
        let tried = study.tried(form);
        let (mut not_tried, mut disks) = (Vec::new(), Vec::new());
        for (number, one) in tried.iter().enumerate() {
            let wanted = parse_requirements(one)?;
            if self.lacks(&wanted.on) {
                not_tried.push(NotTried {
                    configuration: one.name.clone(),
                    figure: None,
                    why: self.zfs_reason().to_owned(),
                });
                continue;
            }
            let dir = self.directory(&wanted.on, tried.len(), &base)?;
            if wanted.bare {
                let path = dir.join(format!("bare{number}"));
                lay_out(&path, self.length.size, self.place)?;
                self.things
                    .insert(one.name.clone(), MeasuredObject::File(path));
                continue;
            }
            let disk = make_disk(one, &wanted, &format!("disk{number}"), self.length, &dir)?;
            disks.push((one.name.clone(), disk));
        }
        if disks.is_empty() {
            return Ok(not_tried);
        }
        let all = disks.iter().map(|(_, disk)| disk.clone()).collect();
        let guest = self.place.boot("disks", MEMORY, 2, all)?;
        let names: Vec<&str> = disks.iter().map(|(_, disk)| disk.name.as_str()).collect();
        for ((name, _), device) in disks.iter().zip(guest.devices(&names)?) {
            (self.place.say)(&format!("filling the disk {name}"));
            self.fill(&guest, &device)?;
            self.things
                .insert(name.clone(), MeasuredObject::Disk(device));
        }
        self.guest = Some(guest);
        Ok(not_tried)
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let jobs = Jobs::of(figures, self.length.runtime, round)?;
        let seed = self.place.seed ^ (u64::from(round) << 32);
        let thing = self.things.get(&configuration.name);
        let document = match (thing, &self.guest, &self.work) {
            (Some(MeasuredObject::File(file)), _, Some(work)) => {
                work.jobs(self.place, &jobs, file, self.length.size, seed)?
            }
            (Some(MeasuredObject::Disk(device)), Some(guest), _) => {
                let job = jobs.render(device, self.length.size, seed)?;
                guest::run_fio(guest, &job, jobs.time() + Duration::from_secs(180))?
            }
            _ => return Err(StudyError::measure(&configuration.name, "it was not made")),
        };
        Ok(jobs.observations(configuration, round, &document))
    }

    fn machine(&self) -> Vec<(String, String)> {
        let mut lines = self
            .guest
            .as_ref()
            .map_or(Vec::new(), guest::describe_guest);
        lines.push(("disks".to_owned(), format!("{} each", self.length.size)));
        lines
    }

    fn emulated(&self) -> bool {
        self.guest.as_ref().is_some_and(guest::is_emulated)
    }
}

/// Creates a fully written file on the host.
fn lay_out(path: &Path, size: Bytes, place: &BenchContext<'_>) -> Result<(), StudyError> {
    fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(StudyError::io(path))?;
    let held = Held::open(path, Access::ReadWrite)?;
    assay_loads::layout::fill(&held, size, place.seed, place.env.cancel, &mut |_, _| {})
        .map_err(|error| StudyError::measure(path.to_string_lossy(), error))
}
