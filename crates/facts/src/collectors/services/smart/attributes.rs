//! Lists attributes of ATA disks by number and name, from drivedb.h of smartmontools.

use super::{LEAST, number};

/// Error counters of ATA disks, as (number in column ID#, names in smartmontools' drivedb.h, name of the fact). Both
/// number and name must match, because the same number has another meaning and name on some disks. Names that begin
/// with `Bogus_` have no meaning.
pub(crate) const ATTRIBUTES: [(u32, &str, &str); 4] = [
    (
        5,
        "Reallocated_Sector_Ct Reallocated_Block_Count Reallocate_NAND_Blk_Cnt Realloc_Flash_Blocks_Ct \
         Retired_Block_Count New_Bad_Blk_Count New_Bad_Block_Count Runtime_Bad_Block Later_Bad_Block",
        "reallocated_sectors",
    ),
    (
        187,
        "Reported_Uncorrect Reported_Uncorr_Errors Reported_UE_Counts Uncorrectable_Error_Cnt Total_Unc_NAND_Reads",
        "uncorrectable_errors",
    ),
    (
        197,
        "Current_Pending_Sector Total_Pending_Sectors Pending_Sector_Count",
        "pending_sectors",
    ),
    (
        198,
        "Offline_Uncorrectable Total_Offl_Uncorrectabl Off-line_Scan_UNC_Sector_Ct Offline_Scan_UNC_SectCt \
         Offline_UErr_Media_Scan Uncor_Read_Error_Ct Uncorrectable_Sector_Ct",
        "offline_uncorrectable_sectors",
    ),
];

/// Attributes whose column VALUE decreases from 100 to 0 while flash wears out, as (number, names of drivedb.h). With
/// other numbers, the same names count upwards or count something else.
pub(crate) const WEAR: [(u32, &str); 7] = [
    (173, "Wear_Leveling_Count"),
    (177, "Wear_Leveling_Count"),
    (
        202,
        "Percent_Lifetime_Remain Percent_Lifetime_Used Perc_Rated_Life_Used",
    ),
    (
        231,
        "SSD_Life_Left SSD_Life_Left_Perc Percent_Lifetime_Remain Perc_Rated_Life_Remain Life_Remaining_Percent \
         Lifetime_Left",
    ),
    (233, "Media_Wearout_Indicator Remaining_Lifetime_Perc"),
    (245, "Percent_Life_Remaining"),
    (
        248,
        "Remaining_Life Percent_Lifetime_Remain SSD_Remaining_Life_Perc Perc_Rated_Life_Remain PCT_Life_Remaining",
    ),
];

/// Returns whether a word may be an attribute name of drivedb.h.
pub(super) fn is_attribute(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_%/().-".contains(c);
    !name.is_empty() && name.len() <= 32 && name.chars().all(plain)
}

/// Returns the redacted lines of an attribute: its error count, the remaining life in percent, and whether the
/// attribute is or was at its threshold. `None` if no line is kept.
pub(super) fn read_attribute(
    id: u32,
    name: &str,
    (value, raw): (&str, &str),
    (kind, when): (&str, &str),
) -> Option<String> {
    let has = |names: &str| names.split_ascii_whitespace().any(|known| known == name);
    let mut kept: Vec<String> = Vec::new();
    let counted = ATTRIBUTES
        .iter()
        .find(|(known, names, _)| *known == id && has(names));
    // A value of more than 32 bits contains several counters.
    if let (Some((_, _, counter)), Some(raw)) = (counted, number(raw))
        && raw.parse::<u32>().is_ok()
    {
        kept.push(format!("counter {counter} {raw}"));
    }
    let wears = WEAR.iter().any(|(known, names)| *known == id && has(names));
    let left = value.parse::<u32>().ok().filter(|left| *left <= 100);
    // 000 without a crossed threshold is a value that was never set.
    if let (true, Some(left)) = (
        wears,
        left.filter(|left| *left > 0 || when == "FAILING_NOW"),
    ) {
        kept.push(format!("counter {LEAST} {left}"));
    }
    let how = match (when, kind) {
        ("FAILING_NOW", "Pre-fail") => Some("prefail"),
        ("FAILING_NOW", _) => Some("old"),
        ("In_the_past", _) => Some("past"),
        _ => None,
    };
    // A temperature is temporary.
    if let Some(how) = how.filter(|_| is_attribute(name) && !name.contains("Temp")) {
        kept.push(format!("failed {name} {how}"));
    }
    (!kept.is_empty()).then(|| kept.join("\n"))
}
