//! Assigns clients to people.

use super::{Client, Refused};
use crate::plan::NetPlan;
use std::collections::BTreeMap;

/// Assigns a client to every person: the client that the plan names, else the client with the person's name,
/// else the person's client in the previous run, else the next client in the order of joining. `free` is in
/// that order; `before` maps each person to the client's name.
///
/// # Errors
/// A client that the plan names is missing, or there are fewer clients than people.
pub(super) fn assign(
    plan: &NetPlan,
    mut free: Vec<(u64, &Client)>,
    before: &BTreeMap<String, String>,
) -> Result<Vec<u64>, Refused> {
    let mut given: Vec<Option<u64>> = vec![None; plan.people.len()];
    let mut take = |wanted: &str| {
        let same = |name: &str| name.to_lowercase() == wanted.to_lowercase();
        let exact = free.iter().position(|(_, client)| client.name == wanted);
        let at = exact.or_else(|| free.iter().position(|(_, client)| same(&client.name)));
        at.map(|at| free.remove(at).0)
    };
    for (person, given) in plan.people.iter().zip(&mut given) {
        if let Some(wanted) = &person.client {
            *given = Some(take(wanted).ok_or_else(|| {
                Refused::Busy(format!(
                    "the client `{}` of {} is not there",
                    wanted.escape_debug(),
                    person.name.escape_debug()
                ))
            })?);
        }
    }
    let named = |person: &str| Some(person.to_owned());
    let remembered = |person: &str| before.get(person).cloned();
    for way in [&named as &dyn Fn(&str) -> Option<String>, &remembered] {
        for (person, given) in plan.people.iter().zip(&mut given) {
            if given.is_none() && person.client.is_none() {
                *given = way(&person.name).and_then(|wanted| take(&wanted));
            }
        }
    }
    let wanted = given.iter().filter(|given| given.is_none()).count();
    if free.len() < wanted {
        return Err(Refused::Busy(format!(
            "{wanted} people without a client of their own, and {} clients are free",
            free.len()
        )));
    }
    let mut free = free.into_iter().map(|(number, _)| number);
    let given = given.into_iter().map(|given| given.or_else(|| free.next()));
    Ok(given.map(|given| given.unwrap_or(0)).collect())
}
