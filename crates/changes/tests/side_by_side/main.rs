//! Builds two arms at the same time, from real images, file systems and servers.

mod bench;
mod durability;
mod filesystem;
mod image;
mod killed;
mod sshd;
