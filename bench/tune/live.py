#!/usr/bin/env python3
"""Sessions of `assay tune` on planted programs, with the real program and a real clock.

    bench/tune/live.py ASSAY [--sessions N] [--budget SECONDS] [--jobs N] [MACHINE ...]

ASSAY is the program to test. A planted program sleeps for 40 ms divided by its speed, which its configuration file
decides; it needs a C compiler and hardly any CPU. Prints how often each setting was kept, how far the wall time went
beyond the budget, and how often the file was not as before after `--undo`; of a machine with a rule also how often
it held.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

# Machine: settings with the words of the planted program (see PLANT), options of the session, and what must hold.
MACHINES = {
    "still": {"words": [f"s{n}:1" for n in range(6)], "holds": lambda end: not end["kept"]},
    "gains": {
        "words": ["plus20:1.2", "plus10:1.1", "minus20:0.8", "none1:1", "none2:1"],
        "holds": lambda end: "plus20" in end["kept"] and "minus20" not in end["kept"],
    },
    "one": {"words": ["plus20:1.2", "minus20:0.8"], "holds": lambda end: end["kept"] == ["plus20"]},
    "ten": {"words": ["plus10:1.1", "none:1"], "holds": lambda end: end["kept"] == ["plus10"]},
    "twins": {"words": ["a:1.3", "b:1.3", "a+b:0.76923"], "holds": lambda end: len(end["kept"]) == 1},
    "rivals": {"words": ["a:1.15", "b:1", "a+b:0.75"], "holds": lambda end: len(end["kept"]) < 2},
    "stalls": {"words": ["a:1.08", "slow:a:10:3"], "holds": lambda end: not end["kept"]},
    "tail": {"words": ["a:1.15", "slow:a:30:3"], "guard": True, "holds": lambda end: not end["kept"]},
    "breaker": {
        "words": ["a:1.3", "b:1", "fail:b"],
        "holds": lambda end: "b" not in end["kept"] and "b" in end["left_out"],
    },
    "met": {"words": ["a:1.3"], "want": "p50 <= 20s", "holds": lambda end: end["untouched"] and end["code"] == 0},
    "beyond": {"words": ["a:1.3"], "want": "p50 <= 1us", "holds": lambda end: end["untouched"] and end["code"] == 1},
    "evaporates": {"words": ["a:1.4"], "confirm": True, "holds": lambda end: end["kept"] and end["confirmed"] == 1},
    "lasts": {
        "words": ["plus20:1.2", "none:1"],
        "holds": lambda end: end["kept"] == ["plus20"] and end["hold"] == "lasts",
    },
    "wears-off": {
        "words": ["plus20:1.2", "none:1", "fade:plus20:5"],
        "holds": lambda end: not end["kept"] and end["hold"] == "wears-off",
    },
    "meddler": {"words": ["a:1.4"], "meddle": True, "holds": lambda end: end["code"] == 1 and end["meddled"]},
}

# KEY:SPEED a setting that is on; KEY+KEY:SPEED both are on; slow:KEY:N:TIMES one run in N takes so many times as
# long; fail:KEY the program fails; fade:KEY:SECONDS the effect ends so long after each change. A file CONF.gone takes
# all effects away.
PLANT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static char conf[65536];
static int on(const char *key) {
    char line[256];
    snprintf(line, sizeof line, "\n%s = on", key);
    return strstr(conf, line) != NULL;
}
static double seconds_between(struct timespec from, struct timespec to) {
    return (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9;
}
static int faded(int argc, char **argv, const char *key) {
    for (int at = 2; at < argc; at++) {
        char name[256];
        double limit;
        struct stat file;
        struct timespec now;
        if (sscanf(argv[at], "fade:%255[^:]:%lf", name, &limit) != 2 || strcmp(name, key)) continue;
        clock_gettime(CLOCK_REALTIME, &now);
        if (!stat(argv[1], &file) && seconds_between(file.st_mtim, now) > limit) return 1;
    }
    return 0;
}
int main(int argc, char **argv) {
    char gone[4096];
    double seconds = 0.040;
    FILE *file = fopen(argv[1], "r");
    if (!file) return 2;
    conf[fread(conf, 1, sizeof conf - 1, file)] = 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    srand(now.tv_nsec ^ getpid());
    snprintf(gone, sizeof gone, "%s.gone", argv[1]);
    int effects = access(gone, F_OK) != 0;
    for (int at = 2; at < argc; at++) {
        char word[256], *save;
        snprintf(word, sizeof word, "%s", argv[at]);
        char *first = strtok_r(word, ":", &save), *second = strtok_r(NULL, ":", &save);
        if (!strcmp(first, "fail")) {
            if (on(second)) { fputs("broken\n", stderr); return 3; }
        } else if (!strcmp(first, "fade")) {
            continue;
        } else if (!strcmp(first, "slow")) {
            int n = atoi(strtok_r(NULL, ":", &save));
            if (on(second) && rand() % n == 0) seconds *= atof(strtok_r(NULL, ":", &save));
        } else {
            char *plus = strchr(first, '+');
            if (plus) *plus = 0;
            if (faded(argc, argv, first)) continue;
            if (effects && on(first) && (!plus || on(plus + 1))) seconds /= atof(second);
        }
    }
    struct timespec rest = { 0, (long) (seconds * 1e9) };
    nanosleep(&rest, NULL);
    return 0;
}
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


def build_plant(root):
    """Compiles the planted program. Returns its path."""
    source = root / "plant.c"
    source.write_text(PLANT)
    subprocess.run(["cc", "-O1", "-o", str(root / "plant"), str(source)], check=True)
    return root / "plant"


def meddle(conf, done):
    """Sets the setting to another value as soon as it is on for a while."""
    while not done.is_set():
        if "a = on" in conf.read_text():
            time.sleep(0.1)
            text = conf.read_text()
            if "a = on" in text:
                aside = conf.with_suffix(".aside")
                aside.write_text(text.replace("a = on", "a = mine"))
                os.replace(aside, conf)
                return
        time.sleep(0.01)


def run_session(assay, plant, machine, budget, seed):
    """Runs one session. Returns how it ended."""
    words = machine["words"]
    settings = [word.split(":")[0] for word in words]
    settings = [key for key in settings if key not in ("slow", "fail", "fade") and "+" not in key]
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        conf = root / "app.conf"
        before = "# planted\n" + "".join(f"{key} = off\n" for key in settings)
        conf.write_text(before)
        stamp = conf.stat().st_mtime_ns
        pages = []
        for key in settings:
            page = root / f"{key}.md"
            page.write_text(PAGE.format(key=key, file=conf))
            pages.append(str(page))
        env = dict(os.environ, ASSAY_STORE=str(root / "store.db"), ASSAY_STATE=str(root / "state"))
        call = [assay, "tune", "--load", " ".join([str(plant), str(conf), *words]), "--yes", "--json", "--quiet"]
        call += ["--want", machine.get("want", "less p50"), "--no-boot-undo", "--seed", str(seed)]
        call += ["--only", ",".join(pages), "--budget", f"{budget}s", "--slot", "300ms"]
        if not machine.get("guard"):
            call.append("--no-tail-guard")
        done = threading.Event()
        if machine.get("meddle"):
            threading.Thread(target=meddle, args=(conf, done)).start()
        began = time.monotonic()
        ran = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
        done.set()
        try:
            document = json.loads(ran.stdout)
        except ValueError:
            return {"error": ran.stderr.strip()[-300:]}
        end = {
            "code": ran.returncode,
            "over": time.monotonic() - began - budget,
            "kept": [one["advice"] for one in document["kept"]],
            "left_out": [one["advice"] for one in document["left_out"]],
            "gain": document["gain"],
            "hold": document["hold"] and document["hold"]["result"],
            "untouched": conf.stat().st_mtime_ns == stamp,
            "meddled": "a = mine" in conf.read_text(),
        }
        if machine.get("confirm") and end["kept"]:
            conf.with_name("app.conf.gone").write_text("")
            again = [assay, "tune", "--confirm", "1", "--quiet"]
            end["confirmed"] = subprocess.run(again, env=env, capture_output=True, check=False).returncode
        subprocess.run([assay, "tune", "--undo"], env=env, capture_output=True, check=False)
        # The machine's own note of a change that was left alone.
        forget = [assay, "trial", "--recover", "--accept"]
        subprocess.run(forget, env=env, capture_output=True, check=False)
        end["restored"] = conf.read_text() == before or end["meddled"]
        return end


def report(name, machine, ends, budget):
    """Prints how the sessions of a machine ended."""
    errors = [end["error"] for end in ends if "error" in end]
    ends = [end for end in ends if "error" not in end]
    counts = {}
    for end in ends:
        for key in end["kept"]:
            counts[key] = counts.get(key, 0) + 1
    held = sum(bool(machine["holds"](end)) for end in ends)
    kept = ", ".join(f"{key} {n}" for key, n in sorted(counts.items())) or "nothing"
    gains = [end["gain"] for end in ends if end["kept"] and end["gain"] is not None]
    mean = f"{100 * sum(gains) / len(gains):+.1f} %" if gains else "-"
    over = max((end["over"] for end in ends), default=0.0)
    lost = sum(not end["restored"] for end in ends)
    print(f"| {name} | {len(ends)} of {budget} s | {held} | {kept} | {mean} | {over:.1f} | {lost} |", flush=True)
    for error in errors:
        print(f"{name}: no document: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("machines", nargs="*", default=list(MACHINES))
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_intermixed_args()
    print("| machine | sessions | rule held in | kept | gain said, mean | seconds over the budget | not restored |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        plant = build_plant(pathlib.Path(name))
        for key in args.machines:
            machine = MACHINES[key]
            seeds = range(1, args.sessions + 1)
            ends = pool.map(lambda seed, m=machine: run_session(args.assay, plant, m, args.budget, seed), seeds)
            report(key, machine, list(ends), args.budget)


if __name__ == "__main__":
    main()
