//! Checks the order of a certificate chain: each certificate must be signed by the next certificate.

use crate::certificate::Certificate;

/// A fault in the order of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Disorder {
    /// All certificates belong to the chain, but are in the wrong order. Contains the names in the correct order.
    WrongOrder(Vec<String>),
    /// Some certificates do not belong to the chain, because they sign none of its certificates. Contains their names.
    Stray(Vec<String>),
    /// The first certificate belongs to a certificate authority instead of the server. Contains its name.
    AuthorityFirst(String),
}

/// Checks the order of a chain, which starts with the server's own certificate. A root at the end is optional.
pub(super) fn find_disorder(chain: &[Certificate]) -> Option<Disorder> {
    let (leaf, rest) = chain.split_first()?;
    if leaf.is_ca && rest.iter().any(|one| !one.is_ca) {
        return Some(Disorder::AuthorityFirst(leaf.subject.clone()));
    }
    let follows = |pair: &[Certificate]| signs(&pair[1], &pair[0]);
    if chain.windows(2).all(follows) {
        return None;
    }
    // Indexes of the path from the server's own certificate, each index once.
    let mut path = vec![0];
    let mut last = leaf;
    while !last.self_signed {
        let next = (1..chain.len()).find(|at| !path.contains(at) && signs(&chain[*at], last));
        let Some(next) = next else { break };
        path.push(next);
        last = &chain[next];
    }
    let name = |at: &usize| chain[*at].subject.clone();
    // A second certificate of the same authority, for clients with other roots, belongs to the chain, too.
    let stray: Vec<usize> = (1..chain.len())
        .filter(|at| !path.contains(at) && !path.iter().any(|own| signs(&chain[*at], &chain[*own])))
        .collect();
    if path.is_sorted() {
        return (!stray.is_empty()).then(|| Disorder::Stray(stray.iter().map(name).collect()));
    }
    Some(Disorder::WrongOrder(path.iter().map(name).collect()))
}

/// Returns whether the issuer name of `signed` is the subject name of `issuer`.
fn signs(issuer: &Certificate, signed: &Certificate) -> bool {
    issuer.subject == signed.issuer && issuer.fingerprint != signed.fingerprint
}
