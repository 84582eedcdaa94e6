-- Tables and views for queries. The bodies of records are compressed and only the model reads them; these rows hold
-- the same figures for SQL. They are derived: written with each record, and for older records when the store is opened
-- (`tabled` is null until then). docs/src/store-schema.md describes the views, which are the interface.
ALTER TABLE run ADD COLUMN assay TEXT;
ALTER TABLE run ADD COLUMN kernel TEXT;
ALTER TABLE run ADD COLUMN origin TEXT;
ALTER TABLE run ADD COLUMN tabled INTEGER;
CREATE INDEX run_tabled ON run (id) WHERE tabled IS NULL;
ALTER TABLE trial ADD COLUMN assay TEXT;
ALTER TABLE trial ADD COLUMN kernel TEXT;
ALTER TABLE trial ADD COLUMN tabled INTEGER;
CREATE INDEX trial_tabled ON trial (id) WHERE tabled IS NULL;
ALTER TABLE sample ADD COLUMN round INTEGER;
ALTER TABLE sample ADD COLUMN workload TEXT;
ALTER TABLE sample ADD COLUMN target TEXT;
ALTER TABLE sample ADD COLUMN started TEXT;
ALTER TABLE sample ADD COLUMN wall_ns INTEGER;
ALTER TABLE sample ADD COLUMN outcome TEXT;
ALTER TABLE sample ADD COLUMN validity TEXT;
ALTER TABLE sample ADD COLUMN doubts TEXT;
ALTER TABLE trial_slot ADD COLUMN slot INTEGER;
ALTER TABLE trial_slot ADD COLUMN round INTEGER;
ALTER TABLE trial_slot ADD COLUMN workload TEXT;
ALTER TABLE trial_slot ADD COLUMN target TEXT;
ALTER TABLE trial_slot ADD COLUMN started TEXT;
ALTER TABLE trial_slot ADD COLUMN wall_ns INTEGER;
ALTER TABLE trial_slot ADD COLUMN outcome TEXT;
ALTER TABLE trial_slot ADD COLUMN validity TEXT;
ALTER TABLE trial_slot ADD COLUMN doubts TEXT;

CREATE TABLE metric (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  unit TEXT NOT NULL
) STRICT;
INSERT INTO metric (id, name, unit) VALUES
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

CREATE TABLE figure (
  run    INTEGER NOT NULL,
  slot   INTEGER NOT NULL,
  metric INTEGER NOT NULL REFERENCES metric (id),
  value  REAL NOT NULL,
  PRIMARY KEY (run, slot, metric),
  FOREIGN KEY (run, slot) REFERENCES sample (run, slot) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE trial_figure (
  trial  INTEGER NOT NULL,
  pair   INTEGER NOT NULL,
  side   TEXT NOT NULL,
  metric INTEGER NOT NULL REFERENCES metric (id),
  value  REAL NOT NULL,
  PRIMARY KEY (trial, pair, side, metric),
  FOREIGN KEY (trial, pair, side) REFERENCES trial_slot (trial, pair, side) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE run_disk (
  run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  target TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  fs_type TEXT,
  mount_point TEXT,
  mount_options TEXT,
  size_bytes INTEGER NOT NULL,
  disk TEXT,
  model TEXT,
  rotational INTEGER,
  scheduler TEXT,
  PRIMARY KEY (run, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE trial_disk (
  trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  target TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  fs_type TEXT,
  mount_point TEXT,
  mount_options TEXT,
  size_bytes INTEGER NOT NULL,
  disk TEXT,
  model TEXT,
  rotational INTEGER,
  scheduler TEXT,
  PRIMARY KEY (trial, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdict (
  trial INTEGER PRIMARY KEY REFERENCES trial (id) ON DELETE CASCADE,
  verdict TEXT NOT NULL,
  metric TEXT NOT NULL,
  margin REAL NOT NULL,
  same_sides INTEGER NOT NULL,
  pairs INTEGER NOT NULL,
  left_out INTEGER NOT NULL,
  ratio REAL,
  low REAL,
  high REAL,
  reason TEXT NOT NULL
) STRICT;

CREATE VIEW runs AS
SELECT run.uid AS run, run.id AS number, machine.uid AS machine_id, machine.name AS machine,
       run.started AS started, run.ended AS ended, run.state AS state, run.name AS plan,
       run.about AS targets, run.slots AS samples_planned,
       (SELECT count(*) FROM sample WHERE sample.run = run.id) AS samples,
       run.origin AS origin, run.assay AS assay_version, run.kernel AS kernel
FROM run AS run LEFT JOIN machine AS machine ON machine.id = run.machine;

CREATE VIEW trials AS
SELECT trial.uid AS trial, trial.id AS number, machine.uid AS machine_id, machine.name AS machine,
       trial.started AS started, trial.ended AS ended, trial.state AS state, trial.name AS advice,
       trial.about AS target, trial.assay AS assay_version, trial.kernel AS kernel,
       verdict.verdict AS verdict, verdict.metric AS metric, verdict.margin AS margin,
       verdict.same_sides AS same_sides, verdict.pairs AS pairs, verdict.left_out AS left_out,
       verdict.ratio AS ratio, verdict.low AS low, verdict.high AS high, verdict.reason AS reason
FROM trial AS trial LEFT JOIN machine AS machine ON machine.id = trial.machine
LEFT JOIN verdict AS verdict ON verdict.trial = trial.id;

CREATE VIEW figures AS
SELECT 'run' AS kind, run.uid AS record, machine.uid AS machine_id, machine.name AS machine, run.kernel AS kernel,
       NULL AS pair, NULL AS side, sample.round AS round, sample.slot AS slot,
       sample.workload AS workload, sample.target AS target, sample.started AS started,
       sample.wall_ns AS wall_ns, sample.outcome AS outcome, sample.validity AS validity, sample.doubts AS doubts,
       metric.name AS metric, metric.unit AS unit, figure.value AS value
FROM run AS run JOIN sample AS sample ON sample.run = run.id
JOIN figure AS figure ON figure.run = sample.run AND figure.slot = sample.slot
JOIN metric AS metric ON metric.id = figure.metric
LEFT JOIN machine AS machine ON machine.id = run.machine
UNION ALL
SELECT 'trial', trial.uid, machine.uid, machine.name, trial.kernel,
       sample.pair, sample.side, sample.round, sample.slot,
       sample.workload, sample.target, sample.started,
       sample.wall_ns, sample.outcome, sample.validity, sample.doubts,
       metric.name, metric.unit, figure.value
FROM trial AS trial JOIN trial_slot AS sample ON sample.trial = trial.id
JOIN trial_figure AS figure ON figure.trial = sample.trial AND figure.pair = sample.pair AND figure.side = sample.side
JOIN metric AS metric ON metric.id = figure.metric
LEFT JOIN machine AS machine ON machine.id = trial.machine;

CREATE VIEW disks AS
SELECT 'run' AS kind, run.uid AS record, machine.uid AS machine_id, machine.name AS machine,
       disk.target AS target, disk.target_kind AS target_kind, disk.fs_type AS fs_type,
       disk.mount_point AS mount_point, disk.mount_options AS mount_options, disk.size_bytes AS size_bytes,
       disk.disk AS disk, disk.model AS model, disk.rotational AS rotational, disk.scheduler AS scheduler
FROM run AS run JOIN run_disk AS disk ON disk.run = run.id
LEFT JOIN machine AS machine ON machine.id = run.machine
UNION ALL
SELECT 'trial' AS kind, trial.uid AS record, machine.uid AS machine_id, machine.name AS machine,
       disk.target AS target, disk.target_kind AS target_kind, disk.fs_type AS fs_type,
       disk.mount_point AS mount_point, disk.mount_options AS mount_options, disk.size_bytes AS size_bytes,
       disk.disk AS disk, disk.model AS model, disk.rotational AS rotational, disk.scheduler AS scheduler
FROM trial AS trial JOIN trial_disk AS disk ON disk.trial = trial.id
LEFT JOIN machine AS machine ON machine.id = trial.machine;

-- A text of JSON without its quotes; a question mark is what could not be read.
CREATE VIEW facts AS
SELECT host.name AS machine, subject.key AS fact,
       CASE WHEN value.text IS NULL THEN 'absent' WHEN value.text = '?' THEN 'unreadable' ELSE 'present' END AS state,
       CASE WHEN value.text <> '?' THEN CASE WHEN substr(value.text, 1, 1) = '"' THEN replace(replace(substr(value.text, 2, length(value.text) - 2), '\"', '"'), '\\', '\') ELSE value.text END END AS value,
       CASE WHEN value.text GLOB '[-0-9]*' THEN CAST(value.text AS REAL) END AS number,
       CASE WHEN value.text <> '?' THEN value.text END AS json,
       strftime('%Y-%m-%dT%H:%M:%SZ', span.since, 'unixepoch') AS since,
       strftime('%Y-%m-%dT%H:%M:%SZ', coalesce(span.seen, host.last), 'unixepoch') AS seen,
       strftime('%Y-%m-%dT%H:%M:%SZ', (SELECT min(next.since) FROM span AS next WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since), 'unixepoch') AS until
FROM span AS span JOIN host AS host ON host.id = span.host
JOIN subject AS subject ON subject.id = span.subject LEFT JOIN value AS value ON value.id = span.value
WHERE subject.kind = 0;

CREATE VIEW findings AS
SELECT host.name AS machine, subject.key AS finding,
       CASE WHEN instr(subject.key, '@') > 0 THEN substr(subject.key, 1, instr(subject.key, '@') - 1) ELSE subject.key END AS rule,
       CASE WHEN instr(subject.key, '@') > 0 THEN substr(subject.key, instr(subject.key, '@') + 1) END AS subject,
       CASE WHEN value.text IS NULL THEN 'gone' WHEN value.text = '?' THEN 'unreadable' ELSE 'found' END AS state,
       CASE WHEN value.text <> '?' THEN replace(value.text, '"', '') END AS severity,
       strftime('%Y-%m-%dT%H:%M:%SZ', span.since, 'unixepoch') AS since,
       strftime('%Y-%m-%dT%H:%M:%SZ', coalesce(span.seen, host.last), 'unixepoch') AS seen,
       strftime('%Y-%m-%dT%H:%M:%SZ', (SELECT min(next.since) FROM span AS next WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since), 'unixepoch') AS until
FROM span AS span JOIN host AS host ON host.id = span.host
JOIN subject AS subject ON subject.id = span.subject LEFT JOIN value AS value ON value.id = span.value
WHERE subject.kind = 1;
