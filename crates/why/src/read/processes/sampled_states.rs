//! Thread states that were sampled since the last snapshot: which threads waited, for what, and which were ready to
//! run.

use super::super::MachineReader;
use super::super::sleep_class::{
    FUTEX, OPEN, WRITE, classify_sleep, describe_sleep, is_timer, is_write, opens_to_write,
    parse_contended_lock, parse_descriptor,
};
use super::super::wait_class::{LOCK, classify_stack, name_lock, parse_stack};
use super::stat_line::parse_state;
use super::{SAMPLED_THREADS, list_threads};
use crate::machine_snapshot::Entity;
use std::collections::{BTreeMap, BTreeSet};

/// Number of sampled threads that wait for one reason, and the kernel function in which they wait.
#[derive(Default)]
struct SampledWait {
    /// Number of waiting threads, summed over all samples.
    threads: f64,
    function: String,
}

/// Thread states sampled since the last snapshot.
#[derive(Default)]
pub(super) struct SampledStates {
    /// Number of samples of each process since the last snapshot.
    samples: BTreeMap<u32, f64>,
    /// Number of samples since the start of the watch.
    turn: usize,
    /// Threads of each process at the last snapshot.
    threads: BTreeMap<u32, Vec<u32>>,
    waits: BTreeMap<(u32, &'static str), SampledWait>,
    ready: BTreeMap<u32, f64>,
    timers: BTreeMap<u32, f64>,
    /// Threads that a debugger or strace has stopped.
    traced: BTreeMap<u32, f64>,
    futexes: BTreeMap<u32, f64>,
    /// For processes in `close`: number of sleeping threads, by what they wait for (see [`describe_sleep`]).
    sleeps: BTreeMap<u32, BTreeMap<String, f64>>,
    /// File on which the last blocked system call of a process works: `pipe:[17]`.
    blocked_on: BTreeMap<u32, String>,
    /// Processes whose sleeping threads are examined in every sample. Those of other processes are examined only in the
    /// sample of a snapshot.
    close: BTreeSet<u32>,
}

impl SampledStates {
    /// Resets the counts after a snapshot. `close` are the processes whose sleeping threads are examined in every
    /// sample.
    pub(super) fn restart(&mut self, close: BTreeSet<u32>) {
        let waiting = self.waits.keys().map(|(pid, _)| *pid);
        let close = close.into_iter().chain(waiting).collect();
        *self = Self {
            close,
            turn: self.turn,
            threads: std::mem::take(&mut self.threads),
            ..Self::default()
        };
    }

    /// Begins a sample. `is_look` marks the sample of a snapshot, in which the threads of each process are listed
    /// again.
    pub(super) fn begin(&mut self, is_look: bool) {
        self.turn += 1;
        if is_look {
            self.threads.clear();
        }
    }

    /// Returns the threads of a process as of the last snapshot.
    pub(super) fn threads_of(&mut self, reader: &mut MachineReader, pid: u32) -> &[u32] {
        let known = self.threads.entry(pid);
        known.or_insert_with(|| list_threads(reader, pid))
    }

    /// Samples the threads of a process. `is_look` marks the sample of a snapshot.
    pub(super) fn add_process(&mut self, reader: &mut MachineReader, pid: u32, is_look: bool) {
        let threads = self.threads_of(reader, pid).to_owned();
        *self.samples.entry(pid).or_default() += 1.0;
        // A part of many threads stands for all.
        let part = threads.len().min(SAMPLED_THREADS);
        let weight = threads.len() as f64 / part.max(1) as f64;
        let first = self.turn * part % threads.len().max(1);
        let is_close = is_look || self.close.contains(&pid);
        for thread in threads.iter().cycle().skip(first).take(part) {
            let dir = format!("/proc/{pid}/task/{thread}");
            self.add_thread(reader, pid, &dir, weight, is_close);
        }
    }

    /// Samples one thread. If it waits, this counts for process `pid`.
    pub(super) fn add_thread(
        &mut self,
        reader: &mut MachineReader,
        pid: u32,
        dir: &str,
        weight: f64,
        is_close: bool,
    ) {
        let line = reader.text(&format!("{dir}/stat"));
        match line.and_then(|line| parse_state(&line)) {
            Some(('D', _)) => self.add_wait(reader, pid, dir, weight),
            Some(('t', _)) => *self.traced.entry(pid).or_default() += weight,
            Some(('R', _)) => *self.ready.entry(pid).or_default() += weight,
            Some(('S', false)) if is_close => self.add_sleep(reader, pid, dir, weight),
            _ => {}
        }
    }

    /// Counts a thread in uninterruptible sleep.
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
                let channel = read_wchan(reader, dir);
                (classify_stack(&[channel.as_str()]).0, channel)
            }
        };
        self.count(pid, class, weight, function);
    }

    /// Counts a thread in interruptible sleep.
    fn add_sleep(&mut self, reader: &mut MachineReader, pid: u32, dir: &str, weight: f64) {
        let wchan = read_wchan(reader, dir);
        if self.close.contains(&pid) {
            let sleeps = self.sleeps.entry(pid).or_default();
            *sleeps.entry(describe_sleep(&wchan)).or_default() += weight;
        }
        if is_timer(&wchan) {
            *self.timers.entry(pid).or_default() += weight;
            return;
        }
        let Some(class) = classify_sleep(&wchan) else {
            return;
        };
        let call = reader.text(&format!("{dir}/syscall")).unwrap_or_default();
        if class == FUTEX {
            *self.futexes.entry(pid).or_default() += weight;
            if parse_contended_lock(&call).is_some() {
                self.count(pid, "user-lock", weight, wchan);
            }
            return;
        }
        let class = match class {
            WRITE if !is_write(&call) => return,
            WRITE => "slow-reader",
            OPEN if !opens_to_write(&call) => return,
            OPEN => "fifo-reader",
            class => class,
        };
        if class == "slow-reader"
            && let Some(number) = parse_descriptor(&call)
            && let Some(link) = reader.link(&format!("/proc/{pid}/fd/{number}"))
        {
            self.blocked_on.insert(pid, link);
        }
        self.count(pid, class, weight, wchan);
    }

    fn count(&mut self, pid: u32, class: &'static str, weight: f64, function: String) {
        let wait = self.waits.entry((pid, class)).or_default();
        wait.threads += weight;
        wait.function = function;
    }

    /// Adds the sampled states of a process to its entity, as average numbers of threads.
    pub(super) fn describe(&self, pid: u32, entity: &mut Entity) {
        let Some(samples) = self.samples.get(&pid) else {
            return;
        };
        for (key, counts) in [
            ("ready", &self.ready),
            ("traced", &self.traced),
            ("asleep.timer", &self.timers),
            ("asleep.futex", &self.futexes),
        ] {
            if let Some(count) = counts.get(&pid) {
                entity.set(key, count / samples);
            }
        }
        for ((_, class), wait) in self.waits.range((pid, "")..(pid + 1, "")) {
            entity.set(&format!("wait.{class}"), wait.threads / samples);
            let function = wait.function.clone();
            if *class == LOCK
                && let Some(protected) = name_lock(&function)
            {
                entity
                    .texts
                    .insert("lock_of".to_owned(), protected.to_owned());
            }
            entity.texts.insert("waits_in".to_owned(), function);
        }
        for (place, threads) in self.sleeps.get(&pid).into_iter().flatten() {
            entity.set(&format!("asleep_in.{place}"), threads / samples);
        }
        if let Some(link) = self.blocked_on.get(&pid) {
            entity.texts.insert("blocked_on".to_owned(), link.clone());
        }
    }
}

/// Returns the kernel function in which a task sleeps; empty if the kernel does not show it.
pub(in crate::read) fn read_wchan(reader: &mut MachineReader, dir: &str) -> String {
    let text = reader.text(&format!("{dir}/wchan")).unwrap_or_default();
    text.trim().to_owned()
}
