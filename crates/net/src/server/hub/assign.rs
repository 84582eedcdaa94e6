//! Assigns clients to people.

use super::{Client, Refused};
use crate::plan::NetPlan;
use std::collections::BTreeMap;

/// Time without a poll, in microseconds, after which a client is gone if the same device joined again. While no run is
/// in progress, a client polls four times a second, a web page once.
const REPLACED: i64 = 2_000_000;

/// Removes clients whose device joined again under the same name and from the same address. The new client of the
/// device then gets the original name.
pub(super) fn replace_returned(clients: &mut BTreeMap<u64, Client>, now: i64) {
    let is_silent = |client: &Client| now - client.heard > REPLACED;
    let returned = |number: u64, gone: &Client| {
        let same = |client: &Client| client.asked == gone.asked && client.address == gone.address;
        let mut later = clients.range(number + 1..);
        later.any(|(_, client)| same(client) && !is_silent(client))
    };
    let gone: Vec<u64> = clients
        .iter()
        .filter(|(number, client)| is_silent(client) && returned(**number, client))
        .map(|(number, _)| *number)
        .collect();
    for number in gone {
        clients.remove(&number);
    }
    let numbers: Vec<u64> = clients.keys().copied().collect();
    for number in numbers {
        let Some(asked) = clients.get(&number).map(|client| client.asked.clone()) else {
            continue;
        };
        let is_free = clients.values().all(|client| client.name != asked);
        if let Some(client) = clients.get_mut(&number).filter(|_| is_free) {
            client.name = asked;
        }
    }
}

/// Assigns a client to every person: the client that the plan names, else the client with the person's name, else the
/// person's client of the previous run, else the next client in the order of joining. `free` lists the clients in this
/// order; `before` maps each person to the name of its previous client.
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
