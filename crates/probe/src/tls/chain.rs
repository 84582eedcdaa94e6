//! The order of a chain: each certificate has to be signed by the next one.

use crate::certificate::Certificate;

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Disorder {
    /// All belong together, but not in this order; the names in the order in which they should be sent.
    WrongOrder(Vec<String>),
    /// These sign nothing in the chain.
    Stray(Vec<String>),
    /// An authority's certificate is sent in the place of the server's own.
    AuthorityFirst(String),
}

/// Looks at the order of a chain, the server's own certificate first. A root at its end may be left out or sent.
pub(super) fn find_disorder(chain: &[Certificate]) -> Option<Disorder> {
    let (leaf, rest) = chain.split_first()?;
    if leaf.is_ca && rest.iter().any(|one| !one.is_ca) {
        return Some(Disorder::AuthorityFirst(leaf.subject.clone()));
    }
    let follows = |pair: &[Certificate]| signs(&pair[1], &pair[0]);
    if chain.windows(2).all(follows) {
        return None;
    }
    // The path from the server's own certificate, each certificate once.
    let mut path = vec![0];
    let mut last = leaf;
    while !last.self_signed {
        let next = (1..chain.len()).find(|at| !path.contains(at) && signs(&chain[*at], last));
        let Some(next) = next else { break };
        path.push(next);
        last = &chain[next];
    }
    let name = |at: &usize| chain[*at].subject.clone();
    // Another certificate of the same authority, for clients with other roots, belongs to it as well.
    let stray: Vec<usize> = (1..chain.len())
        .filter(|at| !path.contains(at) && !path.iter().any(|own| signs(&chain[*at], &chain[*own])))
        .collect();
    if path.is_sorted() {
        return (!stray.is_empty()).then(|| Disorder::Stray(stray.iter().map(name).collect()));
    }
    Some(Disorder::WrongOrder(path.iter().map(name).collect()))
}

/// Whether a certificate is the one that signed another, by their names.
fn signs(issuer: &Certificate, signed: &Certificate) -> bool {
    issuer.subject == signed.issuer && issuer.fingerprint != signed.fingerprint
}
