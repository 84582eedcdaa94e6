//! Why a sample may not mean what it seems to: one rule per file.
