-- The newest rows are walked in one order whatever their machines and keys are, also where a thousand have one
-- time. SQLite's index on the time has the other columns of the key by itself.
DROP INDEX assay.span_since;
CREATE INDEX span_since ON assay.span (since, host, subject);
