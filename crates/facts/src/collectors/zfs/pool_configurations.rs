//! Collects the ashift of the vdevs of all pools: from vdev properties, from the pool cache file, or from the devices
//! of the pool.

use crate::gather::Gather;
use crate::zpool::{self, Ashifts, Vdev};
use assay_host::HostError;
use assay_model::FactPlace;
use std::path::Path;

/// Cached output of zdb, which is slow. `zdb -C` reads the cache file of all pools at once; `zdb -C POOL` reads a pool
/// from its devices, which takes seconds per pool.
#[derive(Default)]
pub(super) struct PoolConfigurations {
    cached: Option<String>,
    /// Reason why no further pools are read from their devices, for example a timeout of an earlier pool.
    exhausted: Option<String>,
}

impl PoolConfigurations {
    /// Returns the ashift of the vdevs of a pool, and the command that printed it. Since OpenZFS 2.2, ashift is a vdev
    /// property. For older versions, and for vdevs without this property, zdb prints the ashift.
    pub(super) fn find_ashifts(
        &mut self,
        g: &Gather<'_>,
        pool: &str,
        vdevs: &[Vdev],
    ) -> (Result<Ashifts, String>, FactPlace) {
        let get = Ashifts::query(pool);
        let properties = g.try_ask(&get).ok().filter(|output| output.success());
        let properties = properties.map(|output| Ashifts::of_properties(&output.text()));
        if let Some(whole) = properties
            .as_ref()
            .filter(|properties| properties.is_whole(vdevs))
        {
            return (Ok(whole.clone()), FactPlace::command(get));
        }
        if let Some(found) = self.find_cached(g, pool).filter(|all| all.is_whole(vdevs)) {
            return (Ok(found), FactPlace::command(zpool::CACHED));
        }
        let argv = ["zdb", "-C", pool];
        match (self.read_pool(g, &argv), properties) {
            (Ok(found), _) => (Ok(found), FactPlace::command(argv)),
            // Only root may read the devices; a part of the result is better than none.
            (Err(_), Some(part)) => (Ok(part), FactPlace::command(get)),
            (Err(why), None) => (Err(why), FactPlace::command(argv)),
        }
    }

    /// Returns the ashifts that the cache file contains for a pool. If the pool uses another cache file or none, this
    /// entry may list devices that were replaced.
    fn find_cached(&mut self, g: &Gather<'_>, pool: &str) -> Option<Ashifts> {
        let elsewhere = g.facts.str(&format!("zfs.pool.{pool}.cachefile"));
        if elsewhere.is_some_and(|path| path != "-") {
            return None;
        }
        let cached = self.cached.get_or_insert_with(|| {
            let output = g.try_ask(&zpool::CACHED).ok();
            let output = output.filter(|output| output.success());
            output.map(|output| output.text()).unwrap_or_default()
        });
        Some(zpool::ashifts(zpool::find_cached(cached, pool)?))
    }

    /// Reads a pool from its devices, unless an earlier pool exceeded the time limit.
    fn read_pool(&mut self, g: &Gather<'_>, argv: &[&str]) -> Result<Ashifts, String> {
        if let Some(why) = &self.exhausted {
            return Err(why.clone());
        }
        match g.try_ask(argv) {
            Ok(output) if output.success() => Ok(zpool::ashifts(&output.text())),
            Ok(output) => Err(output.complaint()),
            Err(error) => {
                if let HostError::Timeout { .. } = error {
                    self.exhausted = Some(error.reason());
                }
                Err(error.reason())
            }
        }
    }
}

/// Returns the ashift of a vdev. Groups such as mirrors are looked up by number, single devices by path. The path that
/// the pool recorded may differ from the current path.
pub(super) fn find_ashift(g: &Gather<'_>, ashifts: &Ashifts, vdev: &Vdev) -> Option<u32> {
    if vdev.kind != "disk" {
        return ashifts.of_group(&vdev.name);
    }
    let direct = ashifts.by_path.get(&vdev.name).copied();
    let linked = direct.or_else(|| {
        let mut links = ashifts.by_path.iter();
        links.find_map(|(path, ashift)| {
            let real = g.host.realpath(Path::new(path)).ok()?;
            (real == Path::new(&vdev.name)).then_some(*ashift)
        })
    });
    // Names in /dev/disk/by-id contain serial numbers and are left out of the output.
    linked.or_else(|| ashifts.common())
}
