-- What was observed without an experiment: answers of `assay why`, runs of `assay net`, checks of Wi-Fi. Each is stored whole.
CREATE TABLE observation (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  uid     TEXT NOT NULL UNIQUE,
  started TEXT NOT NULL,
  ended   TEXT,
  state   TEXT NOT NULL,
  name    TEXT NOT NULL,
  about   TEXT NOT NULL,
  slots   INTEGER NOT NULL DEFAULT 0,
  machine INTEGER REFERENCES machine (id),
  body    BLOB NOT NULL
) STRICT;
