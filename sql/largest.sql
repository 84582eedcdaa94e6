-- The contents with most to gain, the most first.
WITH told AS (
    SELECT machine, hash, size, max(count) AS files
    FROM exported
    GROUP BY machine, hash, size
)
SELECT
    lower(hex(hash)) AS hash,
    size,
    cast(sum(files) AS bigint) AS files,
    cast(count(*) AS bigint) AS machines,
    cast((sum(files) - 1) * size AS bigint) AS redundant_bytes
FROM told
GROUP BY hash, size
HAVING sum(files) > 1
ORDER BY redundant_bytes DESC, size DESC, hash
LIMIT 10
