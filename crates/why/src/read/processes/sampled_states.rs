//! States of threads that were sampled since the last look: which waited, for what, and which were ready to run.

use super::super::MachineReader;
use super::super::sleep_class::{
    FUTEX, WRITE, classify_sleep, describe_sleep, is_timer, is_write, parse_contended_lock,
    parse_descriptor,
};
use super::super::wait_class::{classify_stack, parse_stack};
use super::stat_line::StatLine;
use super::{SAMPLED_THREADS, list_threads};
use crate::machine_look::Entity;
use std::collections::{BTreeMap, BTreeSet};

/// Waiting of one kind.
#[derive(Default)]
struct SampledWait {
    /// Threads that were seen to wait, over all samples.
    threads: f64,
    function: String,
}

/// States since the last look.
#[derive(Default)]
pub(super) struct SampledStates {
    /// Number of samples of each process.
    samples: BTreeMap<u32, f64>,
    /// Number of samples of all processes, over all looks.
    turn: usize,
    /// Threads of each process at the last look.
    threads: BTreeMap<u32, Vec<u32>>,
    waits: BTreeMap<(u32, &'static str), SampledWait>,
    ready: BTreeMap<u32, f64>,
    timers: BTreeMap<u32, f64>,
    futexes: BTreeMap<u32, f64>,
    /// Threads asleep by the kernel function that they sleep in, of processes that are looked at in each sample.
    sleeps: BTreeMap<u32, BTreeMap<String, f64>>,
    /// What the last blocked call of a process works on: `pipe:[17]`.
    blocked_on: BTreeMap<u32, String>,
    /// Processes whose sleeps are looked at in each sample; of others in the sample of a look only.
    close: BTreeSet<u32>,
}

impl SampledStates {
    /// Begins to count anew; `close` are processes whose sleeps are looked at in each sample.
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

    /// Begins a sample. In that of a look the threads of each process are listed anew.
    pub(super) fn begin(&mut self, is_look: bool) {
        self.turn += 1;
        if is_look {
            self.threads.clear();
        }
    }

    /// Threads of a process at the last look.
    pub(super) fn threads_of(&mut self, reader: &mut MachineReader, pid: u32) -> &[u32] {
        let known = self.threads.entry(pid);
        known.or_insert_with(|| list_threads(reader, pid))
    }

    /// Samples the threads of a process. `is_look` is the sample of a look.
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

    /// Samples one thread, whose waiting counts for `pid`.
    pub(super) fn add_thread(
        &mut self,
        reader: &mut MachineReader,
        pid: u32,
        dir: &str,
        weight: f64,
        is_close: bool,
    ) {
        let line = reader.text(&format!("{dir}/stat"));
        let stat = line.and_then(|line| StatLine::parse(&line));
        match stat.map(|stat| (stat.state, stat.is_kernel())) {
            Some(('D', _)) => self.add_wait(reader, pid, dir, weight),
            Some(('R', _)) => *self.ready.entry(pid).or_default() += weight,
            Some(('S', false)) if is_close => self.add_sleep(reader, pid, dir, weight),
            _ => {}
        }
    }

    /// A thread in uninterruptible sleep.
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

    /// A thread in interruptible sleep.
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

    /// Sets what was sampled of a process: threads on average.
    pub(super) fn describe(&self, pid: u32, entity: &mut Entity) {
        let Some(samples) = self.samples.get(&pid) else {
            return;
        };
        for (key, counts) in [
            ("ready", &self.ready),
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

/// The kernel function in which a task sleeps; empty when it is not shown.
pub(in crate::read) fn read_wchan(reader: &mut MachineReader, dir: &str) -> String {
    let text = reader.text(&format!("{dir}/wchan")).unwrap_or_default();
    text.trim().to_owned()
}
