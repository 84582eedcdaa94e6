//! Many logins at once: what a crowd waits, and how many are turned away.

use crate::{Login, LoginError};
use assay_model::Nanos;
use serde::Serialize;
use std::thread;

/// So many at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Crowd {
    /// How many.
    pub size: u32,
    /// Times of those that got in, ascending.
    pub took: Vec<Nanos>,
    /// Why the others did not, each reason with how often.
    pub refused: Vec<(String, u32)>,
}

impl Crowd {
    /// Half of those that got in were faster.
    #[must_use]
    pub fn median(&self) -> Option<Nanos> {
        let middle = self.took.len().checked_sub(1)? / 2;
        self.took.get(middle).copied()
    }
}

/// Logs in `size` times at once.
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
