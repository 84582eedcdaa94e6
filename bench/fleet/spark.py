"""Compares the answers of `assay dups across`, Spark and DuckDB to the same exports: started by scripts/spark."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

master, exports, assay, scratch = sys.argv[1:]
SQL = Path(__file__).resolve().parents[2] / "sql"
QUESTIONS = ["summary", "machines", "largest"]
differ = False


def embedded():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    ran = subprocess.run([assay, "dups", "across", exports, "--json"], stdout=subprocess.PIPE)
    wall = time.monotonic() - begun
    # A part of synthetic machines is missing on purpose: they have one prefix of sixteen.
    if ran.returncode not in (0, 3):
        sys.exit(f"assay dups across ended with {ran.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"assay: {wall:.1f} s, {cpu:.1f} s of the processors, at most {after.ru_maxrss / 1024:.0f} MiB")
    answer = json.loads(ran.stdout)
    largest = [{k: v for k, v in one.items() if k != "names"} for one in answer["largest"]]
    return {"summary": [answer], "machines": answer["machines"], "largest": largest}


def spark(question):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(master)
        .appName("assay")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", os.path.join(scratch, "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW exported USING parquet "
        f"OPTIONS (path '{exports}', recursiveFileLookup 'true')"
    )
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    return [row.asDict() for row in session.sql(question).collect()], f"{executors} executors"


def duck(question):
    import duckdb

    base = duckdb.connect()
    base.execute("SET memory_limit = '2GB'")
    base.execute(f"SET temp_directory = '{scratch}'")
    base.execute(
        "CREATE VIEW exported AS SELECT * FROM "
        f"read_parquet('{exports}/*/*.parquet', hive_partitioning = false)"
    )
    found = base.execute(question)
    names = [one[0] for one in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()], ""


ours = embedded()
for name, engine in (("Spark", spark), ("DuckDB", duck)):
    for question in QUESTIONS:
        begun = time.monotonic()
        rows, more = engine((SQL / f"{question}.sql").read_text())
        wall = time.monotonic() - begun
        expected = [{key: one[key] for key in rows[0]} for one in ours[question]] if rows else ours[question]
        same = rows == expected
        differ |= not same
        verdict = "the same answer" if same else f"ANOTHER ANSWER: {rows[:3]} instead of {expected[:3]}"
        print(f"{name}, {question}.sql: {len(rows)} rows, {wall:.1f} s {more}: {verdict}")
summary = ours["summary"][0]
print(f"{summary['files']} files of {len(ours['machines'])} machines, {summary['redundant_bytes']} redundant bytes")
sys.exit(1 if differ else 0)
