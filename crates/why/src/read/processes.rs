//! Processes. If there are many, all of them are listed rarely; the busy and the waiting ones are read at each look,
//! with threads, transfers, control group and cause of waiting.

mod lasting;
mod stat_line;

use super::cpu::TICKS;
use super::wait_class::{classify_stack, parse_stack};
use super::{MachineReader, parse_pairs};
use crate::WatchSubject;
use crate::machine_look::{Entity, EntityKind, MachineLook};
use assay_facts::qemu;
use lasting::{Lasting, read_lasting};
use stat_line::StatLine;
use std::collections::{BTreeMap, BTreeSet};

/// Most processes of a look.
const MOST: usize = 64;
/// Largest number of threads that are read for a process.
const MOST_THREADS: usize = 64;
/// Number of threads of a process whose states are sampled at a time.
const SAMPLED_THREADS: usize = 16;
/// Number of lists after which an idle process is no longer read at each look.
const PATIENCE: u32 = 10;
/// Share of one CPU that listing all processes may use.
const SCAN_SHARE: f64 = 0.01;

/// Last known values of a process.
#[derive(Clone, Debug)]
struct Last {
    start: u64,
    parent: u32,
    busy: u64,
}

/// All processes, and those that are read at each look.
#[derive(Default)]
pub(super) struct ProcessTable {
    all: BTreeMap<u32, Last>,
    tracked: BTreeSet<u32>,
    /// Number of lists since a process was last busy.
    idle: BTreeMap<u32, u32>,
    lasting: BTreeMap<u32, Lasting>,
    /// Number of looks until all processes are listed again.
    pause: u32,
    /// Sampled waits since the last look: process, class, function.
    waits: BTreeMap<(u32, &'static str), (f64, String)>,
    /// Number of runnable threads of each process in the samples since the last look.
    ready: BTreeMap<u32, f64>,
    /// Children of each process at the last look, and whether they change.
    children: BTreeMap<u32, (String, bool)>,
    samples: f64,
    groups: BTreeSet<String>,
}

impl ProcessTable {
    /// Samples the threads of the processes that are read at each look: which of them wait, and for
    /// what.
    pub(super) fn sample_states(&mut self, reader: &mut MachineReader) {
        self.samples += 1.0;
        for pid in self.tracked.clone() {
            let threads = list_threads(reader, pid);
            // If there are many threads, a part of them represents all.
            let part = threads.len().min(SAMPLED_THREADS);
            let weight = threads.len() as f64 / part.max(1) as f64;
            let first = self.samples as usize % threads.len().max(1);
            for thread in threads.iter().cycle().skip(first).take(part) {
                let dir = format!("/proc/{pid}/task/{thread}");
                let Some(line) = reader.text(&format!("{dir}/stat")) else {
                    continue;
                };
                match StatLine::parse(&line).map(|stat| stat.state) {
                    Some('D') => self.add_wait(reader, pid, &dir, weight),
                    Some('R') => *self.ready.entry(pid).or_default() += weight,
                    _ => {}
                }
            }
            if self.children.get(&pid).is_some_and(|(_, changes)| *changes) {
                self.sample_children(reader, pid);
            }
        }
    }

    /// Samples the children of a process that starts many. Their waiting counts as waiting of the
    /// process.
    fn sample_children(&mut self, reader: &mut MachineReader, pid: u32) {
        let children = reader.text(&format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_ascii_whitespace()
            .filter_map(|word| word.parse::<u32>().ok());
        for child in children.take(SAMPLED_THREADS) {
            if self.tracked.contains(&child) {
                continue;
            }
            let dir = format!("/proc/{child}");
            let line = reader.text(&format!("{dir}/stat"));
            let state = line
                .and_then(|line| StatLine::parse(&line))
                .map(|stat| stat.state);
            if state == Some('D') {
                self.add_wait(reader, pid, &dir, 1.0);
            }
        }
    }

    /// Notes whether the children of a process change between looks.
    fn note_children(&mut self, reader: &mut MachineReader, pid: u32) {
        let now = reader
            .text(&format!("/proc/{pid}/task/{pid}/children"))
            .unwrap_or_default();
        let changes = self
            .children
            .get(&pid)
            .is_some_and(|(before, _)| *before != now);
        self.children.insert(pid, (now, changes));
    }

    fn add_wait(&mut self, reader: &mut MachineReader, pid: u32, dir: &str, weight: f64) {
        let stack = reader.text(&format!("{dir}/stack"));
        let functions = stack.as_deref().map(parse_stack).unwrap_or_default();
        let (class, function) = match functions.is_empty() {
            false => {
                let (class, function) = classify_stack(&functions);
                (class, function.to_owned())
            }
            // Only root may read stacks.
            true => {
                let channel = reader.text(&format!("{dir}/wchan")).unwrap_or_default();
                let channel = channel.trim().to_owned();
                (classify_stack(&[channel.as_str()]).0, channel)
            }
        };
        let entry = self.waits.entry((pid, class)).or_default();
        entry.0 += weight;
        entry.1 = function;
    }

    /// Reads the processes for a look.
    pub(super) fn read(&mut self, reader: &mut MachineReader, look: &mut MachineLook) {
        self.sample_states(reader);
        match self.pause {
            0 => self.scan(reader, look),
            _ => self.pause -= 1,
        }
        self.groups.clear();
        for pid in self.tracked.clone() {
            match self.read_process(reader, pid) {
                Some(entity) => look.entities.push(entity),
                None => {
                    self.tracked.remove(&pid);
                    self.lasting.remove(&pid);
                }
            }
        }
        look.set("processes", self.all.len() as f64);
        let tracked = &self.tracked;
        self.children.retain(|pid, _| tracked.contains(pid));
        self.waits.clear();
        self.ready.clear();
        self.samples = 0.0;
    }

    /// Lists all processes and selects those that are read at each look.
    fn scan(&mut self, reader: &mut MachineReader, look: &mut MachineLook) {
        let begin = thread_seconds();
        let mut all = BTreeMap::new();
        let mut ranked: Vec<(u64, u32)> = Vec::new();
        let mut states: BTreeMap<char, f64> = BTreeMap::new();
        let own = std::process::id();
        for name in reader.names("/proc") {
            let Ok(pid) = name.parse::<u32>() else {
                continue;
            };
            let Some(text) = reader.text(&format!("/proc/{pid}/stat")) else {
                continue;
            };
            let Some(stat) = StatLine::parse(&text) else {
                continue;
            };
            *states.entry(stat.state).or_default() += 1.0;
            let busy = stat.busy_ticks + stat.major_faults;
            let before = self.all.get(&pid).filter(|last| last.start == stat.start);
            let delta = busy.saturating_sub(before.map_or(0, |last| last.busy));
            let is_new = before.is_none() && self.all.is_empty();
            let rank = match (stat.state, is_new) {
                ('D', _) => 1 << 40 | delta,
                ('R', _) => 1 << 20 | delta,
                ('T', _) => 1,
                // At the first look, the totals since the start of a process say little about the
                // present.
                (_, true) => 0,
                _ => delta,
            };
            let asked = reader.thing.is_process(pid, &stat.name);
            if (rank > 0 || asked || qemu::is_qemu(&stat.name)) && pid != own {
                ranked.push((rank | u64::from(asked) << 41, pid));
            }
            let last = Last {
                start: stat.start,
                parent: stat.parent,
                busy,
            };
            all.insert(pid, last);
        }
        let is_first = self.all.is_empty();
        self.all = all;
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        // Processes that were busy before stay selected, so that their counters have no gaps.
        let busy: BTreeSet<u32> = ranked.iter().map(|(_, pid)| *pid).collect();
        let (all, idle) = (&self.all, &mut self.idle);
        self.tracked.retain(|pid| {
            let lists = idle.entry(*pid).or_default();
            *lists = if busy.contains(pid) { 0 } else { *lists + 1 };
            all.contains_key(pid) && *lists < PATIENCE
        });
        let tracked = &self.tracked;
        idle.retain(|pid, _| tracked.contains(pid));
        let room = MOST.saturating_sub(self.tracked.len()).max(MOST / 4);
        let new = ranked.iter().take(MOST).map(|(_, pid)| *pid);
        let new: Vec<u32> = new
            .filter(|pid| !self.tracked.contains(pid))
            .take(room)
            .collect();
        if self.tracked.len() + new.len() > MOST {
            let wanted: BTreeSet<u32> = ranked.iter().take(MOST).map(|(_, pid)| *pid).collect();
            self.tracked.retain(|pid| wanted.contains(pid));
        }
        self.tracked.extend(new);
        for (state, count) in states {
            look.set(format!("states.{state}"), count);
        }
        let cost = thread_seconds() - begin;
        // The activity of a process is known only from the second look on.
        self.pause = match is_first {
            true => 0,
            false => (cost / SCAN_SHARE).min(60.0) as u32,
        };
    }

    fn read_process(&mut self, reader: &mut MachineReader, pid: u32) -> Option<Entity> {
        let text = reader.text(&format!("/proc/{pid}/stat"))?;
        let stat = StatLine::parse(&text)?;
        let mut entity = Entity::new(
            EntityKind::Process,
            format!("{pid}@{}", stat.start),
            stat.name.clone(),
        );
        let lasting = match self
            .lasting
            .get(&pid)
            .filter(|lasting| lasting.start == stat.start)
        {
            Some(lasting) => lasting.clone(),
            None => {
                let lasting = read_lasting(reader, pid, &stat);
                self.lasting.insert(pid, lasting.clone());
                lasting
            }
        };
        entity.texts.clone_from(&lasting.texts);
        entity.texts.insert(
            "ancestors".to_owned(),
            self.list_ancestors(pid, stat.parent),
        );
        entity
            .texts
            .insert("state".to_owned(), stat.state.to_string());
        self.groups.extend(lasting.groups);
        entity.set("cpu_total", stat.cpu_ticks as f64 / TICKS);
        entity.set("children_cpu_total", stat.children_ticks as f64 / TICKS);
        entity.set("majfaults_total", stat.major_faults as f64);
        entity.set("memory", stat.resident_pages as f64 * 4096.0);
        entity.set("threads", stat.threads as f64);
        if stat.is_kernel() {
            entity.set("kernel", 1.0);
        }
        entity.set("started", stat.start as f64 / TICKS);
        entity.set(
            "stopped",
            f64::from(u8::from(matches!(stat.state, 'T' | 't'))),
        );
        let mut queued = 0.0;
        let threads = list_threads(reader, pid);
        for thread in &threads {
            let text = reader.text(&format!("/proc/{pid}/task/{thread}/schedstat"));
            let nanos =
                text.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<f64>().ok());
            queued += nanos.unwrap_or(0.0) / 1e9;
        }
        entity.set("queue_total", queued);
        if let Some(text) = reader.text(&format!("/proc/{pid}/io")) {
            for (name, value) in parse_pairs(&text) {
                match name {
                    "read_bytes" => entity.set("io.read_total", value),
                    "write_bytes" => entity.set("io.write_total", value),
                    "syscr" => entity.set("io.reads_total", value),
                    "syscw" => entity.set("io.writes_total", value),
                    _ => {}
                }
            }
        }
        if reader.is_thorough() && !stat.is_kernel() {
            let open = reader.names(&format!("/proc/{pid}/fd")).len();
            if open > 0 {
                entity.set("files.open", open as f64);
            }
            if let Some(limit) = lasting.open_files_limit {
                entity.set("files.limit", limit);
            }
        }
        if !stat.is_kernel() {
            self.note_children(reader, pid);
        }
        if self.samples > 0.0 {
            if let Some(count) = self.ready.get(&pid) {
                entity.set("ready", count / self.samples);
            }
            let of = |(waiter, _): &&(u32, &str)| *waiter == pid;
            for key in self.waits.keys().filter(of).copied().collect::<Vec<_>>() {
                if let Some((count, function)) = self.waits.get(&key) {
                    entity.set(&format!("wait.{}", key.1), count / self.samples);
                    entity.texts.insert("waits_in".to_owned(), function.clone());
                }
            }
        }
        Some(entity)
    }

    /// Returns the numbers of the ancestors of a process and of itself, each between spaces: ` 12 1
    /// `.
    fn list_ancestors(&self, pid: u32, parent: u32) -> String {
        let mut text = format!("{pid}");
        let mut next = parent;
        for _ in 0..32 {
            if next == 0 {
                break;
            }
            text.push_str(&format!(" {next}"));
            next = self.all.get(&next).map_or(0, |last| last.parent);
        }
        text
    }

    /// Returns the groups of the selected processes with their parent groups, and the group in
    /// question.
    pub(super) fn group_paths(&self, thing: &WatchSubject) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        let asked = match thing {
            WatchSubject::Group(path) => Some(path),
            _ => None,
        };
        for path in self.groups.iter().chain(asked) {
            let mut rest = path.as_str();
            while !rest.is_empty() && rest != "/" {
                paths.insert(rest.to_owned());
                rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
            }
        }
        paths
    }
}

fn list_threads(reader: &mut MachineReader, pid: u32) -> Vec<u32> {
    let names = reader.names(&format!("/proc/{pid}/task"));
    let threads = names.iter().filter_map(|name| name.parse().ok());
    threads.take(MOST_THREADS).collect()
}

/// Returns the CPU time of this thread in seconds.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
