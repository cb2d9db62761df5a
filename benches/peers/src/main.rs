//! Lines of the speed table that need a peer with dependencies of its own; `tidings-benches` builds this, runs it and takes its lines.

mod aead;
mod broadcast;
mod gossip;

use tidings_benches::harness::{Group, ROUNDS, measure};

fn main() {
    let mut groups: [Box<dyn Group>; 3] = [
        Box::new(gossip::Gossip::new()),
        Box::new(aead::Aead::new()),
        Box::new(broadcast::Broadcast::new()),
    ];
    for line in measure(&mut groups, ROUNDS) {
        println!("{}", line.encode());
    }
}
