//! Collects the evidence about what limited a workload, averaged over the samples that are not void. Missing evidence
//! is `None`.

use crate::sample_figures::FiguresByDirection;
use assay_model::criterion::Direction;
use assay_model::sample::{CpuDelta, RatePoint, Worker};
use assay_model::{Facts, Nanos, Planned, Sample, TargetInfo, Workload};

/// Result of a similar workload in the same run, with another queue depth or block size.
#[derive(Clone, Debug)]
pub(crate) struct SiblingResult {
    /// Name of the workload, for the evidence text.
    pub workload: String,
    /// I/Os in flight over all jobs.
    pub in_flight: u32,
    /// Bytes per I/O.
    pub block_size: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Coefficient of variation of the rate over time; `None` without a rate over time.
    pub variation: Option<f64>,
}

/// Evidence about one workload on one target.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitEvidence<'a> {
    /// Number of samples that are not void.
    pub rounds: usize,
    /// I/Os in flight over all jobs; 0 if the workload is unknown.
    pub in_flight: u32,
    /// Bytes per I/O.
    pub block_size: u64,
    pub writes: bool,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes read per second.
    pub read_per_s: f64,
    /// Bytes written per second.
    pub write_per_s: f64,
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes read and written per second.
    pub bytes_per_s: f64,
    /// Mean time of an operation in nanoseconds, submission and flush included.
    pub latency: Option<f64>,
    /// Mean time of the flush per write, and mean latency of a write with its flush, in
    /// nanoseconds.
    pub flush: Option<(f64, f64)>,
    /// CPU time of the busiest job as (user, kernel), where 1 is one full CPU.
    pub job_cpu: Option<(f64, f64)>,
    /// Busy fraction of all CPUs together, 0 to 1.
    pub machine_busy: Option<f64>,
    /// Busy fraction of the busiest CPU.
    pub busiest_cpu: Option<f64>,
    /// Fraction of CPU time stolen by the hypervisor.
    pub steal: Option<f64>,
    /// Fraction of time in which the busiest device had a request.
    pub device_busy: Option<f64>,
    /// Mean number of requests in flight at the devices.
    pub device_queue: Option<f64>,
    /// Bytes at the devices ÷ bytes at fio.
    pub device_share: Option<f64>,
    /// Whether the file system is in memory (tmpfs).
    pub memory_file_system: bool,
    /// Number of thermal throttling events of the CPUs, over all samples.
    pub throttle_events: Option<u64>,
    /// Highest temperature of a drive and its limit, in °C.
    pub celsius: Option<(f64, f64)>,
    /// Rate over time of each sample.
    pub series: Vec<&'a [RatePoint]>,
    /// Names of the physical disks below the target.
    pub disks: Vec<String>,
    /// Facts of the machine; `None` if unknown.
    pub facts: Option<&'a Facts>,
    /// Workloads of the same run with the same target, pattern and block size, and another queue depth.
    pub depths: Vec<SiblingResult>,
    /// Workloads of the same run with the same target, pattern and queue depth, and another block size.
    pub sizes: Vec<SiblingResult>,
}

impl<'a> LimitEvidence<'a> {
    /// Collects the evidence from the samples that are not void and from their figures.
    pub(crate) fn collect(
        planned: Option<&Planned>,
        target: Option<&TargetInfo>,
        facts: &'a Facts,
        samples: &[(&'a Sample, &FiguresByDirection)],
    ) -> Self {
        let over = |value: &dyn Fn(&Sample, &FiguresByDirection) -> Option<f64>| {
            let values: Vec<f64> = samples
                .iter()
                .filter_map(|(s, sides)| value(s, sides))
                .collect();
            compute_mean(&values)
        };
        let rate = |direction, bytes: bool| {
            let value = over(&|_, sides| {
                let side = sides.get(&direction)?;
                if bytes {
                    side.bytes_per_s
                } else {
                    Some(side.iops)
                }
            });
            value.unwrap_or(0.0)
        };
        let cpu =
            |value: &dyn Fn(&CpuDelta) -> f64| over(&|s, _| s.counters.cpu.as_ref().map(value));
        let throttles = || {
            samples
                .iter()
                .filter_map(|(s, _)| s.counters.throttle.as_ref())
        };
        let events: Vec<u64> = throttles().filter_map(|t| t.cpu_events).collect();
        let ramp = planned.map(|planned| planned.ramp).unwrap_or_default();
        let workload = planned.and_then(Planned::fio);
        // The effect of a command or a request on a file system is unknown.
        let on_file = workload.is_some() || planned.is_none();
        let target = target.filter(|_| on_file);
        let fs = target.and_then(|target| target.fs_type.as_deref());
        Self {
            rounds: samples.len(),
            in_flight: workload.map_or(0, Workload::in_flight),
            block_size: workload.map_or(0, |workload| workload.block_size.0),
            writes: workload.is_none_or(|workload| workload.pattern.writes()),
            iops: rate(Direction::All, false),
            bytes_per_s: rate(Direction::All, true),
            read_per_s: rate(Direction::Read, true),
            write_per_s: rate(Direction::Write, true),
            read_iops: rate(Direction::Read, false),
            write_iops: rate(Direction::Write, false),
            latency: compute_mean_latency(samples),
            flush: compute_mean_flush(samples),
            job_cpu: over(&|s, _| Some(find_busiest_cpu_use(&s.workers)?.0))
                .zip(over(&|s, _| Some(find_busiest_cpu_use(&s.workers)?.1))),
            machine_busy: cpu(&|cpu| (1.0 - cpu.idle - cpu.iowait - cpu.steal).max(0.0)),
            busiest_cpu: cpu(&|cpu| cpu.busiest),
            steal: cpu(&|cpu| cpu.steal),
            device_busy: over(&|s, _| find_busiest_device(s, ramp, |busy, _| busy)),
            device_queue: over(&|s, _| find_busiest_device(s, ramp, |_, queue| queue)),
            device_share: compute_device_share(samples),
            memory_file_system: matches!(fs, Some("tmpfs" | "ramfs")),
            throttle_events: (!events.is_empty()).then(|| events.iter().sum()),
            celsius: throttles()
                .filter_map(|t| t.nvme_celsius)
                .max_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1))),
            series: samples.iter().map(|(s, _)| s.series.as_slice()).collect(),
            disks: target.map_or_else(Vec::new, |target| target.disks.clone()),
            facts: Some(facts),
            depths: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Returns the fastest sibling with more I/Os in flight.
    pub(crate) fn best_deeper(&self) -> Option<&SiblingResult> {
        let deeper = self
            .depths
            .iter()
            .filter(|other| other.in_flight > self.in_flight);
        deeper.max_by(|a, b| a.iops.total_cmp(&b.iops))
    }
}

/// Computes the mean time of an operation over all samples. Each operation counts once. Therefore rate × latency is the
/// mean number of operations in flight, even if the samples differ. The mean of the samples' means does not have this
/// property.
fn compute_mean_latency(samples: &[(&Sample, &FiguresByDirection)]) -> Option<f64> {
    let of_each = samples.iter().filter_map(|(sample, sides)| {
        let rate = sides.get(&Direction::All)?.iops;
        Some((rate, compute_service_time(&sample.workers)?))
    });
    let (rates, times) = of_each.fold((0.0, 0.0), |(rates, times), (rate, time)| {
        (rates + rate, times + rate * time)
    });
    (rates > 0.0).then(|| times / rates)
}

/// Computes the mean time of the flush of a write, and the mean time of a write with its flush, over all samples. Each
/// write counts once, as in the rate and the latency that are printed beside these times. A slow sample contains few
/// writes and so has little weight.
fn compute_mean_flush(samples: &[(&Sample, &FiguresByDirection)]) -> Option<(f64, f64)> {
    let of_each = samples.iter().filter_map(|(_, sides)| {
        let write = sides.get(&Direction::Write)?;
        Some((
            write.iops,
            compute_flush_time(sides)?,
            write.latency.mean()?,
        ))
    });
    let (rates, flushes, writes) = of_each.fold((0.0, 0.0, 0.0), |sum, (rate, flush, write)| {
        (sum.0 + rate, sum.1 + rate * flush, sum.2 + rate * write)
    });
    (rates > 0.0).then(|| (flushes / rates, writes / rates))
}

pub(crate) fn compute_mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Computes the time of all flushes ÷ number of writes, in nanoseconds.
fn compute_flush_time(sides: &FiguresByDirection) -> Option<f64> {
    let flush = &sides.get(&Direction::Flush)?.latency;
    let writes = sides.get(&Direction::Write)?.latency.n;
    let share = (flush.n as f64 / writes.max(1) as f64).min(1.0);
    Some(flush.mean()? * share)
}

/// Computes the time of all operations and flushes ÷ number of operations, in nanoseconds. It
/// includes the submission, which the completion latency leaves out and which is significant on a
/// fast drive.
fn compute_service_time(jobs: &[Worker]) -> Option<f64> {
    let (mut time, mut ios) = (0.0, 0.0);
    for job in jobs {
        for (_, io) in job.asked() {
            let mean = [io.lat.mean, io.clat.mean]
                .into_iter()
                .find(|mean| *mean > 0.0)?;
            time += io.count as f64 * mean;
            ios += io.count as f64;
        }
        time += job
            .flush()
            .map_or(0.0, |flushes| flushes.count as f64 * flushes.lat.mean);
    }
    (ios > 0.0).then(|| time / ios)
}

/// Returns user and kernel time of the job with the highest sum of both.
fn find_busiest_cpu_use(jobs: &[Worker]) -> Option<(f64, f64)> {
    let cpu = |job: &Worker| (job.usr_cpu / 100.0, job.sys_cpu / 100.0);
    let most = jobs
        .iter()
        .map(cpu)
        .max_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)))?;
    // Old versions do not print it.
    (most.0 + most.1 > 0.0).then_some(most)
}

/// Computes the busy fraction of the busiest device and the number of requests in all devices,
/// while the load ran. The counters also span the load generator's start and end, which would make
/// a busy device look idle in a short sample.
fn find_busiest_device(sample: &Sample, ramp: Nanos, pick: fn(f64, f64) -> f64) -> Option<f64> {
    let counters = &sample.counters;
    let measured = sample.workers.iter().map(|job| job.runtime.0).max();
    let load = measured.unwrap_or(0).saturating_add(ramp.0);
    let elapsed = match load {
        0 => counters.elapsed,
        load => Nanos(load.min(counters.elapsed.0)),
    };
    let elapsed = elapsed.as_secs_f64() * 1e3;
    if counters.devices.is_empty() || elapsed <= 0.0 {
        return None;
    }
    let busy = counters.devices.iter().map(|device| device.busy_ms).max()?;
    let queue: u64 = counters
        .devices
        .iter()
        .map(|device| device.weighted_ms)
        .sum();
    Some(pick(
        (busy as f64 / elapsed).min(1.0),
        queue as f64 / elapsed,
    ))
}

/// Computes bytes at the devices ÷ bytes of fio, over all samples with counters of devices. The counters of the devices
/// include the ramp time, so the result can be too high.
fn compute_device_share(samples: &[(&Sample, &FiguresByDirection)]) -> Option<f64> {
    let moved = |bytes: u64| bytes as f64;
    let of_each = samples.iter().filter_map(|(sample, _)| {
        let devices = &sample.counters.devices;
        let device: f64 = devices
            .iter()
            .map(|d| moved(d.read_bytes.0) + moved(d.write_bytes.0))
            .sum();
        let stats = sample
            .workers
            .iter()
            .flat_map(|job| job.read().into_iter().chain(job.write()));
        let fio: f64 = stats.map(|io| moved(io.bytes.0)).sum();
        (!devices.is_empty() && fio > 0.0).then_some((device, fio))
    });
    let (device, fio) = of_each.fold((0.0, 0.0), |(device, fio), one| {
        (device + one.0, fio + one.1)
    });
    (fio > 0.0).then(|| device / fio)
}
