use curve25519_dalek::constants::EIGHT_TORSION;

use std::vec::Vec;

use super::*;

#[test]
fn the_table_holds_exactly_the_small_order_points() {
    let mut expected: Vec<[u8; 32]> = EIGHT_TORSION
        .iter()
        .map(|p| p.compress().to_bytes())
        .collect();
    let mut table = SMALL_ORDER.to_vec();
    expected.sort_unstable();
    table.sort_unstable();
    assert_eq!(table, expected);
}
