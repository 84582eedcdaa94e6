//! Tests the protocol with arbitrary bytes, and the agent outside of a guest.

mod agent;
