-- As migration 5 of SQLite, where it is said what the rows mean.
CREATE TABLE assay.host (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name   text NOT NULL UNIQUE,
  first  bigint NOT NULL,
  last   bigint NOT NULL,
  scope  text NOT NULL,
  scoped bigint NOT NULL,
  digest bytea NOT NULL
);

CREATE TABLE assay.subject (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind bigint NOT NULL,
  key  text NOT NULL
);
-- A key may be longer than an index takes.
CREATE UNIQUE INDEX subject_key ON assay.subject (kind, md5(key));

CREATE TABLE assay.value (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  text text NOT NULL
);
CREATE UNIQUE INDEX value_text ON assay.value (md5(text));

CREATE TABLE assay.span (
  host    bigint NOT NULL REFERENCES assay.host (id) ON DELETE CASCADE,
  subject bigint NOT NULL REFERENCES assay.subject (id),
  since   bigint NOT NULL,
  seen    bigint,
  value   bigint REFERENCES assay.value (id),
  PRIMARY KEY (host, subject, since)
);
CREATE INDEX span_since ON assay.span (since);
CREATE INDEX span_subject ON assay.span (subject, host);

CREATE TABLE assay.kept (
  number bigint PRIMARY KEY CHECK (number = 1),
  days   bigint NOT NULL
);
