//! The core without std and without libc: a static Linux program with its own `_start`, panic handler and, in the second image,
//! its own allocator. It uses what it links, so that the linker keeps it, and exits with the number of the first step that fails.

#![no_std]
#![no_main]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
mod heap;
#[cfg(feature = "alloc")]
mod large;
mod memory;
mod rights;
mod steps;

use core::arch::{asm, global_asm};

// The kernel enters with the stack aligned to 16 and no return address; a call expects one.
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {start}",
    "ud2",
    start = sym start,
);

extern "C" fn start() -> ! {
    let failed = steps::ALL.iter().position(|step| !step());
    exit(failed.map_or(0, |index| index as u64 + 1))
}

fn exit(code: u64) -> ! {
    // SAFETY: system call 60 is `exit`, which takes one number and does not return.
    unsafe { asm!("syscall", in("rax") 60, in("rdi") code, options(noreturn, nostack)) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}
