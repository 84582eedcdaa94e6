//! What clients, server and controller say to each other: JSON in the bodies of HTTP requests.
//!
//! | request | who | body, answer |
//! |---|---|---|
//! | `POST /join` | client | [`Join`], [`Joined`] |
//! | `POST /poll` | client | [`Poll`], [`Polled`] |
//! | `POST /done` | client | [`Done`], `{}` |
//! | `GET /bytes/N` | client | N bytes; the token may stand behind `?` |
//! | `POST /bytes` | client | anything; `{}` when it was counted |
//! | `GET /clients` | controller | [`Clients`] |
//! | `POST /run` | controller | [`crate::plan::Plan`], [`Started`] |
//! | `GET /run/N` | controller | [`Status`] |
//! | `POST /run/N/abort` | controller | `{}` |
//! | `GET /run/N/person/M` | controller | [`crate::record::PersonRecord`] |

use crate::record::PersonRecord;
use crate::role::Role;
use crate::verdict::Grade;
use serde::{Deserialize, Serialize};

/// Changes when an older client would misunderstand; others are told so.
pub const VERSION: u32 = 1;
/// Header with the token.
pub const TOKEN_HEADER: &str = "assay-token";
/// Header with the number of the client that an upload is counted for, and its role.
pub const CLIENT_HEADER: &str = "assay-client";
/// First bytes of a UDP packet: the key of the client.
pub const KEY: usize = 16;

/// A client comes.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Join {
    /// [`VERSION`].
    pub version: u32,
    /// How it wants to be called.
    pub name: String,
    /// What it is, for people.
    pub agent: String,
}

/// It is in.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Joined {
    /// Its number.
    pub client: u64,
    /// Proves later that it is the same; hexadecimal. UDP packets begin with these bytes.
    pub key: String,
    /// How it is called: another has the name that it wanted, perhaps.
    pub name: String,
    /// Other ports of the server: a browser makes six connections to each.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// A client asks what to do, and reads the server's clock with it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Poll {
    /// Its number.
    pub client: u64,
    /// Its key.
    pub key: String,
    /// How it goes, while a run goes.
    #[serde(default)]
    pub live: Option<Live>,
    /// Number of a run whose verdict it wants to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_of: Option<u64>,
}

/// How it goes: of the last second or so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Live {
    /// Role by role.
    pub roles: Vec<LiveRole>,
}

/// How one role goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LiveRole {
    /// Its name.
    pub role: String,
    /// What ended since the last poll.
    pub ended: u64,
    /// Of these, over the goal or failed.
    pub over: u64,
    /// Longest time in microseconds.
    pub longest_us: u64,
    /// Bytes that came.
    pub bytes: u64,
}

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Polled {
    /// The server's clock, in microseconds since it began.
    pub now_us: i64,
    /// A run in which this client has a part.
    #[serde(default)]
    pub order: Option<ClientOrder>,
    /// The run under way is to end now.
    #[serde(default)]
    pub abort: bool,
    /// The verdict that was asked for, as soon as the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// What a run meant for one person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Number of the run.
    pub run: u64,
    /// How it was.
    pub grade: Grade,
    /// The same in sentences, with the cause.
    pub text: String,
}

/// A part in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Order")]
pub struct ClientOrder {
    /// Number of the run.
    pub run: u64,
    /// When it begins on the server's clock.
    pub start_us: i64,
    /// Seconds that are measured.
    pub seconds: u32,
    /// Whose part.
    pub person: String,
    /// What to do, all at once.
    pub roles: Vec<Role>,
    /// Algorithm of congestion control to send with, where the plan names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// What a client saw.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Done {
    /// Its number.
    pub client: u64,
    /// Its key.
    pub key: String,
    /// Number of the run.
    pub run: u64,
    /// All of it.
    pub record: PersonRecord,
}

/// Who is there.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Clients {
    /// In the order in which they came.
    pub clients: Vec<ClientSeen>,
}

/// One client.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientSeen {
    /// Name.
    pub name: String,
    /// What it is.
    pub agent: String,
    /// Where it comes from.
    pub address: String,
    /// Milliseconds since it was last heard of.
    pub silent_ms: u64,
}

/// A run was planned.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Started {
    /// Its number.
    pub run: u64,
    /// Milliseconds until it begins.
    pub begins_in_ms: u64,
    /// Algorithms of congestion control that the server may send with.
    #[serde(default)]
    pub congestion: Vec<String>,
}

/// How a run stands.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Status {
    /// Microseconds since its start; negative before.
    pub since_us: i64,
    /// Somebody ended it early.
    pub aborted: bool,
    /// Everybody has delivered or is gone, or it took too long.
    pub over: bool,
    /// The people, in the order of the plan.
    pub people: Vec<PersonSeen>,
}

/// How it stands with one person.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PersonSeen {
    /// Who.
    pub person: String,
    /// Name of the client.
    pub client: String,
    /// The client has its part.
    pub told: bool,
    /// Its record is there.
    pub delivered: bool,
    /// The client has not been heard of for long.
    pub vanished: bool,
    /// How it goes.
    pub live: Option<Live>,
}

/// What went wrong, for people; the body of every answer but 200.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Refusal {
    /// Why.
    pub error: String,
}
