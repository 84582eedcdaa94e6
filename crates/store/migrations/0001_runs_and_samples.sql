-- Runs and their samples. `body` is the whole value as JSON, compressed with zstd: the source of
-- truth. The other columns repeat what listing and looking up need, so that no body is read for it.

CREATE TABLE runs (
    -- AUTOINCREMENT: the number of a deleted run is not given to another one.
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    uid      TEXT NOT NULL UNIQUE,
    started  TEXT NOT NULL,
    ended    TEXT,
    state    TEXT NOT NULL,
    origin   TEXT NOT NULL,
    plan     TEXT NOT NULL,
    targets  TEXT NOT NULL, -- JSON list of names
    slots    INTEGER NOT NULL, -- samples that the plan asks for
    remarks  TEXT NOT NULL, -- JSON list
    schema   INTEGER NOT NULL, -- assay_model::SCHEMA_VERSION of the body
    body     BLOB NOT NULL
) STRICT;

CREATE TABLE samples (
    id       INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    slot     INTEGER NOT NULL,
    round    INTEGER NOT NULL,
    workload TEXT NOT NULL,
    target   TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    schema   INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

CREATE INDEX samples_by_run ON samples (run, id);
