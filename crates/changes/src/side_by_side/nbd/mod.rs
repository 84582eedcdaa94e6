//! The NBD protocol (github.com/NetworkBlockDevice/nbd, doc/proto.md). This module contains the parts common
//! to the client, which fills and checks images, and the disk with a volatile cache.

pub(crate) mod client;
pub(crate) mod disk;

pub(crate) use client::Client;
pub(crate) use disk::Disk;

pub(crate) const MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST: u32 = 0x2560_9513;
pub(crate) const REPLY: u32 = 0x6744_6698;
pub(crate) const OPT_GO: u32 = 7;
pub(crate) const REP_ACK: u32 = 1;
pub(crate) const REP_INFO: u32 = 3;
pub(crate) const INFO_EXPORT: u16 = 0;
pub(crate) const CMD_READ: u16 = 0;
pub(crate) const CMD_WRITE: u16 = 1;
pub(crate) const CMD_DISCONNECT: u16 = 2;
pub(crate) const CMD_FLUSH: u16 = 3;
pub(crate) const FLAG_FUA: u16 = 1;

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(four)
}
