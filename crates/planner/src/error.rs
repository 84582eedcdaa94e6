//! What can be wrong with a question, said so that the asker can mend it.

/// Why a plan cannot be made. The text names what was given and the way out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlannerError {
    /// A disk size that cannot be read or used.
    #[error("disk size `{input}`: {reason}")]
    Size {
        /// What was given.
        input: String,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// A text that is no size.
    #[error("disk size {0}")]
    Unreadable(#[from] assay_model::size::SizeError),
    /// A layout description that cannot be read, or does not fit the disks.
    #[error("layout `{spec}`: {reason}")]
    Layout {
        /// What was given.
        spec: String,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// A number outside of its range, a missing or contradicting option.
    #[error("{what}: {reason}")]
    Value {
        /// The option or quantity.
        what: String,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// A sum that no longer fits 64 bits, or exceeds what the file system can address.
    #[error("{what} overflows: {reason}")]
    Overflow {
        /// The quantity.
        what: String,
        /// The limit.
        reason: String,
    },
    /// Recorded output of a tool that is broken.
    #[error("{source_name}, line {line}: {reason}")]
    Record {
        /// File or command the text came from.
        source_name: String,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// Clone records that contradict each other.
    #[error("clone lineage: {0}")]
    Lineage(String),
}

impl PlannerError {
    /// A [`PlanError::Value`].
    pub fn value(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Value {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// A [`PlanError::Layout`].
    pub fn layout(spec: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Layout {
            spec: spec.into(),
            reason: reason.into(),
        }
    }

    /// A [`PlanError::Record`].
    pub fn record(source_name: &str, line: usize, reason: impl Into<String>) -> Self {
        Self::Record {
            source_name: source_name.to_owned(),
            line,
            reason: reason.into(),
        }
    }
}
