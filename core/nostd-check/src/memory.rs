//! The five routines the compiler may call on its own, which libc or the target would otherwise bring. In string instructions, so that no
//! loop here is turned into a call of itself.

use core::arch::asm;

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises `len` bytes at both places; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: as promised by the caller; a copy forwards does not overwrite what it still has to read.
        return unsafe { memcpy(to, from, len) };
    }
    // SAFETY: `len` is at least 1 here; backwards from the last byte, and the flag is cleared again.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _, inout("rdi") to.add(len - 1) => _,
            inout("rsi") from.add(len - 1) => _, options(nostack));
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: the caller promises `len` bytes.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags));
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    let (mut a, mut b) = (a, b);
    if len == 0 {
        return 0;
    }
    // SAFETY: the caller promises `len` bytes at both places; both pointers end one past the last byte compared.
    unsafe {
        asm!("repe cmpsb", inout("rcx") len => _, inout("rdi") b, inout("rsi") a, options(nostack, readonly));
        i32::from(*a.sub(1)) - i32::from(*b.sub(1))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the same promise.
    unsafe { memcmp(a, b, len) }
}
