//! Limits the memory for request bodies per client, per address and in total.
//!
//! The received bytes of a body count until the body has been parsed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum bytes of all request bodies in memory.
pub const MOST: u64 = 192 << 20;
/// Maximum bytes of the bodies from one address. People behind a router share an address.
pub const MOST_OF_ADDRESS: u64 = 96 << 20;
/// Maximum bytes of the bodies from one authenticated client: one record and some overhead.
pub const MOST_OF_CLIENT: u64 = 32 << 20;

#[derive(Debug, Default)]
struct Used {
    all: u64,
    addresses: BTreeMap<IpAddr, u64>,
    clients: BTreeMap<u64, u64>,
}

/// Counts the bytes of request bodies that are in memory.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Mutex<Used>>);

/// The part of a budget that one body uses. Dropping the value releases this part.
#[derive(Debug)]
pub struct BudgetShare {
    budget: Budget,
    address: IpAddr,
    client: Option<u64>,
    bytes: u64,
}

impl Budget {
    /// Starts counting a body from an address, and from a client if it is known.
    #[must_use]
    pub fn begin(&self, address: IpAddr, client: Option<u64>) -> BudgetShare {
        BudgetShare {
            budget: self.clone(),
            address,
            client,
            bytes: 0,
        }
    }

    /// Returns the number of bytes in use by all bodies.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetShare {
    /// Reserves more bytes for this body. Returns whether the limits permit them.
    ///
    /// A refused body releases its bytes before another body requests more. So if two bodies together exceed the limit,
    /// only one of them is refused.
    pub fn take(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let mut used = self.budget.lock();
        let address = used.addresses.get(&self.address).copied().unwrap_or(0);
        let client = self.client.and_then(|client| used.clients.get(&client));
        let client = client.copied().unwrap_or(0);
        if used.all + bytes > MOST
            || address + bytes > MOST_OF_ADDRESS
            || client + bytes > MOST_OF_CLIENT
        {
            used.release(self.address, self.client, std::mem::take(&mut self.bytes));
            return false;
        }
        used.all += bytes;
        used.addresses.insert(self.address, address + bytes);
        if let Some(number) = self.client {
            used.clients.insert(number, client + bytes);
        }
        self.bytes += bytes;
        true
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        let mut used = self.budget.lock();
        used.release(self.address, self.client, self.bytes);
    }
}

impl Used {
    fn release(&mut self, address: IpAddr, client: Option<u64>, bytes: u64) {
        self.all -= bytes;
        let less = |left: &mut u64| {
            *left -= bytes;
            *left > 0
        };
        if let Some(left) = self.addresses.get_mut(&address)
            && !less(left)
        {
            self.addresses.remove(&address);
        }
        if let Some(number) = client
            && let Some(left) = self.clients.get_mut(&number)
            && !less(left)
        {
            self.clients.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: usize = 1 << 20;

    /// Starts bodies of one reservation each until the budget refuses one.
    fn fill(budget: &Budget, address: IpAddr, client: Option<u64>) -> Vec<BudgetShare> {
        let begin = || {
            let mut share = budget.begin(address, client);
            share.take(STEP).then_some(share)
        };
        std::iter::from_fn(begin).collect()
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn nobody_takes_more_than_a_share() {
        let budget = Budget::default();
        let of_client = fill(&budget, address(1), Some(1));
        assert_eq!(budget.used(), MOST_OF_CLIENT);
        // Many clients at one address, and one without a key.
        let of_address: Vec<_> = (2..9)
            .map(|client| {
                fill(
                    &budget,
                    address(1),
                    Some(client).filter(|client| *client > 2),
                )
            })
            .collect();
        assert_eq!(budget.used(), MOST_OF_ADDRESS);
        // Another address has room up to the total limit.
        let others: Vec<_> = (2..9)
            .map(|last| fill(&budget, address(last), None))
            .collect();
        assert_eq!(budget.used(), MOST);
        drop((of_client, of_address, others));
        assert_eq!(budget.used(), 0);
        assert!(budget.lock().addresses.is_empty() && budget.lock().clients.is_empty());
    }

    #[test]
    fn one_of_two_bodies_that_exceed_the_limit_together_is_read() {
        let budget = Budget::default();
        let half = usize::try_from(MOST_OF_CLIENT / 2).unwrap();
        let mut first = budget.begin(address(1), Some(1));
        let mut second = budget.begin(address(1), Some(1));
        assert!(first.take(half) && second.take(half));
        assert!(!first.take(STEP));
        assert!(second.take(STEP));
        assert_eq!(budget.used(), (half + STEP) as u64);
        drop((first, second));
        assert_eq!(budget.used(), 0);
    }
}
