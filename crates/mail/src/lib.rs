//! Judges a stored mail as this machine would: which rules of SpamAssassin match it, and which lists of addresses
//! contain a server that it passed. The settings of mail servers are judged by `assay-facts` and the catalogue.
#![allow(
    clippy::disallowed_methods,
    reason = "it starts SpamAssassin, and limits its time"
)]

pub mod address_list;
pub mod message;
pub mod spamassassin;
