//! What keeps the two schemes apart. Against the vector its system published it is held in `tests/published.rs`.

use alloc::vec::Vec;

use super::*;
use crate::wire::cbor;
use crate::{RealmId, WallMs};

#[test]
fn the_two_schemes_share_no_key_and_no_associated_data() {
    let period = PeriodKey::new([1; 8], [2; 32]);
    let publisher = NodeId::new([3; 32]);
    let first = Subkey1::derive(&period, &publisher);
    let second = super::super::Subkey::derive(&period, &publisher);
    assert_ne!(first.bytes(), second.bytes());
    let place = Place {
        realm: RealmId::new([4; 32]),
        topic: "a/b",
        publisher,
        epoch: Some(5),
        seq: 6,
        published_at: WallMs::new(7),
        key_id: *period.id(),
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    Subkey1::encode_aad(&place, &mut a);
    place.encode_aad(&mut b);
    assert_ne!(a, b);
    assert_eq!(cbor::check(&a, false), Ok(()));
}
