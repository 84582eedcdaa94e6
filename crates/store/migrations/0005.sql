-- What is true of machines over time: facts, and findings with how bad they are. A row is written when a value
-- changes. It is what was seen from `since` to `seen`, and as of the last look when that is null; the next row
-- of the same key follows it. No value: it was looked for, and was not there; a question mark: it could not be
-- read from the first look on. Times are seconds since 1970.
CREATE TABLE host (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  name   TEXT NOT NULL UNIQUE,
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  -- By which rules it was looked at last, and since when by these.
  scope  TEXT NOT NULL,
  scoped INTEGER NOT NULL,
  digest BLOB NOT NULL
) STRICT;

CREATE TABLE subject (
  id   INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  key  TEXT NOT NULL,
  UNIQUE (kind, key)
) STRICT;

CREATE TABLE value (
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE span (
  host    INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
  subject INTEGER NOT NULL REFERENCES subject (id),
  since   INTEGER NOT NULL,
  seen    INTEGER,
  value   INTEGER REFERENCES value (id),
  PRIMARY KEY (host, subject, since)
) STRICT, WITHOUT ROWID;
CREATE INDEX span_since ON span (since);
CREATE INDEX span_subject ON span (subject, host);

CREATE TABLE kept (
  number INTEGER PRIMARY KEY CHECK (number = 1),
  days   INTEGER NOT NULL
) STRICT;
