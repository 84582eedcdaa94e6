# The two commands: `make run` measures the current directory, `make test` checks everything.
# `make run` leaves out what a first user does not need: `cargo build --release --package assay` builds all features.
# `make test-quick` runs the unit tests and a test of each verb, in minutes.
# `make test-guests` builds the guest image first when there is none, some minutes and 5 GiB for a while.
# `make attack` runs the hostile tests as a whole set, `make fuzz` every parser with coverage; both take long. `make spark`
# compares answers with a real Spark cluster, a gigabyte from PyPI the first time.
# `make written` writes what is made from the code: pages, schemas, the snapshot of help.
# `make transcripts DIR=/srv` makes the transcripts of the book and the README's picture.
# `make dist` builds static binaries and packages, `make docs` the book as HTML.
TARGET ?= .
REPORT ?= report.html

.PHONY: run test test-quick test-guests attack fuzz spark build written transcripts dist docs

run: build
	./target/release/assay run quick "$(TARGET)" --html "$(REPORT)"

build:
	./scripts/install-needs run
	cargo build --release --locked --package assay --no-default-features

test:
	./scripts/test

test-quick:
	./scripts/test-quick

test-guests:
	./scripts/test --guests

attack:
	./scripts/attack

fuzz:
	./scripts/fuzz

spark:
	./scripts/spark

written:
	./scripts/written

transcripts: build
	./scripts/transcripts "$(DIR)"

dist:
	./scripts/install-needs run
	./scripts/dist

docs:
	./scripts/docs
