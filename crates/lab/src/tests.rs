//! Tests of the protocol with arbitrary bytes, and of the agent outside of a guest.

mod agent;
