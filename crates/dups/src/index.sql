-- The tables of an index of duplicates, format 3.

-- Number of the last scan, and which hash the blocks hold ('' = none yet).
CREATE TABLE state (generation INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO state VALUES (0, '');

-- What was scanned. machine: '' for this one, else the name given at `dups merge`.
CREATE TABLE roots (
    machine TEXT NOT NULL,
    path BLOB NOT NULL,
    scanned INTEGER NOT NULL, -- ns since 1970
    complete INTEGER NOT NULL,
    manner TEXT NOT NULL, -- how it was scanned: manner.rs as JSON
    PRIMARY KEY (machine, path)
) WITHOUT ROWID;

-- A folder and its files; the layout of `block` is described in blob.rs.
CREATE TABLE folders (
    machine TEXT NOT NULL,
    path BLOB NOT NULL,
    block BLOB NOT NULL,
    PRIMARY KEY (machine, path)
) WITHOUT ROWID;
