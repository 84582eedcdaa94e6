//! Invented observations for the demonstration: a control group that reaches its CPU quota, and people on a crowded
//! network. They are judged by the real rules.

use crate::demo_records::Random;
use assay_net::air::{Air, Point, Sample};
use assay_net::plan::NetPlan;
use assay_net::record::{PersonRecord, RecordEvent, RoleRecord, Start};
use assay_net::result::{Run, Taken};
use assay_report::net::summarize_grades;
use assay_report::why::{describe_thing, summarize_answer};
use assay_store::{Observation, Observer};
use assay_why::{
    Entity, EntityKind, MachineSnapshot, SuspectPageError, WatchSubject, WatchWindow, judge_window,
};
use assay_wifi::channel::Channel;
use jiff::{SignedDuration, Timestamp};

/// Duration of an observation in seconds.
const SECONDS: u64 = 30;
const MICROSECONDS: u64 = 1_000_000;

/// Builds an answer of `assay why` about a web server whose PHP workers are throttled by a CPU quota.
pub(crate) fn watch_web_server(
    machine: &str,
    started: Timestamp,
    random: &mut Random,
) -> Result<Observation, SuspectPageError> {
    let mut user = 0.0;
    let mut looks = Vec::new();
    for second in 0..=SECONDS {
        let at = second as f64;
        let mut look = MachineSnapshot {
            at_ms: second * 1000,
            ..MachineSnapshot::default()
        };
        user += 1.9 + 0.2 * random.bell();
        look.set("cpu.count", 8.0);
        look.set("cpu.user_total", user);
        look.set("cpu.idle_total", 8.0 * at - user);
        let mut group = Entity::new(
            EntityKind::Group,
            "/system.slice/php8.2-fpm.service",
            "php8.2-fpm.service",
        );
        for (key, rate) in [
            ("periods", 10.0),
            ("throttled", 9.2),
            ("throttled_s", 3.1),
            ("usage", 1.5),
        ] {
            group.set(&format!("cpu.{key}_total"), rate * at);
        }
        group.set("cpu.quota", 1.5);
        look.entities.push(group);
        looks.push(look);
    }
    let subject = WatchSubject::Machine;
    let mut answer = judge_window(&WatchWindow::new(&looks, &subject), &subject)?;
    answer.machine = machine.to_owned();
    answer.started_ms = u64::try_from(started.as_millisecond()).unwrap_or(0);
    Ok(Observation {
        uid: random.uid(),
        by: Observer::Why,
        started,
        ended: started + SignedDuration::from_secs(SECONDS as i64),
        subject: describe_thing(&answer),
        summary: summarize_answer(&answer).swap_remove(0),
        document: serde_json::json!(answer),
    })
}

/// Builds a run of `assay net` with the built-in plan of four devices. The download fills a queue, and the caller walks
/// from one access point to another.
pub(crate) fn watch_network(started: Timestamp, random: &mut Random) -> Option<Observation> {
    let plan = NetPlan::builtin("four")?;
    let people = plan.people.iter().map(|person| {
        let roles = person.roles.iter().map(|role| fill_role(role, random));
        Taken {
            person: person.name.clone(),
            client: person.client.clone().unwrap_or_else(|| person.name.clone()),
            missing: None,
            record: Some(PersonRecord {
                person: person.name.clone(),
                ran_us: SECONDS * MICROSECONDS,
                start: Start {
                    late_us: 180,
                    error_us: 40,
                    idle_us: 3100,
                    idle_median_us: 3600,
                    exchanges: 20,
                    drift_us: None,
                },
                air: (person.name == "caller").then(walk_to_other_point),
                roles: roles.collect(),
                ..PersonRecord::default()
            }),
        }
    });
    let run = Run {
        people: people.collect(),
        plan: plan.clone(),
        began: started,
        aborted: false,
        congestion: Vec::new(),
    };
    Some(Observation {
        uid: random.uid(),
        by: Observer::Net,
        started,
        ended: started + SignedDuration::from_secs(SECONDS as i64),
        subject: run.plan.name.clone(),
        summary: summarize_grades(&run.judged()),
        document: serde_json::json!(run),
    })
}

/// Fills the record of a role, from its period and latency in microseconds, and its rate in bytes per 100 ms.
fn fill_role(role: &str, random: &mut Random) -> RoleRecord {
    let (period, typical, rate) = match role {
        "browsing" => (1_000_000, 320_000.0, 90_000),
        "4kstream" => (335_544, 140_000.0, 312_500),
        "download" => (SECONDS * MICROSECONDS, 0.0, 700_000),
        _ => (20_000, 36_000.0, 12_000),
    };
    let is_packet = period == 20_000;
    // A download that has not ended is no event.
    let count = match role {
        "download" => 0,
        _ => SECONDS * MICROSECONDS / period,
    };
    let events = (0..count).map(|number| {
        let due = number * period;
        let is_roaming = is_packet && (12_200_000..13_600_000).contains(&due);
        let factor = (1.0 + 0.25 * random.bell()).max(0.3);
        RecordEvent {
            due,
            late: 0,
            took: (!is_roaming).then_some((typical * factor) as u64),
        }
    });
    RoleRecord {
        role: role.to_owned(),
        events: events.collect(),
        slots: vec![rate; SECONDS as usize * 10],
        ..RoleRecord::default()
    }
}

/// Returns samples of the radio of a device that roams to another access point, but uses the weak one for too long.
fn walk_to_other_point() -> Air {
    let sample = |second: u64| {
        let (point, mhz, signal) = match second {
            ..12 => (Some(0), 5180, Some(-48 - 3 * second as i32)),
            12 | 13 => (None, 0, None),
            _ => (Some(1), 5500, Some(-52)),
        };
        Sample {
            at: second * MICROSECONDS,
            point,
            channel: Channel::at(mhz),
            signal,
            down_bit_per_s: signal.map(|_| 433_300_000),
            up_bit_per_s: None,
        }
    };
    let point = |address: &str| Point {
        address: address.to_owned(),
    };
    Air {
        points: vec![point("00:1a:2b:xx:xx:xx"), point("00:1a:2c:xx:xx:xx")],
        samples: (0..SECONDS).map(sample).collect(),
        heard: Vec::new(),
    }
}
