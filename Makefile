# The two commands: `make run` measures the current directory, `make test` checks everything.
TARGET ?= .
REPORT ?= report.html

.PHONY: run test build lint

run: build
	./target/release/assay run quick "$(TARGET)" --html "$(REPORT)"

build:
	./scripts/install-needs run
	cargo build --release --locked

test:
	./scripts/install-needs test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked
