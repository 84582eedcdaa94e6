//! JSON documents of `assay dups`. The groups of a scan are in `assay_dups::format`.

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

/// A path in a JSON document. Paths need not be UTF-8.
#[derive(Serialize, JsonSchema)]
pub struct Name {
    /// The path as text, with `\xNN` for each byte that is not UTF-8.
    path: String,
    /// Exact bytes of the path in hexadecimal; absent if the path is UTF-8.
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
    /// Size of the file in bytes.
    size: u64,
    /// Hash of the content in hexadecimal; absent if the scan did not compute one.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Machine that has the file; present only in merged indexes.
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

/// Document of `assay dups file`: a file and its copies.
#[derive(Serialize, JsonSchema)]
pub struct Copies {
    pub schema: u32,
    #[serde(flatten)]
    pub file: File,
    /// All other files that have the same content.
    pub copies: Vec<File>,
    /// Whether the file was compared with all files of the same size.
    pub compared: bool,
}

/// Document of `assay dups ls` and `assay dups uniques`: files with the number of their copies.
#[derive(Serialize, JsonSchema)]
pub struct List {
    pub schema: u32,
    pub files: Vec<Listed>,
}

/// A file, and the number of its copies.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    #[serde(flatten)]
    pub file: File,
    /// Number of copies; present only in `ls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// Whether the file was compared with all files of the same size.
    pub compared: bool,
}

/// Document of `assay dups dirs`: folders with equal or common content.
#[derive(Serialize, JsonSchema)]
pub struct Folders {
    pub schema: u32,
    pub same: Vec<Same>,
    pub overlapping: Vec<Overlap>,
}

/// A group of folders with equal content.
#[derive(Serialize, JsonSchema)]
pub struct Same {
    pub folders: Vec<Name>,
    /// Number of files in each folder.
    pub files: u64,
    pub bytes: u64,
    /// Number of folders of this group that may be the same folder under another path. Their file systems may show the
    /// same files (overlayfs, FUSE, one disk mounted twice).
    pub doubtful: u64,
}

/// Two folders that have some files in common.
#[derive(Serialize, JsonSchema)]
pub struct Overlap {
    pub a: Name,
    pub b: Name,
    /// Number of files whose content occurs in both folders.
    pub files: u64,
    /// Size of the files with common content in bytes.
    pub bytes: u64,
    pub bytes_a: u64,
    pub bytes_b: u64,
    /// Whether some of these files may be one file under two paths, because their file systems may show the same files.
    pub doubtful: bool,
}

/// Document of `assay dups validate`: result of comparing duplicates byte by byte.
#[derive(Serialize, JsonSchema)]
pub struct Validation {
    pub schema: u32,
    /// Number of groups that were compared byte by byte.
    pub groups: usize,
    pub problems: Vec<Problem>,
}

/// A file that differs from its entry in the index.
#[derive(Serialize, JsonSchema)]
pub struct Problem {
    #[serde(flatten)]
    name: Name,
    reason: Why,
    /// Error of the kernel, or a description of how the file changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Differs {
    /// The content differs from that of the other files in its group.
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

/// Document of `assay dups merge`: the merged indexes.
#[derive(Serialize, JsonSchema)]
pub struct Merged {
    pub schema: u32,
    pub merged: Vec<MergedIndex>,
}

/// An index that was merged.
#[derive(Serialize, JsonSchema)]
pub struct MergedIndex {
    pub machine: String,
    pub folders: u64,
    /// Number of files without a hash. They cannot be compared with files of other machines.
    pub files_without_hash: usize,
}

/// Document of `assay dups export`: what was exported.
#[derive(Serialize, JsonSchema)]
pub struct Exports {
    pub schema: u32,
    pub exported: Vec<MachineExport>,
}

/// What was exported for one machine.
#[derive(Serialize, JsonSchema)]
pub struct MachineExport {
    pub machine: String,
    /// Number of distinct contents, each of which is one row.
    pub contents: u64,
    /// Number of files that have these contents.
    pub files: u64,
    /// Number of files that the export lacks because they have no hash.
    pub files_without_hash: u64,
    /// Number of Parquet files written.
    pub written: u64,
}

/// Document of `assay dups offer`: what was written for comparison with other machines.
#[derive(Serialize, JsonSchema)]
pub struct OfferedFiles {
    pub schema: u32,
    pub machine: String,
    /// Number of distinct pairs of size and sample, each of which is one row.
    pub rows: u64,
    /// Number of file names with these pairs.
    pub files: u64,
    /// Number of files that could not be read, or that changed after the scan.
    pub left_out: u64,
}

/// Document of `assay dups collide`: files that several machines may have.
#[derive(Serialize, JsonSchema)]
pub struct Collisions {
    pub schema: u32,
    pub machines: Vec<Collision>,
}

/// Files of one machine that must be hashed, because another machine may have the same content.
#[derive(Serialize, JsonSchema)]
pub struct Collision {
    pub machine: String,
    /// Number of pairs of size and sample that another machine also has.
    pub rows: u64,
    #[serde(flatten)]
    pub written: Name,
}

/// Document of `assay dups across`: duplicates across machines.
#[derive(Serialize, JsonSchema)]
pub struct Across {
    pub schema: u32,
    #[serde(flatten)]
    pub answer: assay_dups::across::export_queries::CommonFiles,
}

/// Document of `assay dups forget`: folders that were removed from the index.
#[derive(Serialize, JsonSchema)]
pub struct Forgotten {
    pub schema: u32,
    pub forgotten: Vec<ForgottenFolder>,
}

/// A folder that was removed from the index.
#[derive(Serialize, JsonSchema)]
pub struct ForgottenFolder {
    #[serde(flatten)]
    pub name: Name,
    /// Number of subfolders that were removed with the folder.
    pub folders: usize,
}

/// Document of `assay dups act` without `--apply`: the steps that would be executed.
#[derive(Serialize, JsonSchema)]
pub struct Planned {
    schema: u32,
    steps: Vec<PlannedStep>,
    /// Number of bytes that all steps together would free.
    gained_bytes: u64,
    refused: Vec<Refused>,
}

#[derive(Serialize, JsonSchema)]
struct PlannedStep {
    /// Kind of the step: `hardlink`, `reflink`, `delete` or `move`.
    action: &'static str,
    /// Folder to which the redundant copy is moved; present only for `move`.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Name>,
    /// The copy that stays.
    keep: Name,
    /// The redundant copy, which is replaced, deleted or moved.
    remove: Name,
    /// Number of bytes that the step would free.
    gained_bytes: u64,
}

/// A file that is left unchanged, with the reason.
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

/// Document of `assay dups act --apply`: the result of the executed steps.
#[derive(Serialize, JsonSchema)]
pub struct Acted {
    pub schema: u32,
    /// Number of executed steps.
    pub done: u64,
    pub gained_bytes: u64,
    pub refused: Vec<Refused>,
    /// Id of the run, for `assay dups undo`.
    pub run: String,
}

/// Document of `assay dups undo` without a run: the past runs of `assay dups act`.
#[derive(Serialize, JsonSchema)]
pub struct ActRuns {
    pub schema: u32,
    pub runs: Vec<Run>,
}

/// Document of `assay dups undo RUN`: the result of the undo.
#[derive(Serialize, JsonSchema)]
pub struct TakenBack {
    pub schema: u32,
    /// Number of files that the undo restored.
    pub restored: u64,
    pub refused: Vec<Refused>,
    /// Space that the undo needs.
    pub cost: UndoCost,
    /// Whether the undo was executed. `false` with `--dry-run`, or if the undo needs too much space.
    pub carried_out: bool,
}

/// Space that the undo of a run needs, computed before anything is changed.
#[derive(Serialize, JsonSchema)]
pub struct UndoCost {
    /// Number of file names that the undo restores.
    names: u64,
    /// Number of copies that the undo must create. The other names become hard links, or are moved back.
    copies: u64,
    /// Size of the copies to create in bytes.
    bytes: u64,
    /// Number of bytes that the run of `act` freed when it changed these names.
    freed_bytes: u64,
    /// File systems that have too little space for the copies.
    short: Vec<Short>,
    /// Names that were hard links of one file but would become separate copies, with the reasons.
    apart: Vec<Refused>,
}

#[derive(Serialize, JsonSchema)]
struct Short {
    /// A folder on the file system that has too little space.
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

/// Returns the JSON schemas of all documents of `assay dups`.
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
