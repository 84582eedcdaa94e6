-- As migration 6 of SQLite, with times as timestamptz and yes or no as boolean.
ALTER TABLE assay.run ADD COLUMN assay text;
ALTER TABLE assay.run ADD COLUMN kernel text;
ALTER TABLE assay.run ADD COLUMN origin text;
ALTER TABLE assay.run ADD COLUMN tabled bigint;
CREATE INDEX run_tabled ON assay.run (id) WHERE tabled IS NULL;
ALTER TABLE assay.trial ADD COLUMN assay text;
ALTER TABLE assay.trial ADD COLUMN kernel text;
ALTER TABLE assay.trial ADD COLUMN tabled bigint;
CREATE INDEX trial_tabled ON assay.trial (id) WHERE tabled IS NULL;
ALTER TABLE assay.sample ADD COLUMN round bigint;
ALTER TABLE assay.sample ADD COLUMN workload text;
ALTER TABLE assay.sample ADD COLUMN target text;
ALTER TABLE assay.sample ADD COLUMN started timestamptz;
ALTER TABLE assay.sample ADD COLUMN wall_ns bigint;
ALTER TABLE assay.sample ADD COLUMN outcome text;
ALTER TABLE assay.sample ADD COLUMN validity text;
ALTER TABLE assay.sample ADD COLUMN doubts text;
ALTER TABLE assay.trial_slot ADD COLUMN slot bigint;
ALTER TABLE assay.trial_slot ADD COLUMN round bigint;
ALTER TABLE assay.trial_slot ADD COLUMN workload text;
ALTER TABLE assay.trial_slot ADD COLUMN target text;
ALTER TABLE assay.trial_slot ADD COLUMN started timestamptz;
ALTER TABLE assay.trial_slot ADD COLUMN wall_ns bigint;
ALTER TABLE assay.trial_slot ADD COLUMN outcome text;
ALTER TABLE assay.trial_slot ADD COLUMN validity text;
ALTER TABLE assay.trial_slot ADD COLUMN doubts text;

CREATE TABLE assay.metric (
  id   bigint PRIMARY KEY,
  name text NOT NULL UNIQUE,
  unit text NOT NULL
);
INSERT INTO assay.metric (id, name, unit) VALUES
  (0, 'iops', 'per_s'),
  (1, 'throughput', 'bytes_per_s'),
  (2, 'mean', 'ns'),
  (3, 'p50', 'ns'),
  (4, 'p90', 'ns'),
  (5, 'p95', 'ns'),
  (6, 'p99', 'ns'),
  (7, 'p99.9', 'ns'),
  (8, 'p99.99', 'ns'),
  (9, 'max', 'ns'),
  (10, 'read.iops', 'per_s'),
  (11, 'read.throughput', 'bytes_per_s'),
  (12, 'read.mean', 'ns'),
  (13, 'read.p50', 'ns'),
  (14, 'read.p90', 'ns'),
  (15, 'read.p95', 'ns'),
  (16, 'read.p99', 'ns'),
  (17, 'read.p99.9', 'ns'),
  (18, 'read.p99.99', 'ns'),
  (19, 'read.max', 'ns'),
  (20, 'write.iops', 'per_s'),
  (21, 'write.throughput', 'bytes_per_s'),
  (22, 'write.mean', 'ns'),
  (23, 'write.p50', 'ns'),
  (24, 'write.p90', 'ns'),
  (25, 'write.p95', 'ns'),
  (26, 'write.p99', 'ns'),
  (27, 'write.p99.9', 'ns'),
  (28, 'write.p99.99', 'ns'),
  (29, 'write.max', 'ns'),
  (30, 'flush.iops', 'per_s'),
  (31, 'flush.throughput', 'bytes_per_s'),
  (32, 'flush.mean', 'ns'),
  (33, 'flush.p50', 'ns'),
  (34, 'flush.p90', 'ns'),
  (35, 'flush.p95', 'ns'),
  (36, 'flush.p99', 'ns'),
  (37, 'flush.p99.9', 'ns'),
  (38, 'flush.p99.99', 'ns'),
  (39, 'flush.max', 'ns');

CREATE TABLE assay.figure (
  run    bigint NOT NULL,
  slot   bigint NOT NULL,
  metric bigint NOT NULL REFERENCES assay.metric (id),
  value  double precision NOT NULL,
  PRIMARY KEY (run, slot, metric),
  FOREIGN KEY (run, slot) REFERENCES assay.sample (run, slot) ON DELETE CASCADE
);

CREATE TABLE assay.trial_figure (
  trial  bigint NOT NULL,
  pair   bigint NOT NULL,
  side   text NOT NULL,
  metric bigint NOT NULL REFERENCES assay.metric (id),
  value  double precision NOT NULL,
  PRIMARY KEY (trial, pair, side, metric),
  FOREIGN KEY (trial, pair, side) REFERENCES assay.trial_slot (trial, pair, side) ON DELETE CASCADE
);

CREATE TABLE assay.run_disk (
  run bigint NOT NULL REFERENCES assay.run (id) ON DELETE CASCADE,
  at bigint NOT NULL,
  target text NOT NULL,
  target_kind text NOT NULL,
  fs_type text,
  mount_point text,
  mount_options text,
  size_bytes bigint NOT NULL,
  disk text,
  model text,
  rotational boolean,
  scheduler text,
  PRIMARY KEY (run, at)
);

CREATE TABLE assay.trial_disk (
  trial bigint NOT NULL REFERENCES assay.trial (id) ON DELETE CASCADE,
  at bigint NOT NULL,
  target text NOT NULL,
  target_kind text NOT NULL,
  fs_type text,
  mount_point text,
  mount_options text,
  size_bytes bigint NOT NULL,
  disk text,
  model text,
  rotational boolean,
  scheduler text,
  PRIMARY KEY (trial, at)
);

CREATE TABLE assay.verdict (
  trial bigint PRIMARY KEY REFERENCES assay.trial (id) ON DELETE CASCADE,
  verdict text NOT NULL,
  metric text NOT NULL,
  margin double precision NOT NULL,
  same_sides boolean NOT NULL,
  pairs bigint NOT NULL,
  left_out bigint NOT NULL,
  ratio double precision,
  low double precision,
  high double precision,
  reason text NOT NULL
);

CREATE VIEW assay.runs AS
SELECT run.uid AS run, run.id AS number, machine.uid AS machine_id, machine.name AS machine,
       run.started::timestamptz AS started, run.ended::timestamptz AS ended, run.state AS state, run.name AS plan,
       run.about AS targets, run.slots AS samples_planned,
       (SELECT count(*) FROM assay.sample WHERE sample.run = run.id) AS samples,
       run.origin AS origin, run.assay AS assay_version, run.kernel AS kernel
FROM assay.run AS run LEFT JOIN assay.machine AS machine ON machine.id = run.machine;

CREATE VIEW assay.trials AS
SELECT trial.uid AS trial, trial.id AS number, machine.uid AS machine_id, machine.name AS machine,
       trial.started::timestamptz AS started, trial.ended::timestamptz AS ended, trial.state AS state, trial.name AS advice,
       trial.about AS target, trial.assay AS assay_version, trial.kernel AS kernel,
       verdict.verdict AS verdict, verdict.metric AS metric, verdict.margin AS margin,
       verdict.same_sides AS same_sides, verdict.pairs AS pairs, verdict.left_out AS left_out,
       verdict.ratio AS ratio, verdict.low AS low, verdict.high AS high, verdict.reason AS reason
FROM assay.trial AS trial LEFT JOIN assay.machine AS machine ON machine.id = trial.machine
LEFT JOIN assay.verdict AS verdict ON verdict.trial = trial.id;

CREATE VIEW assay.figures AS
SELECT 'run' AS kind, run.uid AS record, machine.uid AS machine_id, machine.name AS machine, run.kernel AS kernel,
       CAST(NULL AS bigint) AS pair, CAST(NULL AS text) AS side, sample.round AS round, sample.slot AS slot,
       sample.workload AS workload, sample.target AS target, sample.started AS started,
       sample.wall_ns AS wall_ns, sample.outcome AS outcome, sample.validity AS validity, sample.doubts AS doubts,
       metric.name AS metric, metric.unit AS unit, figure.value AS value
FROM assay.run AS run JOIN assay.sample AS sample ON sample.run = run.id
JOIN assay.figure AS figure ON figure.run = sample.run AND figure.slot = sample.slot
JOIN assay.metric AS metric ON metric.id = figure.metric
LEFT JOIN assay.machine AS machine ON machine.id = run.machine
UNION ALL
SELECT 'trial', trial.uid, machine.uid, machine.name, trial.kernel,
       sample.pair, sample.side, sample.round, sample.slot,
       sample.workload, sample.target, sample.started,
       sample.wall_ns, sample.outcome, sample.validity, sample.doubts,
       metric.name, metric.unit, figure.value
FROM assay.trial AS trial JOIN assay.trial_slot AS sample ON sample.trial = trial.id
JOIN assay.trial_figure AS figure ON figure.trial = sample.trial AND figure.pair = sample.pair AND figure.side = sample.side
JOIN assay.metric AS metric ON metric.id = figure.metric
LEFT JOIN assay.machine AS machine ON machine.id = trial.machine;

CREATE VIEW assay.disks AS
SELECT 'run' AS kind, run.uid AS record, machine.uid AS machine_id, machine.name AS machine,
       disk.target AS target, disk.target_kind AS target_kind, disk.fs_type AS fs_type,
       disk.mount_point AS mount_point, disk.mount_options AS mount_options, disk.size_bytes AS size_bytes,
       disk.disk AS disk, disk.model AS model, disk.rotational AS rotational, disk.scheduler AS scheduler
FROM assay.run AS run JOIN assay.run_disk AS disk ON disk.run = run.id
LEFT JOIN assay.machine AS machine ON machine.id = run.machine
UNION ALL
SELECT 'trial' AS kind, trial.uid AS record, machine.uid AS machine_id, machine.name AS machine,
       disk.target AS target, disk.target_kind AS target_kind, disk.fs_type AS fs_type,
       disk.mount_point AS mount_point, disk.mount_options AS mount_options, disk.size_bytes AS size_bytes,
       disk.disk AS disk, disk.model AS model, disk.rotational AS rotational, disk.scheduler AS scheduler
FROM assay.trial AS trial JOIN assay.trial_disk AS disk ON disk.trial = trial.id
LEFT JOIN assay.machine AS machine ON machine.id = trial.machine;

-- A text of JSON without its quotes; a question mark is what could not be read.
CREATE VIEW assay.facts AS
SELECT host.name AS machine, subject.key AS fact,
       CASE WHEN value.text IS NULL THEN 'absent' WHEN value.text = '?' THEN 'unreadable' ELSE 'present' END AS state,
       CASE WHEN value.text <> '?' THEN CASE WHEN substr(value.text, 1, 1) = '"' THEN replace(replace(substr(value.text, 2, length(value.text) - 2), '\"', '"'), '\\', '\') ELSE value.text END END AS value,
       CASE WHEN value.text ~ '^[-0-9]' THEN CAST(value.text AS double precision) END AS number,
       CASE WHEN value.text <> '?' THEN value.text END AS json,
       to_timestamp(span.since) AS since,
       to_timestamp(coalesce(span.seen, host.last)) AS seen,
       to_timestamp((SELECT min(next.since) FROM assay.span AS next WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since)) AS until
FROM assay.span AS span JOIN assay.host AS host ON host.id = span.host
JOIN assay.subject AS subject ON subject.id = span.subject LEFT JOIN assay.value AS value ON value.id = span.value
WHERE subject.kind = 0;

CREATE VIEW assay.findings AS
SELECT host.name AS machine, subject.key AS finding,
       CASE WHEN strpos(subject.key, '@') > 0 THEN substr(subject.key, 1, strpos(subject.key, '@') - 1) ELSE subject.key END AS rule,
       CASE WHEN strpos(subject.key, '@') > 0 THEN substr(subject.key, strpos(subject.key, '@') + 1) END AS subject,
       CASE WHEN value.text IS NULL THEN 'gone' WHEN value.text = '?' THEN 'unreadable' ELSE 'found' END AS state,
       CASE WHEN value.text <> '?' THEN replace(value.text, '"', '') END AS severity,
       to_timestamp(span.since) AS since,
       to_timestamp(coalesce(span.seen, host.last)) AS seen,
       to_timestamp((SELECT min(next.since) FROM assay.span AS next WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since)) AS until
FROM assay.span AS span JOIN assay.host AS host ON host.id = span.host
JOIN assay.subject AS subject ON subject.id = span.subject LEFT JOIN assay.value AS value ON value.id = span.value
WHERE subject.kind = 1;
