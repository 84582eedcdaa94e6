//! Pages and studies for tests that are in no catalogue.

/// A page that changes a setting in a file, with a load on a scratch file in the directory.
pub const SETTING: &str = r#"+++
title = "More workers"
statement = "Have more."
predicts = "Faster."
[source]
who = "A colleague"
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
metric = "iops"
slot_seconds = 0.2
washout_seconds = 0.1
[trial.change]
kind = "set"
value = "8"
setting = { kind = "config", file = "FILE", language = "key-value", key = "workers" }
[trial.load]
kind = "fio"
size = "16MiB"
workload = { name = "write", pattern = "randwrite", block_size = "4KiB", queue_depth = 1, engine = "psync" }
+++
## Claim

More is better.

## Why it may help

It may.

## When it does not apply

Never.

## How we test

Here.

## Undo

Less.

## Sources

None.
"#;

/// A study that needs file systems in its directory, and no guest.
pub const STUDY: &str = r#"name = "bare"
title = "Files"
question = "Do they work?"
bench = "guest-disks"
source = { title = "none", machine = "none" }
forms.quick = { rounds = 1, runtime = "300ms", size = "16M" }
forms.full = { rounds = 1, runtime = "300ms", size = "16M" }
configuration = [
  { name = "here", on = "here", bare = true },
  { name = "ext4", on = "ext4", bare = true },
]
figure = [
  { name = "read", unit = "B/s", better = "higher", together = "all", pattern = "read", block_size = "1M", of = "rate" },
]
published = []
conclusion = [{ says = "x", claim = [{ kind = "ratio", figure = "read", of = "here", to = "ext4", at_least = 1 }] }]
"#;
