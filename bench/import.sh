#!/bin/sh
# Needs GNU time. Time and memory of `assay import` on a JSON+ file of 100 MB. Usage: bench/import.sh [ASSAY]
# The file is a job entry that fio itself printed, repeated under other names.
set -eu
assay=${1:-target/release/assay}
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/import.XXXXXX")
trap 'rm -rf "$dir"' EXIT
awk -v goal=100000000 '
    { text = text $0 "\n" }
    END {
        jobs = index(text, "\"jobs\" : [") + 10
        end = index(text, "\n  ],\n  \"disk_util\"")
        head = substr(text, 1, jobs - 1)
        job = substr(text, jobs, end - jobs)
        tail = substr(text, end)
        printf "%s", head
        for (size = 0; size < goal; size += length(job)) {
            one = job
            sub(/"jobname" : "[^"]*"/, "\"jobname\" : \"job" n++ "\"", one)
            printf "%s%s", (n > 1 ? "," : ""), one
        }
        printf "%s", tail
    }' "$root/crates/fio/fixtures/fio-3.33-mix.json" >"$dir/big.json"
ls -l "$dir/big.json" | awk '{ print "bytes: " $5 }'
for how in --no-store "--store=$dir/store.db"; do
    echo "assay import $how"
    for round in 1 2 3; do
        rm -f "$dir"/store.db*
        status=0
        /usr/bin/time -q -f '  %e s, %M KB' "$assay" import "$how" "$dir/big.json" >"$dir/out" || status=$?
        # 1: the short samples are doubted.
        [ "$status" -le 1 ] || exit "$status"
    done
done
