//! Parses the JSON reports of `lvs`, `vgs` and `pvs` of LVM (lvmreport(7)).

use serde_json::Value;
use std::collections::BTreeMap;

/// A row of a report: the values by field name, as LVM spells the names.
pub type Row = BTreeMap<String, String>;

/// Command that lists all logical volumes, including hidden ones, with a row for each segment. Sizes are in bytes.
/// Fields that identify the machine (uuid, host) are not requested.
pub const LVS: [&str; 10] = [
    "lvs",
    "--all",
    "--segments",
    "--reportformat",
    "json",
    "--units",
    "b",
    "--nosuffix",
    "--options",
    "vg_name,lv_name,lv_layout,lv_role,segtype,stripes,stripe_size,chunk_size,seg_size,pool_lv,\
     origin,data_lv,metadata_lv,data_percent,metadata_percent,cache_mode,zero,discards,lv_size,\
     lv_dm_path,lv_kernel_major,lv_kernel_minor,devices,raid_sync_action",
];

/// Command that lists the volume groups.
pub const VGS: [&str; 8] = [
    "vgs",
    "--reportformat",
    "json",
    "--units",
    "b",
    "--nosuffix",
    "--options",
    "vg_name,vg_extent_size,vg_size,vg_free,pv_count",
];

/// Command that lists the physical volumes and the offset of their data in bytes.
pub const PVS: [&str; 8] = [
    "pvs",
    "--reportformat",
    "json",
    "--units",
    "b",
    "--nosuffix",
    "--options",
    "pv_name,vg_name,pe_start,pv_size,pv_missing",
];

/// Command that lists damaged logical volumes (lvs(8), lv_health_status). Values are `partial`, `refresh needed` and
/// `mismatches exist`, and for thin pools `failed`, `out_of_data` and `metadata_read_only`. [`LVS`] does not request
/// these fields, because captures of earlier versions of assay contain that report without them.
pub const HEALTH: [&str; 9] = [
    "lvs",
    "--all",
    "--reportformat",
    "json",
    "--units",
    "b",
    "--nosuffix",
    "--options",
    "vg_name,lv_name,lv_layout,lv_role,lv_health_status,raid_sync_action,sync_percent",
];

/// Returns the rows of a report of lvs, vgs or pvs. Empty fields are left out.
///
/// # Errors
/// The text is not a report.
pub fn rows(json: &str) -> Result<Vec<Row>, String> {
    let fail = |what: &str| format!("not a report of LVM: {what}");
    let value: Value = serde_json::from_str(json).map_err(|error| fail(&error.to_string()))?;
    let reports = value["report"].as_array();
    let reports = reports.ok_or_else(|| fail("no member `report`"))?;
    let mut found = Vec::new();
    for report in reports.iter().filter_map(Value::as_object) {
        for row in report.values().filter_map(Value::as_array).flatten() {
            let fields = row.as_object().into_iter().flatten();
            let text = fields.filter_map(|(name, value)| {
                let value = match value {
                    Value::String(text) => text.clone(),
                    Value::Null => return None,
                    other => other.to_string(),
                };
                (!value.is_empty()).then(|| (name.clone(), value))
            });
            found.push(text.collect());
        }
    }
    Ok(found)
}

/// Splits a device-mapper name `VG-LV`, in which hyphens of the names themselves are doubled.
#[must_use]
pub fn names(dm_name: &str) -> Option<(String, String)> {
    let bytes = dm_name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'-', Some(b'-')) => at += 2,
            (b'-', Some(_)) => {
                let single = |part: &str| part.replace("--", "-");
                return Some((single(&dm_name[..at]), single(&dm_name[at + 1..])));
            }
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn device_mapper_names() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(names("vg-root"), pair("vg", "root"));
        assert_eq!(names("my--vg-a--b"), pair("my-vg", "a-b"));
        assert_eq!(names("luks"), None);
        assert_eq!(names("x-"), None);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        assert!(rows("").is_err());
        assert!(rows("{}").is_err());
        assert!(rows(r#"{"report":[1,{"lv":7}]}"#).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,60}") {
            let _ = names(&text);
            let _ = rows(&text);
        }
    }
}
