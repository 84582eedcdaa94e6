//! Two variants alive side by side, made from real images, file systems and servers.

mod bench;
mod durability;
mod filesystem;
mod image;
mod killed;
mod sshd;
