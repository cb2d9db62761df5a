//! Goal 18: allocations, counted.

use allocation_counter::{AllocationInfo, measure};
use tidings::Verification;
use tidings::code::ObjectFault;
use tidings::crypto::Signer;
use tidings::wire::{Body, Draft};

use crate::line::Line;
use crate::reader::{PER_READ, Reader, Setup};
use crate::world::{Facts, Keys, TOPIC, after, key, payload, realm, resigned};

/// Events counted for each line.
const COUNT: usize = 1024;

/// What reading these takes, counted over all of them.
fn count(reader: &mut Reader, second: u64, objects: &[Vec<u8>]) -> [u64; 2] {
    let mut reads = reader.reads(objects);
    let AllocationInfo { count_total, .. } = measure(|| {
        for (at, read) in reads.iter_mut().enumerate() {
            reader.read(after(second + at as u64), read);
        }
    });
    [count_total, objects.len() as u64]
}

pub(crate) fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    let seconds = (COUNT / PER_READ) as u64;
    for (verification, what) in [
        (Verification::Here, "allocations, new event"),
        (
            Verification::Asked,
            "allocations, new event verified elsewhere",
        ),
    ] {
        let mut facts = Facts::new(Keys::Real);
        let mut reader = Reader::new(Setup {
            verification,
            ..Setup::default()
        });
        let mut second = reader.settle(&mut facts);
        let objects = facts.many(after(second), COUNT);
        lines.push(Line::allocations(
            18,
            what,
            count(&mut reader, second, &objects),
            1,
        ));
        assert_eq!(reader.taken.facts, COUNT);
        second += seconds;
        if verification != Verification::Here {
            continue;
        }
        let exact = count(&mut reader, second, &objects);
        let altered: Vec<_> = objects.iter().map(|object| resigned(object)).collect();
        let other = count(&mut reader, second, &altered);
        let both = [exact[0] + other[0], exact[1] + other[1]];
        lines.push(Line::allocations(18, "allocations, duplicate", both, 0));
        let forged = facts.many(after(second), COUNT);
        let forged: Vec<_> = forged.iter().map(|object| resigned(object)).collect();
        let refused = count(&mut reader, second, &forged);
        lines.push(Line::allocations(
            18,
            "allocations, refused event",
            refused,
            0,
        ));
        let faults = reader.client.status().faults;
        assert_eq!(faults.of(ObjectFault::Duplicate), 2 * COUNT as u64);
        assert_eq!(faults.of(ObjectFault::SignatureInvalid), COUNT as u64);
    }
    lines.push(Line::allocations(
        18,
        "allocations, publication into a buffer",
        publish(),
        0,
    ));
    lines
}

fn publish() -> [u64; 2] {
    let signer = key(5);
    let payload = payload(1);
    let draft = Draft {
        realm: realm(),
        topic: TOPIC,
        publisher: signer.node_id(),
        epoch: Some(1),
        seq: 1,
        published_at: after(0).wall,
        ttl_ms: None,
        one: false,
        body: Body::Payload(&payload),
    };
    let mut out = Vec::with_capacity(draft.object_len(signer.profile()));
    let info = measure(|| draft.sign(&signer, &mut out).expect("a key in memory"));
    assert_eq!(out.len(), out.capacity());
    [info.count_total, 1]
}
