//! Messages between clients, server and controller: JSON in the bodies of HTTP requests.
//!
//! | request | sender | body, answer |
//! |---|---|---|
//! | `POST /join` | client | [`Join`], [`Joined`] |
//! | `POST /poll` | client | [`Poll`], [`Polled`] |
//! | `POST /done` | client | [`Done`], `{}` |
//! | `GET /bytes/N` | client | N bytes; the token may be in the query |
//! | `POST /bytes` | client | any bytes; `{}` when they are counted |
//! | `GET /clients` | controller | [`Clients`] |
//! | `POST /run` | controller | [`crate::plan::NetPlan`], [`Started`] |
//! | `GET /run/N` | controller | [`Status`] |
//! | `POST /run/N/abort` | controller | `{}` |
//! | `GET /run/N/person/M` | controller | [`crate::record::PersonRecord`] |

use crate::record::PersonRecord;
use crate::role::Role;
use crate::verdict::Grade;
use serde::{Deserialize, Serialize};

/// Protocol version. It must be increased if an older client would misunderstand the server. The server refuses clients
/// with another version and explains why.
pub const VERSION: u32 = 1;
/// Name of the HTTP header that contains the token.
pub const TOKEN_HEADER: &str = "assay-token";
/// Header with the number of the client and the role of an upload.
pub const CLIENT_HEADER: &str = "assay-client";
/// Length of a client's key in bytes. A UDP packet starts with the key.
pub const KEY: usize = 16;

/// Request of a client to join.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Join {
    /// Protocol version that the client uses, [`VERSION`].
    pub version: u32,
    /// Name under which the client wants to appear.
    pub name: String,
    /// Program of the client and its version, for display.
    pub agent: String,
}

/// Answer to [`Join`]: the server has accepted the client.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Joined {
    /// Number that the server assigned to the client. Later requests contain it.
    pub client: u64,
    /// Secret key in hexadecimal, by which later requests prove the client's identity. UDP packets start with its
    /// bytes.
    pub key: String,
    /// Assigned name. It differs from the requested name if that name is taken.
    pub name: String,
    /// Additional ports of the server. A browser needs them because it opens only six connections per port.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// Request by which a client regularly polls for orders and reports its progress. The answer also contains the server's
/// clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Poll {
    /// Number of the client, from [`Joined`].
    pub client: u64,
    /// Key of the client, from [`Joined`].
    pub key: String,
    /// Progress of the client; only during a run.
    #[serde(default)]
    pub live: Option<Live>,
    /// Number of a run whose verdict the client wants to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_of: Option<u64>,
}

/// What happened at a client since its last poll, for live displays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Live {
    /// Progress of each role.
    pub roles: Vec<LiveRole>,
}

/// What happened in one role since the last poll.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveRole {
    /// Name of the role.
    pub role: String,
    /// Number of events that ended since the last poll.
    pub ended: u64,
    /// Number of late or failed events among them.
    pub over: u64,
    /// Longest duration of an event that ended since the last poll, in microseconds.
    pub longest_us: u64,
    /// Bytes received since the last poll.
    pub bytes: u64,
}

/// Answer to [`Poll`], with an order, an abort or a verdict for the client.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Polled {
    /// The server's clock, in microseconds since its start.
    pub now_us: i64,
    /// Order for a run in which this client takes part.
    #[serde(default)]
    pub order: Option<ClientOrder>,
    /// Whether the current run must end now.
    #[serde(default)]
    pub abort: bool,
    /// Verdict that the client requested; `None` until the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Verdict on one person's run, as the device shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Number of the run.
    pub run: u64,
    /// Grade of the person's result.
    pub grade: Grade,
    /// Verdict as text, with the cause.
    pub text: String,
}

/// Order for a client: the part that one person has in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Order")]
pub struct ClientOrder {
    /// Number of the run.
    pub run: u64,
    /// Start time on the server's clock, in microseconds.
    pub start_us: i64,
    /// Duration of the measurement in seconds.
    pub seconds: u32,
    /// Name of the person that the client represents.
    pub person: String,
    /// Roles, which all run at the same time.
    pub roles: Vec<Role>,
    /// Congestion control algorithm with which the device must send, if the plan contains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// A client's record of a run.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Done {
    /// Number of the client, from [`Joined`].
    pub client: u64,
    /// Key of the client, from [`Joined`].
    pub key: String,
    /// Number of the run.
    pub run: u64,
    /// What the client observed during the run.
    pub record: PersonRecord,
}

/// List of the clients that have joined, for a controller.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Clients {
    /// Clients in the order in which they joined.
    pub clients: Vec<ClientSeen>,
}

/// A client, as a controller sees it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientSeen {
    /// Name that the server assigned.
    pub name: String,
    /// Program of the client and its version.
    pub agent: String,
    /// IP address from which the client joined.
    pub address: String,
    /// Milliseconds since the client's last poll.
    pub silent_ms: u64,
}

/// Answer of the server after it has accepted a new run.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Started {
    /// Number of the new run, for later requests.
    pub run: u64,
    /// Milliseconds until the run starts.
    pub begins_in_ms: u64,
    /// Congestion control algorithms that the server may use for sending.
    #[serde(default)]
    pub congestion: Vec<String>,
}

/// Status of a run, for a controller.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Status {
    /// Microseconds since the start of the run; negative before the start.
    pub since_us: i64,
    /// Whether a user or the controller aborted the run.
    pub aborted: bool,
    /// Whether the run is over: every client has delivered its record or is gone, or the time limit has passed.
    pub over: bool,
    /// Status of each person, in the order of the plan.
    pub people: Vec<PersonSeen>,
}

/// Status of one person in a run.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PersonSeen {
    /// Name of the person.
    pub person: String,
    /// Name of the client.
    pub client: String,
    /// Whether the client has received its order.
    pub told: bool,
    /// Whether the client's record has arrived.
    pub delivered: bool,
    /// Whether the client has not polled for so long that it counts as gone.
    pub vanished: bool,
    /// Progress of the client, if it has reported any.
    pub live: Option<Live>,
}

/// Error for users. It is the body of every answer with a status other than 200.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Refusal {
    /// Reason why the request failed.
    pub error: String,
}
