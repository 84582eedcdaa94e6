//! Active checks of hosts that the user names: TLS, Heartbleed (on TCP, behind STARTTLS and on UDP), SSH,
//! SMB, HTTP; and pins of public keys.
//!
//! A visit is gentle: at most two connections at once, a deadline for every answer and for the whole
//! host, and no more is read than an honest answer holds. What did not come out is "unknown" with its
//! reason, never "fine". Nothing here prints; the date by which certificates are judged and what is random
//! in hellos are passed in.

pub mod address;
pub mod certificate;
pub mod credential;
pub mod dtls;
pub mod error;
pub mod heartbleed;
pub mod http;
pub mod pins;
pub mod remark;
pub mod smb;
pub mod ssh;
pub mod starttls;
pub mod tls;
pub mod visit;

pub use address::Target;
pub use error::ProbeError;
pub use remark::{Remark, Severity};
pub use starttls::Starttls;
pub use visit::{Patience, Visit, Where};
