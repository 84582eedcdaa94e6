//! Runs many logins at once and measures their times and refusals.

use crate::{Login, LoginError};
use assay_model::Nanos;
use serde::Serialize;
use std::thread;

/// Result of a number of simultaneous logins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Crowd {
    /// Number of logins.
    pub size: u32,
    /// Times of the successful logins, ascending.
    pub took: Vec<Nanos>,
    /// Error messages of the failed logins, with their number.
    pub refused: Vec<(String, u32)>,
}

impl Crowd {
    /// Returns the median time of the successful logins.
    #[must_use]
    pub fn median(&self) -> Option<Nanos> {
        let middle = self.took.len().checked_sub(1)? / 2;
        self.took.get(middle).copied()
    }
}

/// Runs `size` logins at once. Failed logins are counted in the result.
///
/// # Errors
/// The user interrupted.
pub fn at_once(
    size: u32,
    login: &(dyn Fn() -> Result<Login, LoginError> + Sync),
) -> Result<Crowd, LoginError> {
    let ended: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (0..size).map(|_| scope.spawn(login)).collect();
        all.into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect()
    });
    let mut crowd = Crowd {
        size,
        took: Vec::new(),
        refused: Vec::new(),
    };
    for one in ended {
        match one {
            Ok(Ok(login)) => crowd.took.push(login.total()),
            Ok(Err(LoginError::Interrupted)) => return Err(LoginError::Interrupted),
            Ok(Err(error)) => {
                let why = match error {
                    LoginError::Refused { why, .. } => why,
                    LoginError::TimedOut { limit, .. } => format!("no end within {limit}"),
                    other => other.to_string(),
                };
                match crowd.refused.iter_mut().find(|(own, _)| *own == why) {
                    Some((_, count)) => *count += 1,
                    None => crowd.refused.push((why, 1)),
                }
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    crowd.took.sort_unstable();
    Ok(crowd)
}
