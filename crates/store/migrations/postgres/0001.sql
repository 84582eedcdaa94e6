-- The same columns as in SQLite, where migrations 1 to 4 stand behind them. Numbers count up and are never
-- given twice; what names a record in every store is its uid.
CREATE TABLE assay.machine (
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid  text NOT NULL UNIQUE,
  name text
);

CREATE TABLE assay.run (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid     text NOT NULL UNIQUE,
  machine bigint REFERENCES assay.machine (id),
  started text NOT NULL,
  ended   text,
  state   text NOT NULL,
  name    text NOT NULL,
  about   text NOT NULL,
  slots   bigint NOT NULL,
  body    bytea NOT NULL
);

CREATE TABLE assay.sample (
  run  bigint NOT NULL REFERENCES assay.run (id) ON DELETE CASCADE,
  slot bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (run, slot)
);

CREATE TABLE assay.trial (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid     text NOT NULL UNIQUE,
  machine bigint REFERENCES assay.machine (id),
  started text NOT NULL,
  ended   text,
  state   text NOT NULL,
  name    text NOT NULL,
  about   text NOT NULL,
  slots   bigint NOT NULL,
  body    bytea NOT NULL
);

CREATE TABLE assay.trial_slot (
  trial bigint NOT NULL REFERENCES assay.trial (id) ON DELETE CASCADE,
  pair  bigint NOT NULL,
  side  text NOT NULL,
  body  bytea NOT NULL,
  PRIMARY KEY (trial, pair, side)
);

CREATE TABLE assay.study (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid     text NOT NULL UNIQUE,
  machine bigint REFERENCES assay.machine (id),
  started text NOT NULL,
  ended   text,
  state   text NOT NULL,
  name    text NOT NULL,
  about   text NOT NULL,
  slots   bigint NOT NULL,
  body    bytea NOT NULL
);
