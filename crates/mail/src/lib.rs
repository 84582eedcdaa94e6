//! Judges a stored mail as this machine would: which rules of SpamAssassin match the mail, and which address lists
//! contain a server on its path. `assay-facts` and the catalogue judge the settings of mail servers.
#![allow(
    clippy::disallowed_methods,
    reason = "it starts SpamAssassin, and limits its time"
)]

pub mod address_list;
pub mod message;
pub mod spamassassin;
