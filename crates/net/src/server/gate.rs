//! Limits the number of connections. A connection that has not sent the token is a stranger. Only a limited number of
//! strangers is admitted. If this number is reached, a new stranger replaces the oldest stranger of the address with
//! the most strangers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of connections. Each needs a thread and up to a few hundred KB.
pub const MOST: usize = 4000;
/// Maximum number of strangers among the connections.
pub const MOST_STRANGERS: usize = 400;

#[derive(Default)]
struct Inside {
    next: u64,
    all: usize,
    strangers: BTreeMap<u64, (IpAddr, Option<TcpStream>)>,
}

/// Counts the open connections.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<Inside>>);

/// Permission for one connection. Dropping the pass makes room for another connection.
pub struct Pass {
    gate: Gate,
    number: u64,
}

impl Gate {
    /// Admits a connection if the limits permit it. If this connection is a stranger and another stranger replaces it
    /// later, `socket` is closed.
    pub fn enter(&self, from: IpAddr, socket: Option<TcpStream>) -> Option<Pass> {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.all >= MOST {
            return None;
        }
        if inside.strangers.len() >= MOST_STRANGERS {
            let mut of: BTreeMap<IpAddr, usize> = BTreeMap::new();
            for (address, _) in inside.strangers.values() {
                *of.entry(*address).or_default() += 1;
            }
            let most = of.into_iter().max_by_key(|(_, count)| *count);
            let oldest = inside
                .strangers
                .iter()
                .find(|(_, (address, _))| most.is_some_and(|(most, _)| most == *address));
            let oldest = oldest.map(|(number, _)| *number)?;
            if let Some((_, Some(socket))) = inside.strangers.remove(&oldest) {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        inside.next += 1;
        inside.all += 1;
        let number = inside.next;
        inside.strangers.insert(number, (from, socket));
        Some(Pass {
            gate: self.clone(),
            number,
        })
    }

    /// Returns the number of all connections and the number of strangers.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inside.all, inside.strangers.len())
    }
}

impl Pass {
    /// Marks the connection as authenticated after it has sent the token.
    pub fn no_stranger(&self) {
        let mut inside = self.gate.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.strangers.remove(&self.number);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.gate.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.strangers.remove(&self.number);
        inside.all -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_strangers_pushes_its_own_out() {
        let gate = Gate::default();
        let [crowd, honest] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let first = gate.enter(honest, None).unwrap();
        let many: Vec<Pass> = (0..MOST_STRANGERS + 200)
            .filter_map(|_| gate.enter(crowd, None))
            .collect();
        assert_eq!(gate.count(), (MOST_STRANGERS + 201, MOST_STRANGERS));
        let inside = gate.0.lock().unwrap();
        assert!(inside.strangers.contains_key(&first.number));
        assert!(!inside.strangers.contains_key(&many[0].number));
        drop(inside);
        first.no_stranger();
        drop(many);
        assert_eq!(gate.count(), (1, 0));
    }

    #[test]
    fn there_is_an_end_of_room() {
        let gate = Gate::default();
        let from = IpAddr::from([10, 0, 0, 1]);
        let all: Vec<Pass> = (0..MOST).map_while(|_| gate.enter(from, None)).collect();
        assert_eq!(all.len(), MOST);
        assert!(gate.enter(from, None).is_none());
    }
}
