//! Active checks of hosts that the user names: TLS, Heartbleed (over TCP, STARTTLS and UDP), SSH, SMB and HTTP. Also
//! computes pins of public keys.
//!
//! A probe puts little load on a host: at most two connections at a time, a deadline for every answer and for the whole
//! host, and a size limit for every answer. A check without a result is reported as "unknown" with its reason, never as
//! passed. This crate prints nothing. The caller passes the date at which certificates are judged, and the random seed
//! of ClientHello messages.

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
