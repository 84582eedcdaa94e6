-- What the machines have in common; bytes are those of the files' sizes.
WITH told AS (
    SELECT machine, hash, size, max(count) AS files
    FROM exported
    GROUP BY machine, hash, size
),
contents AS (
    SELECT hash, size, sum(files) AS files, count(*) AS machines
    FROM told
    GROUP BY hash, size
)
SELECT
    cast(sum(files) AS bigint) AS files,
    cast(sum(files * size) AS bigint) AS bytes,
    cast(count(*) AS bigint) AS contents,
    cast(sum(CASE WHEN files > 1 THEN 1 ELSE 0 END) AS bigint) AS groups,
    cast(sum(files - 1) AS bigint) AS redundant_files,
    cast(sum((files - 1) * size) AS bigint) AS redundant_bytes,
    cast(sum(CASE WHEN machines > 1 THEN 1 ELSE 0 END) AS bigint) AS shared_groups,
    cast(sum((machines - 1) * size) AS bigint) AS shared_bytes
FROM contents
