//! Runs a study: prepares its plan, shows progress, and stores its results.

use super::{Args, past_studies, progress::Progress};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use crate::sweep;
use crate::verbs::lab::Lab;
use anyhow::{Context as _, bail};
use assay_host::held::Directory;
use assay_host::{Host as _, LiveHost};
use assay_model::Nanos;
use assay_model::study::{Form, Study, StudyRun};
use assay_store::Store;
use assay_studies::{
    BenchContext, Carried, MeasureEvent, StudyError, StudyStep, Task, UserTarget, execute,
    find_bench, plan_steps,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Prefix of the labels of studies' change sessions.
const LABEL: &str = "study ";

/// Starts a new study.
pub(super) fn run(args: &Args, study: Study, global: &Global) -> anyhow::Result<Status> {
    let run = StudyRun {
        uid: context::random_uid()?,
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        started: context::now(),
        ended: None,
        study,
        form: if args.full { "full" } else { "quick" }.to_owned(),
        machine: BTreeMap::new(),
        seed: args.seed.map_or_else(context::random_seed, Ok)?,
        emulated: false,
        observations: Vec::new(),
        not_tried: Vec::new(),
        complete: false,
    };
    carry_out(args, run, &args.dir, global)
}

/// Continues a study. Creates its file systems and guests again, and skips measurements that are already finished.
pub(super) fn resume(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let store = context::open_store(global)?;
    let id = store.resolve_study(asked)?;
    let run = store.study(id)?;
    let on = store.machine_of_study(id)?;
    context::begun_here(&format!("study {id}"), on.as_ref())?;
    if run.complete {
        bail!("nothing to resume: study {id} is complete; `assay study show {id}` shows it");
    }
    // With the option naming the run, the first positional word is the directory.
    let dir = args.study.as_deref().map_or(args.dir.as_path(), Path::new);
    carry_out(args, run, dir, global)
}

fn form(run: &StudyRun) -> &Form {
    match run.form.as_str() {
        "full" => &run.study.forms.full,
        _ => &run.study.forms.quick,
    }
}

fn carry_out(
    args: &Args,
    mut run: StudyRun,
    dir: &Path,
    global: &Global,
) -> anyhow::Result<Status> {
    let study = run.study.clone();
    let form = form(&run).clone();
    let known = find_bench(&study.bench)?;
    own(args, &study, known.own)?;
    let lab = Lab::open()?;
    let dir = LiveHost
        .realpath(&std::path::absolute(dir)?)
        .with_context(|| format!("cannot run a study in {}", dir.display()))?;
    if !dir.is_dir() {
        bail!(
            "{} is not a directory: name a directory on the storage to measure",
            dir.display()
        );
    }
    // Held until the end, because the owner of a parent directory may replace it.
    let held = Directory::open(&dir)?;
    let named = directories(&args.dirs)?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &lab.cancel);
    if !args.dry_run {
        sweep::journals(env.journal, |label| label.starts_with(LABEL))?;
        let changed = args.despite.check(env.journal)?;
        if !changed.is_empty() {
            let changed = changed.join(", ");
            run.machine.insert(
                "left changed by an assay that was killed".to_owned(),
                changed,
            );
        }
    }
    let session = env
        .journal
        .begin(&format!("{LABEL}{}", study.name), &dir.to_string_lossy())?;
    let progress: RefCell<Option<Progress>> = RefCell::new(None);
    let say = |what: &str| {
        if let Some(progress) = progress.borrow_mut().as_mut() {
            progress.say(what);
        }
    };
    let mut place = BenchContext {
        dir: held.through(),
        on: args.on.clone(),
        dirs: named
            .iter()
            .map(|(word, dir)| (word.clone(), dir.through()))
            .collect(),
        env,
        session: &session,
        image: None,
        guests: &lab.state,
        accel: args.accel.map(Into::into),
        seed: run.seed,
        say: &say,
    };
    let outline = known.make(&place).outline(&study, &form)?;
    let all = plan_steps(&study, &form, run.seed);
    let left_out = |step: &&StudyStep<'_>| outline.leaves_out.contains(&step.configuration.name);
    let count = all.iter().filter(|step| !left_out(step)).count();
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let time = outline.setup + outline.step.saturating_mul(count);
    let named = dir.to_string_lossy();
    let before = assay_report::study::StudyPreview {
        name: &run.form,
        form: &form,
        place: args.on.as_deref().unwrap_or(&named),
        makes: &outline.makes,
        leaves_out: &outline.leaves_out,
        steps: count as usize,
        time: Nanos::from(time),
        seed: run.seed,
    };
    if args.dry_run {
        print(&assay_report::study::render_study_plan(
            &study,
            &before,
            context::style(global),
        ))?;
        return Ok(Status::Ok);
    }
    if !args.quiet {
        let style = context::error_style(global);
        eprint!(
            "{}",
            assay_report::study::render_study_plan(&study, &before, style)
        );
    }
    if outline.guest {
        place.image = Some(lab.image(args.zfs, args.yes)?);
    }
    let mut store = context::open_store(global)?;
    let mut id = store.put_study(&run)?;
    *progress.borrow_mut() = Some(Progress::new(args.quiet, time, outline.step));
    let done = run.observations.clone();
    let mut bench = known.make(&place);
    let ended = {
        let task = Task {
            study: &study,
            form: &form,
            seed: run.seed,
            keep_going: args.keep_going,
            done: &done,
        };
        let mut stored = Ok(id);
        let ended = execute(&mut *bench, &task, &lab.cancel, &mut |event| {
            if let Some(progress) = progress.borrow_mut().as_mut() {
                progress.tell(&event);
            }
            note(&mut run, &event);
            if matches!(event, MeasureEvent::Observed(_) | MeasureEvent::Failed(_))
                && stored.is_ok()
            {
                stored = store.put_study(&run);
                // Measuring makes no sense if the result cannot be stored.
                if stored.is_err() {
                    lab.cancel.cancel();
                }
            }
        });
        stored?;
        ended
    };
    drop(bench);
    if let Some(progress) = progress.borrow_mut().take() {
        progress.end();
    }
    for left in session.close(&LiveHost)? {
        if let assay_changes::RecoveryOutcome::Failed(error) = left.outcome {
            eprintln!(
                "could not be removed: {}: {error}",
                left.what.escape_debug()
            );
        }
    }
    run.ended = Some(context::now());
    run.complete = matches!(ended, Ok(Carried::Complete));
    id = finish(&mut store, &run).unwrap_or(id);
    tell(args, &run, id, ended, global)
}

/// Fails if the study cannot use the dataset of `--on` or the directories of `--dir`.
fn own(args: &Args, study: &Study, own: UserTarget) -> anyhow::Result<()> {
    let name = &study.name;
    if args.on.is_some() && own != UserTarget::Dataset {
        bail!("--on: the study {name} creates no ZFS file systems");
    }
    if !args.dirs.is_empty() && own != UserTarget::Directories {
        bail!("--dir: the study {name} takes one directory: write it after the name");
    }
    let asked = |word: &String| {
        let mut all = study.configurations.iter();
        all.any(|one| one.settings.get("on").and_then(|on| on.as_str()) == Some(word))
    };
    match args.dirs.iter().find(|(word, _)| !asked(word)) {
        Some((word, _)) => {
            bail!("--dir {word}=: no configuration of {name} uses the file system {word:?}")
        }
        None => Ok(()),
    }
}

/// Opens the directories of `--dir`.
fn directories(named: &[(String, PathBuf)]) -> anyhow::Result<BTreeMap<String, Directory>> {
    let open = |(word, dir): &(String, PathBuf)| {
        let held = Directory::open(dir);
        let held = held.with_context(|| format!("--dir {word}=: name an existing directory"))?;
        Ok((word.clone(), held))
    };
    named.iter().map(open).collect()
}

fn finish(store: &mut Store, run: &StudyRun) -> Option<assay_store::StudyId> {
    store
        .put_study(run)
        .map_err(|error| eprintln!("cannot store the end of the study: {error}"))
        .ok()
}

/// Adds an event of the measurement to the stored study run.
fn note(run: &mut StudyRun, event: &MeasureEvent<'_>) {
    match event {
        MeasureEvent::Ready {
            machine,
            emulated,
            not_tried,
        } => {
            run.machine.extend(machine.iter().cloned());
            run.emulated |= *emulated;
            for not in *not_tried {
                if !run.not_tried.contains(not) {
                    run.not_tried.push(not.clone());
                }
            }
        }
        MeasureEvent::Observed(observed) => {
            for one in *observed {
                run.observations.retain(|old| {
                    (old.round, &old.configuration, &old.figure)
                        != (one.round, &one.configuration, &one.figure)
                });
                run.observations.push(one.clone());
            }
        }
        MeasureEvent::Failed(lost) => run.not_tried.extend_from_slice(lost),
        _ => {}
    }
}

fn tell(
    args: &Args,
    run: &StudyRun,
    id: assay_store::StudyId,
    ended: Result<Carried, StudyError>,
    global: &Global,
) -> anyhow::Result<Status> {
    let kept = format!(
        "what was measured is kept: `assay study show {id}`, and `assay study --resume {id} DIR` goes on"
    );
    match ended {
        Ok(Carried::Complete) => {
            past_studies::shown(run, Some(id.0), &args.shape, global)?;
            Ok(Status::Ok)
        }
        Ok(Carried::Interrupted) => {
            eprintln!("interrupted; everything is removed, and {kept}");
            Ok(Status::Interrupted)
        }
        Err(error) => match run.observations.is_empty() {
            true => Err(error.into()),
            false => Err(anyhow::Error::from(error).context(format!("the study stopped: {kept}"))),
        },
    }
}
