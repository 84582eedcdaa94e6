//! Errors of a planning question. Each message contains the way out.

/// Reasons why a plan cannot be made. The text contains the input and the way out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlannerError {
    /// A disk size is invalid.
    #[error("disk size `{input}`: {reason}")]
    Size {
        /// The given text.
        input: String,
        /// Error, and the expected input.
        reason: String,
    },
    /// The text is not a size.
    #[error("disk size {0}")]
    Unreadable(#[from] assay_model::size::SizeError),
    /// The text of an option is not a size.
    #[error("size {0}")]
    Amount(assay_model::size::SizeError),
    /// A layout description is invalid or does not fit the disks.
    #[error("layout `{spec}`: {reason}")]
    Layout {
        /// The given text.
        spec: String,
        /// Error, and the expected input.
        reason: String,
    },
    /// A number is out of range, or an option is missing or contradictory.
    #[error("{what}: {reason}")]
    Value {
        /// Name of the option or quantity.
        what: String,
        /// Error, and the expected input.
        reason: String,
    },
    /// A sum exceeds 64 bits or the limit of the file system.
    #[error("{what} overflows: {reason}")]
    Overflow {
        /// Name of the quantity.
        what: String,
        /// The limit.
        reason: String,
    },
    /// The recorded output of a tool is damaged.
    #[error("{source_name}, line {line}: {reason}")]
    Record {
        /// File or command from which the text comes.
        source_name: String,
        /// Line number, from 1.
        line: usize,
        /// Error, and the expected input.
        reason: String,
    },
    /// The recorded properties of clones contradict each other.
    #[error("clone lineage: {0}")]
    Lineage(String),
}

impl PlannerError {
    /// Builds a [`PlannerError::Value`].
    pub fn value(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Value {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// Builds a [`PlannerError::Layout`].
    pub fn layout(spec: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Layout {
            spec: spec.into(),
            reason: reason.into(),
        }
    }

    /// Builds a [`PlannerError::Record`].
    pub fn record(source_name: &str, line: usize, reason: impl Into<String>) -> Self {
        Self::Record {
            source_name: source_name.to_owned(),
            line,
            reason: reason.into(),
        }
    }
}
