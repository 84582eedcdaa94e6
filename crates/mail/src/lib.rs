//! Judges a stored mail as this machine would judge it: which rules of SpamAssassin match the mail, and which address
//! lists contain a server on its path. The settings of mail servers are checked in `assay-facts` and the catalogue.
#![allow(
    clippy::disallowed_methods,
    reason = "it starts SpamAssassin, and limits its time"
)]

pub mod address_list;
pub mod message;
pub mod spamassassin;
