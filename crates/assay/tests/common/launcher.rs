//! A program of two hundred bytes that starts assay: uploaded to machines that are this computer.

use std::path::Path;

/// Where the program is loaded.
const BASE: u64 = 0x40_0000;
/// Bytes of the ELF header and of one program header.
const HEADERS: usize = 64 + 56;

/// Machine code for x86-64 that calls `execve(path, argv, envp)`, and exits with 1 if that fails. The path follows.
const CODE: [u8; 40] = [
    0x48, 0x8b, 0x14, 0x24, // mov rdx, [rsp]: the number of arguments
    0x48, 0x8d, 0x54, 0xd4, 0x10, // lea rdx, [rsp + 8 * rdx + 16]: the environment
    0x48, 0x8d, 0x74, 0x24, 0x08, // lea rsi, [rsp + 8]: the arguments
    0x48, 0x8d, 0x3d, 0x13, 0x00, 0x00, 0x00, // lea rdi, [rip + 19]: the path
    0xb8, 0x3b, 0x00, 0x00, 0x00, // mov eax, 59: execve
    0x0f, 0x05, // syscall
    0xbf, 0x01, 0x00, 0x00, 0x00, // mov edi, 1
    0xb8, 0x3c, 0x00, 0x00, 0x00, // mov eax, 60: exit
    0x0f, 0x05, // syscall
];

/// Returns an ELF program that executes the program at `path` with its own arguments and environment; `None` for
/// another processor than x86-64.
pub fn program_that_executes(path: &Path) -> Option<Vec<u8>> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let path = path.to_str()?.as_bytes();
    let size = (HEADERS + CODE.len() + path.len() + 1) as u64;
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    let half = |elf: &mut Vec<u8>, value: u16| elf.extend(value.to_le_bytes());
    let word = |elf: &mut Vec<u8>, value: u32| elf.extend(value.to_le_bytes());
    let long = |elf: &mut Vec<u8>, value: u64| elf.extend(value.to_le_bytes());
    // An executable file for x86-64.
    half(&mut elf, 2);
    half(&mut elf, 62);
    word(&mut elf, 1);
    long(&mut elf, BASE + HEADERS as u64);
    // The program header follows; there are no sections.
    long(&mut elf, 64);
    long(&mut elf, 0);
    word(&mut elf, 0);
    for value in [64, 56, 1, 64, 0, 0] {
        half(&mut elf, value);
    }
    // One segment, to read and to execute: the whole file.
    word(&mut elf, 1);
    word(&mut elf, 5);
    for value in [0, BASE, BASE, size, size, 0x1000] {
        long(&mut elf, value);
    }
    elf.extend(CODE);
    elf.extend(path);
    elf.push(0);
    Some(elf)
}
