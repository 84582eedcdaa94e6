-- Every run, trial and study belongs to the machine that it was measured on. What was stored before
-- belongs to none: it is not written down where that was, a store can have been copied to another
-- machine, and a run can have come from one by export and import.
CREATE TABLE machine (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  uid  TEXT NOT NULL UNIQUE,
  name TEXT
) STRICT;

-- One shape for all three: what a list shows has the same name everywhere.
ALTER TABLE run RENAME COLUMN plan TO name;
ALTER TABLE run RENAME COLUMN targets TO about;
ALTER TABLE run ADD COLUMN machine INTEGER REFERENCES machine (id);

ALTER TABLE trial RENAME COLUMN advice TO name;
ALTER TABLE trial RENAME COLUMN target TO about;
ALTER TABLE trial ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trial ADD COLUMN machine INTEGER REFERENCES machine (id);

ALTER TABLE study_run RENAME TO study;
ALTER TABLE study ADD COLUMN ended TEXT;
ALTER TABLE study ADD COLUMN state TEXT NOT NULL DEFAULT 'stopped';
UPDATE study SET state = 'complete' WHERE complete = 1;
ALTER TABLE study DROP COLUMN complete;
ALTER TABLE study ADD COLUMN about TEXT NOT NULL DEFAULT '';
ALTER TABLE study ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE study ADD COLUMN machine INTEGER REFERENCES machine (id);
