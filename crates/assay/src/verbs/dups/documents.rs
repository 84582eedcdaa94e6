//! What the verbs of `assay dups` print with `--json`, apart from the groups of a scan (`assay_dups::format`).

use super::undo::Run;
#[cfg(feature = "schemas")]
use crate::verbs::dev::form::{Form, form};
use assay_dups::act::undo::{Shortage, UndoPlan};
use assay_dups::act::{ActStep, Action, Refusal, plan::ActPlan};
use assay_dups::name::{encode_hex, encode_lossless, for_json};
use assay_dups::{FileId, Files, Reason, Skip};
use assay_model::SCHEMA_VERSION;
use schemars::JsonSchema;
use serde::Serialize;

/// A path.
#[derive(Serialize, JsonSchema)]
pub struct Name {
    /// Bytes that are no UTF-8 stand as `\xNN` in it.
    path: String,
    /// The exact bytes of a path that is not UTF-8, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

impl Name {
    pub fn of(path: &[u8]) -> Self {
        Self {
            path: for_json(path).into_owned(),
            bytes: encode_lossless(path),
        }
    }
}

/// A file in the index.
#[derive(Serialize, JsonSchema)]
pub struct File {
    #[serde(flatten)]
    name: Name,
    /// Bytes.
    size: u64,
    /// Of the content, in hexadecimal; missing when it was not needed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Where it is, in merged indexes.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
}

impl File {
    pub fn of(files: &Files, id: FileId) -> Self {
        let hash = files.hash(id);
        let machine = files.machine(id);
        Self {
            name: Name::of(&files.path(id)),
            size: files.file(id).id.size,
            hash: hash.map(|hash| encode_hex(&hash[..files.kind.length()])),
            machine: (!machine.is_empty()).then(|| machine.to_owned()),
        }
    }
}

/// `assay dups file`: a file and its copies.
#[derive(Serialize, JsonSchema)]
pub struct Copies {
    pub schema: u32,
    #[serde(flatten)]
    pub file: File,
    /// Every other name of the same content.
    pub copies: Vec<File>,
    /// Whether it was compared with all files of its size.
    pub compared: bool,
}

/// `assay dups ls`, `assay dups uniques`.
#[derive(Serialize, JsonSchema)]
pub struct List {
    pub schema: u32,
    pub files: Vec<Listed>,
}

/// A file, and what is known of its copies.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    #[serde(flatten)]
    pub file: File,
    /// How many copies it has; `ls` alone says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// Whether it was compared with all files of its size.
    pub compared: bool,
}

/// `assay dups dirs`.
#[derive(Serialize, JsonSchema)]
pub struct Folders {
    pub schema: u32,
    pub same: Vec<Same>,
    pub overlapping: Vec<Overlap>,
}

/// Folders of one content.
#[derive(Serialize, JsonSchema)]
pub struct Same {
    pub folders: Vec<Name>,
    /// In each of them.
    pub files: u64,
    pub bytes: u64,
    /// How many of the folders may be one with another of them.
    pub doubtful: u64,
}

/// Two folders with some content in common.
#[derive(Serialize, JsonSchema)]
pub struct Overlap {
    pub a: Name,
    pub b: Name,
    /// Files in common.
    pub files: u64,
    /// Bytes in common.
    pub bytes: u64,
    pub bytes_a: u64,
    pub bytes_b: u64,
    /// Some of their files may be one with another.
    pub doubtful: bool,
}

/// `assay dups validate`.
#[derive(Serialize, JsonSchema)]
pub struct Validation {
    pub schema: u32,
    /// Groups that were compared byte by byte.
    pub groups: usize,
    pub problems: Vec<Problem>,
}

/// A file that is not what the index says.
#[derive(Serialize, JsonSchema)]
pub struct Problem {
    #[serde(flatten)]
    name: Name,
    reason: Why,
    /// What the kernel said, or what changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Differs {
    /// Its content is another one than that of its group.
    Differs,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Why {
    Differs(Differs),
    NotRead(Reason),
}

impl Problem {
    pub fn differs(path: &[u8]) -> Self {
        Self {
            name: Name::of(path),
            reason: Why::Differs(Differs::Differs),
            detail: None,
        }
    }

    pub fn skipped(skip: &Skip) -> Self {
        Self {
            name: Name::of(&skip.path),
            reason: Why::NotRead(skip.reason),
            detail: Some(skip.detail.clone()),
        }
    }
}

/// `assay dups merge`.
#[derive(Serialize, JsonSchema)]
pub struct Merged {
    pub schema: u32,
    pub merged: Vec<MergedIndex>,
}

/// An index that was taken in.
#[derive(Serialize, JsonSchema)]
pub struct MergedIndex {
    pub machine: String,
    pub folders: u64,
    /// Files that cannot be compared with those of other machines.
    pub files_without_hash: usize,
}

/// `assay dups export`.
#[derive(Serialize, JsonSchema)]
pub struct Exports {
    pub schema: u32,
    pub exported: Vec<MachineExport>,
}

/// What was written of a machine.
#[derive(Serialize, JsonSchema)]
pub struct MachineExport {
    pub machine: String,
    /// Different contents, a row each.
    pub contents: u64,
    /// Files of these.
    pub files: u64,
    /// Files that are not in it.
    pub files_without_hash: u64,
    /// Parquet files.
    pub written: u64,
}

/// `assay dups offer`.
#[derive(Serialize, JsonSchema)]
pub struct OfferedFiles {
    pub schema: u32,
    pub machine: String,
    /// Different sizes and samples, a row each.
    pub rows: u64,
    /// Names of files.
    pub files: u64,
    /// Files that could not be read or have changed since they were scanned.
    pub left_out: u64,
}

/// `assay dups collide`.
#[derive(Serialize, JsonSchema)]
pub struct Collisions {
    pub schema: u32,
    pub machines: Vec<Collision>,
}

/// What a machine is to hash.
#[derive(Serialize, JsonSchema)]
pub struct Collision {
    pub machine: String,
    /// Sizes and samples that another machine has too.
    pub rows: u64,
    #[serde(flatten)]
    pub written: Name,
}

/// `assay dups across`.
#[derive(Serialize, JsonSchema)]
pub struct Across {
    pub schema: u32,
    #[serde(flatten)]
    pub answer: assay_dups::across::export_queries::CommonFiles,
}

/// `assay dups forget`.
#[derive(Serialize, JsonSchema)]
pub struct Forgotten {
    pub schema: u32,
    pub forgotten: Vec<ForgottenFolder>,
}

/// A folder that the index knows nothing of any more.
#[derive(Serialize, JsonSchema)]
pub struct ForgottenFolder {
    #[serde(flatten)]
    pub name: Name,
    /// Folders that went with it.
    pub folders: usize,
}

/// `assay dups act` without `--apply`: what would be done.
#[derive(Serialize, JsonSchema)]
pub struct Planned {
    schema: u32,
    steps: Vec<PlannedStep>,
    /// Bytes that all steps free.
    gained_bytes: u64,
    refused: Vec<Refused>,
}

#[derive(Serialize, JsonSchema)]
struct PlannedStep {
    /// `hardlink`, `reflink`, `delete` or `move`.
    action: &'static str,
    /// The folder that it is moved below.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Name>,
    /// The copy that stays.
    keep: Name,
    /// The copy that is acted on.
    remove: Name,
    /// Bytes that this frees.
    gained_bytes: u64,
}

/// What stays as it is, and why.
#[derive(Serialize, JsonSchema)]
pub struct Refused {
    #[serde(flatten)]
    name: Name,
    why: String,
}

impl Refused {
    pub fn all(refused: &[Refusal]) -> Vec<Self> {
        let one = |refusal: &Refusal| Self {
            name: Name::of(&refusal.path),
            why: refusal.why.clone(),
        };
        refused.iter().map(one).collect()
    }
}

impl Planned {
    pub fn of(plan: &ActPlan) -> Self {
        let step = |step: &ActStep| PlannedStep {
            action: step.action.word(),
            to: match &step.action {
                Action::Move(target) => Some(Name::of(target)),
                _ => None,
            },
            keep: Name::of(&step.keep.path),
            remove: Name::of(&step.remove.path),
            gained_bytes: step.gain,
        };
        Self {
            schema: SCHEMA_VERSION,
            steps: plan.steps.iter().map(step).collect(),
            gained_bytes: plan.gain(),
            refused: Refused::all(&plan.refused),
        }
    }
}

/// `assay dups act --apply`: what was done.
#[derive(Serialize, JsonSchema)]
pub struct Acted {
    pub schema: u32,
    /// Steps.
    pub done: u64,
    pub gained_bytes: u64,
    pub refused: Vec<Refused>,
    /// What `assay dups undo` calls it.
    pub run: String,
}

/// `assay dups undo`: the runs of `act`.
#[derive(Serialize, JsonSchema)]
pub struct ActRuns {
    pub schema: u32,
    pub runs: Vec<Run>,
}

/// `assay dups undo RUN`.
#[derive(Serialize, JsonSchema)]
pub struct TakenBack {
    pub schema: u32,
    /// Files.
    pub restored: u64,
    pub refused: Vec<Refused>,
    /// What undo takes.
    pub cost: UndoCost,
    /// Whether undo was carried out; `false` with `--dry-run`, and where it costs too much.
    pub carried_out: bool,
}

/// What undo of a run takes, worked out before anything is changed.
#[derive(Serialize, JsonSchema)]
pub struct UndoCost {
    /// Names that get their files back.
    names: u64,
    /// Copies that are made for them; the other names are links, or moved back.
    copies: u64,
    /// Bytes that the copies take.
    bytes: u64,
    /// Bytes that the run has freed with these names.
    freed_bytes: u64,
    /// File systems with less room than the copies need.
    short: Vec<Short>,
    /// Names that would get a copy although they were names of a file that had others, and why.
    apart: Vec<Refused>,
}

#[derive(Serialize, JsonSchema)]
struct Short {
    /// A folder on the file system.
    folder: Name,
    needed_bytes: u64,
    free_bytes: u64,
}

impl UndoCost {
    pub fn of(plan: &UndoPlan) -> Self {
        let short = |one: &Shortage| Short {
            folder: Name::of(&one.folder),
            needed_bytes: one.needed,
            free_bytes: one.free,
        };
        Self {
            names: plan.names,
            copies: plan.copies,
            bytes: plan.bytes,
            freed_bytes: plan.freed,
            short: plan.short.iter().map(short).collect(),
            apart: Refused::all(&plan.apart),
        }
    }
}

/// The forms of all of them.
#[cfg(feature = "schemas")]
pub(in crate::verbs) fn all() -> Vec<Form> {
    vec![
        ("dups-file", "assay dups file --json", form::<Copies>()),
        (
            "dups-list",
            "assay dups ls --json, assay dups uniques --json",
            form::<List>(),
        ),
        ("dups-dirs", "assay dups dirs --json", form::<Folders>()),
        (
            "dups-validate",
            "assay dups validate --json",
            form::<Validation>(),
        ),
        ("dups-merge", "assay dups merge --json", form::<Merged>()),
        ("dups-export", "assay dups export --json", form::<Exports>()),
        (
            "dups-offer",
            "assay dups offer --json",
            form::<OfferedFiles>(),
        ),
        (
            "dups-collide",
            "assay dups collide --json",
            form::<Collisions>(),
        ),
        ("dups-across", "assay dups across --json", form::<Across>()),
        (
            "dups-forget",
            "assay dups forget --json",
            form::<Forgotten>(),
        ),
        ("dups-act-plan", "assay dups act --json", form::<Planned>()),
        ("dups-act", "assay dups act --apply --json", form::<Acted>()),
        ("dups-runs", "assay dups undo --json", form::<ActRuns>()),
        (
            "dups-undo",
            "assay dups undo RUN --json",
            form::<TakenBack>(),
        ),
    ]
}
