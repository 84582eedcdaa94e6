-- By machine: its files, what its own copies take, and the contents that another machine has too.
WITH told AS (
    SELECT machine, hash, size, max(count) AS files
    FROM exported
    GROUP BY machine, hash, size
),
contents AS (
    SELECT hash, size, count(*) AS machines
    FROM told
    GROUP BY hash, size
)
SELECT
    told.machine AS name,
    cast(sum(told.files) AS bigint) AS files,
    cast(sum(told.files * told.size) AS bigint) AS bytes,
    cast(sum((told.files - 1) * told.size) AS bigint) AS redundant_bytes,
    cast(sum(CASE WHEN contents.machines > 1 THEN told.size ELSE 0 END) AS bigint) AS shared_bytes
FROM told
JOIN contents ON told.hash = contents.hash AND told.size = contents.size
GROUP BY told.machine
ORDER BY name
