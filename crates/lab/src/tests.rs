//! The protocol against garbage, and the agent itself outside of a guest.

mod agent;
