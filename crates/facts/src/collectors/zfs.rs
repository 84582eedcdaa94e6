//! Collects the module version and parameters of ZFS and the ARC. For a target, also collects the properties of its
//! dataset and pool.

use super::services::certificates;
use crate::gather::{Gather, lossy, scalar};
use crate::zpool::{self, Ashifts, Vdev};
use crate::zpool_health::{self, Leaf};
use assay_host::kstat;
use assay_model::{FactKind, FactPlace, Facts};
use jiff::tz::TimeZone;
use pool_configurations::{PoolConfigurations, find_ashift};
use serde_json::Value;

mod devices;
mod pool_configurations;
mod volumes;

const PARAMETERS: &str = "/sys/module/zfs/parameters";

/// Properties that identify a machine but do not affect its behaviour.
pub(crate) const IDENTITY: [&str; 6] = [
    "guid",
    "objsetid",
    "load_guid",
    "createtxg",
    "creation",
    "comment",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    g.text("zfs.version", "/sys/module/zfs/version");
    for name in g.list("zfs.param", PARAMETERS) {
        let name = lossy(&name);
        g.value(
            &format!("zfs.param.{name}"),
            &format!("{PARAMETERS}/{name}"),
            |text| Some(scalar(text)),
        );
    }
    if let Some(text) = g.read("zfs.arc", kstat::ARCSTATS) {
        for name in [
            "size",
            "c",
            "c_min",
            "c_max",
            "hits",
            "misses",
            "l2_size",
            "l2_hdr_size",
            "compressed_size",
            "uncompressed_size",
        ] {
            if let Some(value) = kstat::find_counter(&text, name) {
                g.facts.known(
                    format!("zfs.arc.{name}"),
                    value,
                    FactKind::Runtime,
                    kstat::ARCSTATS,
                );
            }
        }
    }
}

/// Dataset properties that checks use. Not every type of dataset has all of them.
pub(crate) const ASKED: &str = "type,volblocksize,recordsize,compression,compressratio,sync,logbias,atime,relatime,\
primarycache,secondarycache,normalization,dedup,checksum,copies,refreservation,volsize,origin,encryption,\
xattr,available,used,usedbysnapshots";

/// Collects all pools and datasets.
pub(crate) fn everything(g: &mut Gather<'_>) {
    let argv = [
        "zpool",
        "get",
        "-Hp",
        "-o",
        "name,property,value,source",
        "all",
    ];
    let Some(output) = g.ask("zfs.pool", &argv) else {
        return;
    };
    let pools = note_named_properties(&mut g.facts, "zfs.pool", &output.text(), &argv);
    let mut configurations = PoolConfigurations::default();
    for pool in &pools {
        note_layout(g, pool, &mut configurations);
        let key = format!("zfs.pool.{pool}");
        let kinds = |g: &Gather<'_>| -> Vec<String> {
            let at = (0..).map_while(|at| g.facts.str(&format!("{key}.vdev.{at}.kind")));
            at.map(str::to_owned).collect()
        };
        let parity = kinds(g).iter().find_map(|kind| {
            let raid = kind.starts_with("raidz") || kind.starts_with("draid");
            raid.then(|| kind.clone())
        });
        if let Some(kind) = parity {
            let place = FactPlace::command(["zpool", "status", "-LP", pool]);
            g.facts
                .known(format!("{key}.parity"), kind, FactKind::Configured, place);
        }
        g.about(["zfs.pool", pool]);
    }
    volatile_caches(g, &pools);
    let argv = [
        "zfs",
        "get",
        "-Hp",
        "-t",
        "filesystem,volume",
        "-o",
        "name,property,value,source",
        ASKED,
    ];
    let Some(output) = g.ask("zfs.dataset", &argv) else {
        return;
    };
    let datasets = note_named_properties(&mut g.facts, "zfs.dataset", &output.text(), &argv);
    for name in &datasets {
        let pool = name.split('/').next().unwrap_or(name);
        let mut known = |key: &str, value: &str| {
            let key = format!("zfs.dataset.{name}.{key}");
            let place = FactPlace::command(argv);
            g.facts.known(key, value, FactKind::Runtime, place);
        };
        known("pool", pool);
        // An inherited value is noted once, for the dataset that sets it.
        if let Some((parent, _)) = name.rsplit_once('/') {
            known("parent", parent);
        }
        g.about(["zfs.dataset", name]);
    }
    for pool in &pools {
        volumes::thin(g, pool, &datasets, &argv);
        g.about(["zfs.pool", pool]);
    }
}

/// Notes `zfs.volatile_cache`: whether at least one disk of the pools has a volatile write cache. The fact is unknown
/// unless every disk reports this.
fn volatile_caches(g: &mut Gather<'_>, pools: &[String]) {
    let mut any = false;
    let mut seen = false;
    for pool in pools {
        let of = |at: usize, name: &str| format!("zfs.pool.{pool}.vdev.{at}.{name}");
        for at in 0.. {
            let Some(class) = g.facts.str(&of(at, "class")) else {
                break;
            };
            if matches!(class, "cache" | "spare") {
                continue;
            }
            match g.facts.str(&of(at, "write_cache")) {
                Some(said) => any |= said == "write back",
                None => return,
            }
            seen = true;
        }
    }
    if seen {
        let place = "/sys/block/*/queue/write_cache";
        g.facts
            .known("zfs.volatile_cache", any, FactKind::Runtime, place);
    }
}

/// Parses lines `name property value source`, separated by tabs. Notes the properties of each dataset, and returns the
/// names of the datasets in order.
fn note_named_properties(facts: &mut Facts, key: &str, text: &str, argv: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once('\t') else {
            continue;
        };
        // A dataset without the property has the value `-`.
        if rest.split('\t').nth(1) == Some("-") {
            continue;
        }
        note_properties(facts, &format!("{key}.{name}"), rest, argv);
        if names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Notes the properties of a dataset and of its pool.
pub(crate) fn dataset(g: &mut Gather<'_>, dataset: &str) {
    let key = format!("zfs.dataset.{dataset}");
    let argv = [
        "zfs",
        "get",
        "-Hp",
        "-o",
        "property,value,source",
        "all",
        dataset,
    ];
    if let Some(output) = run_tool(g, &key, &argv) {
        note_properties(&mut g.facts, &key, &output, &argv);
    }
    let pool = dataset.split('/').next().unwrap_or(dataset);
    let key = format!("zfs.pool.{pool}");
    let argv = [
        "zpool",
        "get",
        "-Hp",
        "-o",
        "property,value,source",
        "all",
        pool,
    ];
    if let Some(output) = run_tool(g, &key, &argv) {
        note_properties(&mut g.facts, &key, &output, &argv);
    }
    note_layout(g, pool, &mut PoolConfigurations::default());
}

/// Notes the devices of a pool, and the state of the pool.
fn note_layout(g: &mut Gather<'_>, pool: &str, configurations: &mut PoolConfigurations) {
    let key = format!("zfs.pool.{pool}");
    let argv = ["zpool", "status", "-LP", pool];
    if let Some(output) = run_tool(g, &format!("{key}.layout"), &argv) {
        let layout: Vec<Value> = zpool::layout(&output, pool)
            .into_iter()
            .map(Value::from)
            .collect();
        g.facts.known(
            format!("{key}.layout"),
            layout,
            FactKind::Configured,
            FactPlace::command(argv),
        );
        if let Some(state) = zpool::state(&output) {
            g.facts.known(
                format!("{key}.state"),
                state,
                FactKind::Runtime,
                FactPlace::command(argv),
            );
        }
        note_health(g, &key, pool, &output, &FactPlace::command(argv));
        let vdevs = zpool::vdevs(&output, pool);
        let ashifts = configurations.find_ashifts(g, pool, &vdevs);
        note_vdevs(g, &key, pool, &vdevs, ashifts);
    }
}

/// Notes the faults of a pool: missing devices (even if the pool is ONLINE), device errors, and lost data.
fn note_health(g: &mut Gather<'_>, key: &str, pool: &str, status: &str, place: &FactPlace) {
    let mut known = |name: &str, value: Value| {
        let key = format!("{key}.{name}");
        g.facts.known(key, value, FactKind::Runtime, place.clone());
    };
    let leaves = zpool_health::leaves(status, pool);
    let lost = |with_data: bool| -> Vec<String> {
        let all = leaves.iter().filter(|leaf| leaf.is_lost());
        all.filter(|leaf| leaf.holds_data() == with_data)
            .map(|leaf| format!("{} is {}", leaf.name, leaf.state))
            .collect()
    };
    let devices = lost(true);
    let state = zpool::state(status).unwrap_or_default();
    let mut trouble = devices.join(", ");
    if trouble.is_empty() {
        trouble = format!("its state is {state}");
    }
    if zpool_health::is_resilvering(status) {
        trouble += "; a resilver runs";
    }
    known("lost_devices", devices.into());
    known("lost_spares", lost(false).into());
    known("trouble", trouble.into());
    let mut errors: Vec<String> = leaves
        .iter()
        .filter(|leaf| !leaf.is_lost())
        .filter_map(Leaf::describe_errors)
        .collect();
    if errors.is_empty() && leaves.iter().all(|leaf| !leaf.is_lost()) {
        errors = zpool_health::group_errors(status);
    }
    known("device_errors", errors.into());
    match zpool_health::data_errors(status) {
        Some(Ok(number)) => known("data_errors", number.into()),
        Some(Err(why)) => {
            let key = format!("{key}.data_errors");
            g.facts.unknown(key, why, FactKind::Runtime, place.clone());
        }
        None => {}
    }
    // The time zone of the end is unknown: whole days are exact enough.
    let end = zpool_health::scrub_end(status).and_then(|end| end.to_zoned(TimeZone::UTC).ok());
    if let (Some(end), Ok(now)) = (end, certificates::now(g)) {
        let days = now.saturating_sub(end.timestamp().as_second()) / 86_400;
        let key = format!("{key}.scrub_days");
        g.facts
            .known(key, days.max(0), FactKind::Runtime, place.clone());
    }
}

/// Notes the top-level vdevs of a pool. Their position in `zpool status` is part of the key.
fn note_vdevs(
    g: &mut Gather<'_>,
    pool_key: &str,
    pool: &str,
    vdevs: &[Vdev],
    (ashifts, source): (Result<Ashifts, String>, FactPlace),
) {
    let mut all_ashifts: Vec<u32> = Vec::new();
    for (at, vdev) in vdevs.iter().enumerate() {
        let key = |name: &str| format!("{pool_key}.vdev.{at}.{name}");
        let mut known = |name: &str, value: Value, kind| {
            g.facts.known(
                key(name),
                value,
                kind,
                FactPlace::command(["zpool", "status", "-LP", pool]),
            );
        };
        known("class", vdev.class.into(), FactKind::Configured);
        known("kind", vdev.kind.clone().into(), FactKind::Configured);
        known("state", vdev.state.clone().into(), FactKind::Runtime);
        let leaves: Value = vdev.leaves.iter().map(|(name, _)| name.clone()).collect();
        known("devices", leaves, FactKind::Configured);
        let own = format!("{pool_key}.vdev.{at}");
        devices::of_vdev(g, &own, vdev);
        if g.facts.str(&format!("{pool_key}.autotrim")) == Some("on") {
            devices::trimmed(g, vdev, pool);
        }
        devices::names(g, &own, vdev, ashifts.as_ref().ok(), &source);
        g.about(["zfs.pool", pool, "vdev", &at.to_string()]);
        // Caches and spares are not part of the pool's configuration.
        if matches!(vdev.class, "cache" | "spare") {
            continue;
        }
        let kind = FactKind::Configured;
        match ashifts.as_ref().map(|all| find_ashift(g, all, vdev)) {
            Ok(Some(ashift)) => {
                g.facts.known(key("ashift"), ashift, kind, source.clone());
                // zpoolprops(7): from 9 to 16.
                if let Some(bytes) = 1u64.checked_shl(ashift) {
                    g.facts
                        .known(key("allocation"), bytes, kind, source.clone());
                }
                if vdev.class == "data" && !all_ashifts.contains(&ashift) {
                    all_ashifts.push(ashift);
                }
            }
            Ok(None) => {
                let why = "the pool's configuration does not say";
                g.facts.unknown(key("ashift"), why, kind, source.clone());
            }
            Err(why) => g
                .facts
                .unknown(key("ashift"), why.clone(), kind, source.clone()),
        }
        g.about(["zfs.pool", pool, "vdev", &at.to_string()]);
    }
    let mut data = vdevs.iter().filter(|vdev| vdev.class == "data").peekable();
    let redundant = data.peek().is_some() && data.all(|vdev| vdev.kind != "disk");
    let place = FactPlace::command(["zpool", "status", "-LP", pool]);
    for at in (0..vdevs.len()).filter(|_| redundant) {
        let key = format!("{pool_key}.vdev.{at}.pool_redundant");
        g.facts
            .known(key, true, FactKind::Configured, place.clone());
        g.about(["zfs.pool", pool, "vdev", &at.to_string()]);
    }
    if all_ashifts.is_empty() {
        return;
    }
    all_ashifts.sort_unstable();
    let all: Value = all_ashifts.into_iter().collect();
    let key = format!("{pool_key}.ashifts");
    g.facts.known(key, all, FactKind::Configured, source);
}

/// Runs a ZFS tool. This function is called only if a dataset is mounted, so a missing tool makes the facts unknown
/// instead of absent.
fn run_tool(g: &mut Gather<'_>, key: &str, argv: &[&str]) -> Option<String> {
    match g.try_ask(argv) {
        Ok(output) if output.success() => return Some(output.text()),
        Ok(output) => g.facts.unknown(
            key,
            output.complaint(),
            FactKind::Runtime,
            FactPlace::command(argv),
        ),
        Err(error) => g.facts.unknown(
            key,
            error.reason(),
            FactKind::Runtime,
            FactPlace::command(argv),
        ),
    }
    None
}

/// Parses lines `property value source`, separated by tabs, and notes the values. The source describes how the value
/// was set (zfsprops(7)).
fn note_properties(facts: &mut Facts, key: &str, text: &str, argv: &[&str]) {
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(name), Some(value), Some(source)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // A colon marks user properties, which may contain any text.
        if name.contains(':') || IDENTITY.contains(&name) {
            continue;
        }
        let (kind, how) = match source {
            "default" => (FactKind::Default, None),
            "-" | "" => (FactKind::Runtime, None),
            other => (FactKind::Configured, Some(other.to_owned())),
        };
        facts.known(
            format!("{key}.{name}"),
            scalar(value),
            kind,
            FactPlace::Command {
                argv: argv.iter().map(|&word| word.to_owned()).collect(),
                how,
            },
        );
    }
}

#[cfg(test)]
mod tests;
