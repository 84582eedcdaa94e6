#!/usr/bin/env python3
"""Sessions of `assay tune` on planted programs, with the real program and a real clock.

    bench/tune/live.py ASSAY [--sessions N] [--budget SECONDS] [MACHINE ...]

ASSAY is the program to test. Machines: still, gains, one. A planted program sleeps for 40 ms divided by its speed,
which its configuration file decides. Prints how often each setting was kept, how far the wall time went beyond the
budget, and how often the file was not as before after `--undo`.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

# Machine: settings with their speed, 1.2 for +20 %.
MACHINES = {
    "still": {f"s{n}": 1.0 for n in range(6)},
    "gains": {"plus20": 1.2, "plus10": 1.1, "minus20": 0.8, "none1": 1.0, "none2": 1.0},
    "one": {"plus20": 1.2, "minus20": 0.8},
}

LOAD = """#!/bin/sh
t=$(awk 'BEGIN {{ t = 0.040 }} {cases} END {{ printf "%.4f", t }}' "$1")
exec sleep "$t"
"""

PAGE = """+++
title = "Set {key}"
statement = "Set {key} to on."
predicts = "The run time changes."
[source]
who = "Planted"
claimed = "It is faster."
[literature]
standing = "confirmed"
text = "None."
references = ["none"]
[risk]
level = "low"
text = "None."
[trial]
target = "directory"
default_target = "."
metric = "p50"
[trial.change]
kind = "set"
value = "on"
setting = {{ kind = "config", file = "{file}", language = "key-value", key = "{key}" }}
[trial.load]
kind = "command"
argv = ["true"]
+++
## Claim

It is faster.

## Why it may help

It may.

## When it does not apply

Never.

## How we test

Here.

## Undo

The old value.

## Sources

None.
"""


def session(assay, settings, budget, seed):
    """Runs one session. Returns what was kept, the seconds it took, and whether undo restored the file."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        conf = root / "app.conf"
        before = "# planted\n" + "".join(f"{key} = off\n" for key in settings)
        conf.write_text(before)
        cases = " ".join(f"/^{key} = on/ {{{{ t /= {speed} }}}}" for key, speed in settings.items())
        load = root / "load"
        load.write_text(LOAD.format(cases=cases.replace("{{", "{").replace("}}", "}")))
        load.chmod(0o755)
        pages = []
        for key in settings:
            page = root / f"{key}.md"
            page.write_text(PAGE.format(key=key, file=conf))
            pages.append(str(page))
        env = dict(os.environ, ASSAY_STORE=str(root / "store.db"), ASSAY_STATE=str(root / "state"))
        words = [assay, "tune", "--load", f"{load} {conf}", "--want", "less p50", "--yes", "--json", "--quiet"]
        words += ["--only", ",".join(pages), "--budget", f"{budget}s", "--slot", "300ms", "--seed", str(seed)]
        words += ["--no-tail-guard"]
        began = time.monotonic()
        ran = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        took = time.monotonic() - began
        document = json.loads(ran.stdout)
        kept = [one["advice"] for one in document["kept"]]
        subprocess.run([assay, "tune", "--undo"], env=env, capture_output=True, check=False)
        return kept, took, conf.read_text() == before, document["gain"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("machines", nargs="*", default=list(MACHINES))
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--budget", type=int, default=300)
    args = parser.parse_args()
    for machine in args.machines:
        settings = MACHINES[machine]
        counts = dict.fromkeys(settings, 0)
        anything = wrong = 0
        over, gains = [], []
        for seed in range(1, args.sessions + 1):
            kept, took, restored, gain = session(args.assay, settings, args.budget, seed)
            for key in kept:
                counts[key] += 1
            anything += bool(kept)
            wrong += not restored
            over.append(took - args.budget)
            if gain is not None and kept:
                gains.append(gain)
        print(f"{machine}: {args.sessions} sessions of {args.budget} s; anything kept in {anything}")
        print("  kept:", ", ".join(f"{key} {n}" for key, n in counts.items()))
        print(f"  seconds beyond the budget, at most: {max(over):.1f}; file not restored: {wrong}")
        if gains:
            print(f"  gain said, mean: {100 * sum(gains) / len(gains):+.1f} %")


if __name__ == "__main__":
    main()
