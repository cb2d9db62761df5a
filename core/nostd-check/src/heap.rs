//! The smallest allocator that serves: a fixed arena that only ever moves forward. A program of a few steps needs no more.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const SIZE: usize = 32 << 20;

#[repr(align(64))]
struct Arena(UnsafeCell<[u8; SIZE]>);

// SAFETY: each byte of the arena is handed out once, by `Forward`, to whoever asked for it.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; SIZE]));

struct Forward(AtomicUsize);

#[global_allocator]
static HEAP: Forward = Forward(AtomicUsize::new(0));

// SAFETY: every block lies inside the arena, is aligned as asked (the arena to 64, its offset to the layout's), and overlaps no other
// because the offset only grows.
unsafe impl GlobalAlloc for Forward {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 64 {
            return null_mut();
        }
        let mut at = 0;
        let claimed = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                at = used.checked_next_multiple_of(layout.align())?;
                at.checked_add(layout.size()).filter(|end| *end <= SIZE)
            });
        match claimed {
            // SAFETY: `at + size <= SIZE`.
            Ok(_) => unsafe { ARENA.0.get().cast::<u8>().add(at) },
            Err(_) => null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
