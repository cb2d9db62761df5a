//! Failures that people met elsewhere, each as a test that it is not met here. The first line of each says what they saw.

mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod order;

use common::{Fact, Far, Node, TOPIC, open, signer};
use tidings::{Intake, Now, Station};

fn subscribe(far: &mut Far, station: &mut Station, now: Now, id: u64) {
    let taken = far.subscribe(station, now, id, TOPIC);
    assert_eq!(taken, Ok(Intake::Open));
}

fn publish(far: &mut Far, station: &mut Station, now: Now, id: u64, fact: Fact<'_>) {
    let taken = far.publish(station, now, id, &fact.sign(&signer(7)));
    assert_eq!(taken, Ok(Intake::Open));
}
