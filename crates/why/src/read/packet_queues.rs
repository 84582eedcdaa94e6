//! Queueing disciplines of network interfaces, as `tc` lists them: rate limits, added delays, drops.

use super::MachineReader;
use crate::machine_snapshot::{EntityKind, MachineSnapshot};
use assay_host::Limits;
use serde_json::Value;
use std::ffi::OsStr;
use std::time::Duration;

/// Queueing disciplines that limit or delay on purpose. All others send as fast as the interface permits.
const SHAPERS: [&str; 9] = [
    "tbf", "htb", "hfsc", "cbq", "cake", "netem", "ets", "drr", "qfq",
];

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    if !reader.is_second_look() || reader.host.which(OsStr::new("tc")).is_none() {
        return;
    }
    let argv = ["tc", "-s", "-j", "qdisc", "show"].map(OsStr::new);
    let limits = Limits {
        timeout: Duration::from_secs(1),
    };
    let Ok(done) = reader.host.run(&argv, limits) else {
        return;
    };
    let queues: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap_or_default();
    for queue in queues.iter().filter(|_| done.success()) {
        add_queue(queue, look);
    }
}

/// Adds a queueing discipline to its interface.
fn add_queue(queue: &Value, look: &mut MachineSnapshot) {
    let (Some(kind), Some(device)) = (queue["kind"].as_str(), queue["dev"].as_str()) else {
        return;
    };
    let is_device = |name: &str| name == device;
    let mut interfaces = look.entities.iter_mut();
    let Some(interface) =
        interfaces.find(|entity| entity.kind == EntityKind::Interface && is_device(&entity.name))
    else {
        return;
    };
    let number = |key: &str| queue[key].as_f64().unwrap_or(0.0);
    let before = interface.numbers.get("queue.drops_total").copied();
    let drops = before.unwrap_or(0.0) + number("drops");
    interface.set("queue.drops_total", drops);
    let packets = interface.numbers.get("queue.packets").copied();
    interface.set("queue.packets", packets.unwrap_or(0.0) + number("qlen"));
    if !SHAPERS.contains(&kind) {
        return;
    }
    interface.set("shaper.over_total", number("overlimits"));
    interface.set("shaper.packets_total", number("packets"));
    interface.set("shaper.backlog", number("backlog"));
    if let Some(rate) = queue["options"]["rate"].as_f64() {
        interface.set("shaper.rate", rate);
    }
    let delay = &queue["options"]["delay"];
    if let Some(delay) = delay["delay"].as_f64().or(delay.as_f64()) {
        interface.set("shaper.delay", delay);
    }
    let loss = &queue["options"]["loss-random"]["loss"];
    if let Some(loss) = loss.as_f64() {
        interface.set("shaper.loss", loss);
    }
    interface.texts.insert("shaper".to_owned(), kind.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_snapshot::Entity;
    use serde_json::json;

    #[test]
    fn a_shaper_is_told_from_an_ordinary_queue() {
        let mut look = MachineSnapshot::default();
        for name in ["eth0", "eth1"] {
            let entity = Entity::new(EntityKind::Interface, name, name);
            look.entities.push(entity);
        }
        let netem = json!({"kind": "netem", "dev": "eth0", "drops": 3, "qlen": 2, "overlimits": 0, "packets": 9,
            "options": {"delay": {"delay": 0.1}, "loss-random": {"loss": 0.01}}});
        add_queue(&netem, &mut look);
        add_queue(
            &json!({"kind": "fq_codel", "dev": "eth1", "drops": 1}),
            &mut look,
        );
        add_queue(&json!({"kind": 7, "dev": []}), &mut look);
        assert_eq!(look.entities[0].texts["shaper"], "netem");
        assert_eq!(look.entities[0].numbers["shaper.delay"], 0.1);
        assert!(!look.entities[1].texts.contains_key("shaper"));
        assert_eq!(look.entities[1].numbers["queue.drops_total"], 1.0);
    }
}
