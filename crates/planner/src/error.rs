//! Errors of a planning question. Each message contains a way out.

/// Why a plan cannot be made. The message contains the input and a way out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlannerError {
    /// A disk size is invalid.
    #[error("disk size `{input}`: {reason}")]
    Size {
        /// The text that the user entered.
        input: String,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The text is not a size.
    #[error("disk size {0}")]
    Unreadable(#[from] assay_model::size::SizeError),
    /// The value of an option is not a size.
    #[error("size {0}")]
    Amount(assay_model::size::SizeError),
    /// A layout description is invalid or does not fit the disks.
    #[error("layout `{spec}`: {reason}")]
    Layout {
        /// The text that the user entered.
        spec: String,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// A number is out of range, or an option is missing or contradicts another option.
    #[error("{what}: {reason}")]
    Value {
        /// Name of the option or quantity.
        what: String,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// A sum exceeds 64 bits or the limit of the file system.
    #[error("{what} overflows: {reason}")]
    Overflow {
        /// Name of the quantity that is too large.
        what: String,
        /// The maximum that the quantity exceeds.
        reason: String,
    },
    /// The recorded output of a tool is damaged.
    #[error("{source_name}, line {line}: {reason}")]
    Record {
        /// File or command that the text comes from.
        source_name: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The recorded properties of clones contradict each other; contains the contradiction.
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
