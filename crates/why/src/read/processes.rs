//! Processes. If there are many, a scan of all processes is rare. Busy and waiting processes are tracked: they are read
//! at each snapshot, with threads, transfers, control group and cause of waiting.

mod database_sessions;
mod lasting;
mod part_of_machine;
mod process_scan;
mod quiet_processes;
mod sampled_states;
mod stat_line;
mod still_processes;
mod user_tasks;
mod users_of_path;

use super::cpu::TICKS;
use super::{MachineReader, parse_pairs};
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use assay_facts::qemu;
use lasting::{Lasting, read_lasting};
use process_scan::ProcessScan;
use quiet_processes::{QuietProcesses, SleepingProcess};
use sampled_states::SampledStates;
pub(super) use sampled_states::read_wchan;
use stat_line::StatLine;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use still_processes::StillProcesses;
use user_tasks::UserTasks;

/// Maximum number of processes in a snapshot.
const MOST: usize = 64;
/// Maximum number of threads that are read for a process.
const MOST_THREADS: usize = 64;
/// Maximum number of threads of a process in one sample; the next sample continues with other threads.
const SAMPLED_THREADS: usize = 8;
/// Bytes of a list of children from which it is read in thorough looks only: the kernel walks it again for each page.
const LONG_LIST: usize = 4096;
/// Number of scans after which an idle process is no longer tracked.
const PATIENCE: u32 = 10;
/// CPU time in seconds after which a scan goes on in the next snapshot: the first scan, and a later one.
const SCAN_SECONDS: [f64; 2] = [0.5, 0.25];
/// Number of processes between two readings of the clock.
const CLOCK_EVERY: usize = 64;
/// Fraction of one CPU that scans of all processes may use.
const SCAN_SHARE: f64 = 0.01;

/// Last known values of a process.
#[derive(Clone, Debug)]
struct Last {
    start: u64,
    parent: u32,
    busy: u64,
}

/// Children of a process at the last snapshot.
struct Children {
    list: String,
    changes: bool,
    /// CPU time of the children that have ended, in ticks.
    ended_ticks: u64,
}

/// All processes, and the tracked ones.
#[derive(Default)]
pub(super) struct ProcessTable {
    all: BTreeMap<u32, Last>,
    tracked: BTreeSet<u32>,
    /// Number of scans since each process was last busy.
    idle: BTreeMap<u32, u32>,
    lasting: BTreeMap<u32, Lasting>,
    /// Number of snapshots until the next scan of all processes.
    pause: u32,
    /// A scan that goes on.
    scan: Option<ProcessScan>,
    /// Thread states sampled since the last snapshot.
    states: SampledStates,
    /// Start time of each process, and whether it belongs to the watched subject.
    asked: BTreeMap<u32, (u64, bool)>,
    quiet: QuietProcesses,
    /// Number of files below the watched path that each process uses.
    uses: BTreeMap<u32, f64>,
    /// Processes for which others wait.
    wanted: BTreeSet<u32>,
    users: UserTasks,
    children: BTreeMap<u32, Children>,
    groups: BTreeSet<String>,
    still: StillProcesses,
}

impl ProcessTable {
    /// Samples the threads of the tracked processes: which of them wait, and for what.
    pub(super) fn sample_states(&mut self, reader: &mut MachineReader) {
        self.sample(reader, false);
    }

    fn sample(&mut self, reader: &mut MachineReader, is_look: bool) {
        self.states.begin(is_look);
        for pid in self.tracked.clone() {
            let children = self.children.get(&pid);
            let starts_some = children.is_some_and(|children| children.changes);
            if is_look || starts_some || !self.still.is_still(pid) {
                self.states.add_process(reader, pid, is_look);
            }
            if starts_some {
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
            self.states.add_thread(reader, pid, &dir, 1.0, false);
        }
    }

    /// Records whether the children of a process change between snapshots. Returns whether all of them are new, and
    /// their number.
    fn note_children(
        &mut self,
        reader: &mut MachineReader,
        pid: u32,
        ended_ticks: u64,
    ) -> (bool, usize) {
        if let Some(before) = self.children.get(&pid)
            && before.list.len() >= LONG_LIST
            && !reader.is_thorough()
        {
            return (false, before.list.split_ascii_whitespace().count());
        }
        let now = reader
            .text(&format!("/proc/{pid}/task/{pid}/children"))
            .unwrap_or_default();
        let before = self.children.get(&pid);
        let changes = before.is_some_and(|before| before.list != now);
        let turnover = before.is_some_and(|before| {
            // Children of threads other than the first are not in the list.
            let is_seen = !(before.list.trim().is_empty() && now.trim().is_empty());
            is_seen && ended_ticks > before.ended_ticks && shares_no_word(&before.list, &now)
        });
        let count = now.split_ascii_whitespace().count();
        let children = Children {
            changes: changes && now.len() < LONG_LIST,
            list: now,
            ended_ticks,
        };
        self.children.insert(pid, children);
        (turnover, count)
    }

    /// Reads the processes for a snapshot.
    pub(super) fn read(&mut self, reader: &mut MachineReader, look: &mut MachineSnapshot) {
        self.sample(reader, true);
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
        if !self.all.is_empty() {
            look.set("processes", self.all.len() as f64);
        }
        let tracked = &self.tracked;
        self.children.retain(|pid, _| tracked.contains(pid));
        self.still.retain(tracked);
        let asked = self.asked.iter().filter(|(_, (_, asked))| *asked);
        let asked = asked.map(|(pid, _)| *pid).collect();
        self.states.restart(asked);
    }

    /// Scans all processes and selects those to track. A scan of very many processes goes on in the next snapshot.
    fn scan(&mut self, reader: &mut MachineReader, look: &mut MachineSnapshot) {
        let begin = thread_seconds();
        let mut scan = match self.scan.take() {
            Some(scan) => scan,
            None => {
                self.users.restart();
                ProcessScan::begin(reader)
            }
        };
        let most = SCAN_SECONDS[usize::from(!self.all.is_empty())];
        while let Some(pid) = scan.next_pid() {
            self.scan_process(reader, pid, &mut scan);
            let is_over = || thread_seconds() - begin > most || reader.is_late();
            if scan.read.is_multiple_of(CLOCK_EVERY) && is_over() {
                break;
            }
        }
        scan.cost += thread_seconds() - begin;
        match scan.is_complete() {
            true => self.finish_scan(reader, look, scan),
            false => self.scan = Some(scan),
        }
    }

    /// Reads one process of a scan.
    fn scan_process(&mut self, reader: &mut MachineReader, pid: u32, scan: &mut ProcessScan) {
        let Some(text) = reader.text_once(&format!("/proc/{pid}/stat")) else {
            return;
        };
        let Some(stat) = StatLine::parse(&text) else {
            return;
        };
        *scan.states.entry(stat.state).or_default() += 1.0;
        if stat.state == 'Z' {
            *scan.zombies.entry(stat.parent).or_default() += 1;
        }
        self.users.count(reader, pid, stat.threads);
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
        let own = std::process::id();
        let asked = self.is_asked(reader, pid, &stat) || self.wanted.contains(&pid);
        if stat.state == 'S' && !stat.is_kernel() && !self.tracked.contains(&pid) && pid != own {
            scan.sleeping.push(SleepingProcess {
                pid,
                start: stat.start,
                threads: stat.threads,
                is_database: database_sessions::is_session(&stat.name),
            });
        }
        if (rank > 0 || asked || qemu::is_qemu(&stat.name)) && pid != own {
            scan.ranked.push((rank | u64::from(asked) << 41, pid));
        }
        let last = Last {
            start: stat.start,
            parent: stat.parent,
            busy,
        };
        scan.all.insert(pid, last);
    }

    /// Selects the processes to track after a scan.
    fn finish_scan(
        &mut self,
        reader: &mut MachineReader,
        look: &mut MachineSnapshot,
        scan: ProcessScan,
    ) {
        let is_first = self.all.is_empty();
        let ProcessScan {
            all,
            mut ranked,
            states,
            mut sleeping,
            zombies,
            cost,
            ..
        } = scan;
        self.all = all;
        self.users.finish();
        sleeping.sort_unstable_by_key(|one| one.pid);
        for pid in self.quiet.choose(reader, &sleeping, &mut self.users) {
            ranked.push((1 << 30, pid));
        }
        let all = &self.all;
        self.asked.retain(|pid, _| all.contains_key(pid));
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
        let parent = zombies.iter().max_by_key(|(_, count)| **count);
        if let Some((parent, count)) = parent {
            look.set("zombies", f64::from(*count));
            let label = reader.label_process(*parent);
            look.texts.insert("zombies_of".to_owned(), label);
        }
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
        self.groups.extend(lasting.groups.iter().cloned());
        entity.set("cpu_total", stat.cpu_ticks as f64 / TICKS);
        entity.set("system_total", stat.system_ticks as f64 / TICKS);
        entity.set("children_cpu_total", stat.children_ticks as f64 / TICKS);
        entity.set("majfaults_total", stat.major_faults as f64);
        entity.set("memory", stat.resident_pages as f64 * 4096.0);
        entity.set("threads", stat.threads as f64);
        if stat.is_kernel() {
            entity.set("kernel", 1.0);
        }
        if let Some(count) = self.uses.get(&pid).filter(|count| **count > 0.0) {
            entity.set("uses_path", *count);
        }
        entity.set("nice", stat.nice as f64);
        if stat.is_low_priority() {
            entity.set("low_priority", 1.0);
        }
        if let Some(cpus) = lasting.cpus_allowed {
            entity.set("cpus_allowed", cpus);
        }
        self.users.describe(&lasting, &mut entity);
        database_sessions::describe(reader, pid, &mut entity);
        entity.set("started", stat.start as f64 / TICKS);
        entity.set(
            "stopped",
            f64::from(u8::from(matches!(stat.state, 'T' | 't'))),
        );
        let (mut queued, mut switches) = (0.0, 0.0);
        let threads = self.states.threads_of(reader, pid).to_owned();
        for thread in &threads {
            let text = reader.text(&format!("/proc/{pid}/task/{thread}/schedstat"));
            let text = text.unwrap_or_default();
            let mut words = text.split_ascii_whitespace().skip(1);
            let mut next = || words.next().and_then(|word| word.parse::<f64>().ok());
            queued += next().unwrap_or(0.0) / 1e9;
            switches += next().unwrap_or(0.0);
        }
        if stat.state == 't' {
            describe_tracer(reader, pid, &mut entity);
        }
        self.still.note(pid, stat.state, switches, threads.len());
        entity.set("switches_total", switches);
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
            if let Some(limit) = lasting.limits.files {
                entity.set("files.limit", limit);
            }
        }
        if !stat.is_kernel() {
            let (turnover, children) = self.note_children(reader, pid, stat.children_ticks);
            entity.set("children", children as f64);
            entity.set("children.turnover", f64::from(u8::from(turnover)));
        }
        self.states.describe(pid, &mut entity);
        Some(entity)
    }
}

/// Adds the process that traces a process, from a look in which it has stopped it.
fn describe_tracer(reader: &mut MachineReader, pid: u32, entity: &mut Entity) {
    let text = reader.text(&format!("/proc/{pid}/status"));
    let text = text.unwrap_or_default();
    let tracer = text
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer = tracer.and_then(|word| word.trim().parse::<u32>().ok());
    if let Some(tracer) = tracer.filter(|tracer| *tracer != 0) {
        let label = reader.label_process(tracer);
        entity.texts.insert("tracer".to_owned(), label);
        entity
            .texts
            .insert("tracer_pid".to_owned(), tracer.to_string());
    }
}

/// Returns whether no word is in both lists.
fn shares_no_word(one: &str, other: &str) -> bool {
    let words: HashSet<&str> = one.split_ascii_whitespace().collect();
    !other
        .split_ascii_whitespace()
        .any(|word| words.contains(word))
}

fn list_threads(reader: &mut MachineReader, pid: u32) -> Vec<u32> {
    let names = reader.names(&format!("/proc/{pid}/task"));
    let threads = names.iter().filter_map(|name| name.parse().ok());
    threads.take(MOST_THREADS).collect()
}

/// Returns the CPU time of this thread in seconds.
pub(super) fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
