//! What the images do. Each step answers whether it came out as it must; none may panic.

use tidings::{Duration, Instant, NodeId, RealmId, Seed, soonest};

pub(crate) const ALL: &[fn() -> bool] = &[ids, clocks, randomness];

fn ids() -> bool {
    let named = RealmId::of_name("x");
    named.as_bytes()[..2] == [0x2d, 0x71]
        && NodeId::of_key("ed25519", &[7; 32]) != NodeId::new([0; 32])
}

fn clocks() -> bool {
    let later = Instant::from_millis(5).saturating_add(Duration::from_millis(1));
    soonest(Some(later), Some(Instant::from_micros(u64::MAX))) == Some(Instant::from_micros(6000))
}

fn randomness() -> bool {
    let (mut one, mut two) = (Seed::new([1; 32]).fork("a"), Seed::new([1; 32]).fork("a"));
    one.next_u64() == two.next_u64() && one.below(10) < 10
}
