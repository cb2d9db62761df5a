//! What both images do besides: who may speak, and who may read. A publisher that is looked up, the keys of a group from the bytes of an
//! answer, and a sealed fact that waits for its key at the front of its lane.

use tidings::code::{SealPolicy, SourceRefusal, UnopenedReason};
use tidings::crypto::{Profile, SEAL_TAG, Seal, SecretKey, SubkeySlot};
use tidings::inbound::lane::{Admit, Lane, LaneConfig, LaneItem, Offer};
use tidings::inbound::sources::{
    Judgement, Settled, Slot, SourceAnswer, SourceDrop, SourceLimits, Sources, Window,
};
use tidings::keyring::{
    AnswerReader, KeyPeriod, Keyring, Lookup, PeriodSlot, PullSlot, Which, write_answer,
};
use tidings::wire::cbor::SliceSink;
use tidings::wire::{Body, Draft, Publication};
use tidings::{NodeId, Seed};

use crate::steps::{WALL, at, draft, sign};

const PREFIX: &str = "weather/acme/app";

/// One publisher is admitted, one refused, one not found out about in time; of none more than one lookup is under way.
pub(crate) fn judged() -> bool {
    let mut limits = SourceLimits::default();
    limits.max_publishers = 4;
    let slots = [Slot::<NodeId>::EMPTY; 5];
    let mut rng = Seed::new([6; 32]).fork("sources");
    let Ok(mut sources) = Sources::new(slots, limits, &mut rng) else {
        return false;
    };
    let mut window = Window::new([None; 2]);
    let [good, bad, unknown] = [1, 2, 3].map(|byte| NodeId::new([byte; 32]));
    let mut lookups = [None; 3];
    for (publisher, lookup) in [good, bad, unknown].iter().zip(&mut lookups) {
        let judged = sources.judge(at(0), publisher, |known| {
            window.take(at(0).mono, &limits, known, "link")
        });
        let Judgement::Ask(begun) = judged else {
            return false;
        };
        *lookup = Some(begun.id);
        if sources.judge(at(1), publisher, |_| false) != Judgement::Wait(begun.id) {
            return false;
        }
    }
    let [Some(first), Some(second), Some(third)] = lookups else {
        return false;
    };
    let until = WALL.saturating_add(60_000);
    let reason = SourceRefusal::Withdrawn;
    let admitted = sources.answer(at(2), first, SourceAnswer::Admit { until });
    let refused = sources.answer(at(2), second, SourceAnswer::Refuse(reason));
    let late = (third, Settled::Drop(SourceDrop::Unanswered));
    admitted == Some(Settled::Admit)
        && refused == Some(Settled::Refuse(reason))
        && sources.handle_timeout(at(5000)) == Some(late)
        && sources.judge(at(5001), &good, |_| false) == Judgement::Admit(None)
        && sources.judge(at(5001), &bad, |_| false) == Judgement::Refuse(reason)
        && sources.verdict(at(60_000), &good).is_none()
        && sources.poll_timeout().is_none()
}

type Ring = Keyring<[PeriodSlot; 4], [PullSlot; 4], [SubkeySlot; 4]>;

/// The answer to the only question that is open, as its bytes.
fn given(ring: &mut Ring, millis: u64, secret: [u8; 32]) -> bool {
    let Some(ask) = ring.poll_ask() else {
        return false;
    };
    let until = WALL.saturating_add(900_000);
    let period = KeyPeriod::new(*b"period 1", secret, WALL, until);
    let mut bytes = [0; 256];
    let mut sink = SliceSink::new(&mut bytes);
    write_answer(SealPolicy::Required, PREFIX, &[period], &mut sink);
    let Ok(len) = sink.finish() else {
        return false;
    };
    let Ok(mut answer) = AnswerReader::new(&bytes[..len], PREFIX) else {
        return false;
    };
    let policy = answer.policy();
    let Some(Ok(period)) = answer.next_period() else {
        return false;
    };
    ask.which == Which::Current
        && ring
            .handle_keys(at(millis), ask.which, policy, &[period])
            .is_ok()
}

fn ring(label: &str) -> Ring {
    let periods = [const { PeriodSlot::EMPTY }; 4];
    let subkeys = [const { SubkeySlot::EMPTY }; 4];
    let rng = Seed::new([7; 32]).fork(label);
    let mut ring = Keyring::new(periods, [PullSlot::EMPTY; 4], subkeys, rng);
    ring.join(at(0));
    ring
}

/// A member seals, another opens at the front of its lane once it has the key, and neither can when the key is over.
pub(crate) fn opened_in_order() -> bool {
    const PAYLOAD: &[u8] = b"\x65hello";
    let key = SecretKey::from_seed([9; 32]);
    let (mut writer, mut reader) = (ring("writer"), ring("reader"));
    if !given(&mut writer, 0, [8; 32]) {
        return false;
    }
    let mut objects = [[0; 1024]; 2];
    let mut lens = [0; 2];
    for (at_seq, (object, len)) in objects.iter_mut().zip(&mut lens).enumerate() {
        let Ok((key_id, subkey)) = writer.sealing(at(1), &key.node_id()) else {
            return false;
        };
        let seal = Seal {
            key_id,
            subkey,
            entropy: [at_seq as u8; 32],
        };
        let draft = Draft {
            body: Body::Payload(PAYLOAD),
            ..draft(&key, at_seq as u64 + 1)
        };
        let mut tbs = [0; 512];
        let mut sink = SliceSink::new(&mut tbs);
        let written = draft.encode_sealed_tbs(Profile::ED25519, &seal, &mut sink);
        let (Ok(()), Ok(tbs_len)) = (written, sink.finish()) else {
            return false;
        };
        let Some(signed) = sign(&key, &tbs[..tbs_len], object) else {
            return false;
        };
        *len = signed;
    }
    // The second arrives first; both wait for the key.
    let slots = [const { [const { [const { None }; 4] }; 2] }; 2];
    let config = LaneConfig {
        accepted_wall: WALL,
        ..Default::default()
    };
    let mut lane = Lane::new(slots, config);
    for index in [1, 0] {
        let opened = Publication::open(&objects[index][..lens[index]], Profile::ED25519);
        let Ok((publication, _)) = opened else {
            return false;
        };
        let Some((body, _)) = publication.sealed() else {
            return false;
        };
        reader.want(at(2), body.key_id, &publication.publisher);
        let offer = Offer {
            epoch: publication.epoch.unwrap_or(0),
            seq: publication.seq,
            until: publication.expires_at(),
            replayed: false,
            anycast: false,
            copy_possible: false,
        };
        if !matches!(lane.offer(at(2), offer, index), Admit::Taken) {
            return false;
        }
    }
    let mut read = 0;
    for millis in [3, 4] {
        while let Some(front) = lane.front() {
            let index = *front.item;
            let Ok(publication) =
                Publication::parse(&objects[index][..lens[index]], Profile::ED25519)
            else {
                return false;
            };
            let Some((body, _)) = publication.sealed() else {
                return false;
            };
            let subkey = match reader.lookup(at(millis), body.key_id, &publication.publisher) {
                Lookup::Held { subkey, .. } => subkey,
                Lookup::Waiting => break,
                _ => return false,
            };
            let mut text = [0; PAYLOAD.len() + SEAL_TAG];
            let opened = publication.unseal(subkey, &mut text) == Ok(PAYLOAD);
            read += u64::from(opened);
            if !matches!(lane.poll(), Some(LaneItem::Fact { seq, .. }) if seq == read) {
                return false;
            }
        }
        if millis == 3 && (read != 0 || !given(&mut reader, millis, [8; 32])) {
            return false;
        }
    }
    // 65 minutes, and five for clocks that differ, after it was last sealed under.
    let over = 900_000 + 3_900_000 + 300_000 + 1;
    let end = reader.lookup(at(over), b"period 1", &key.node_id());
    read == 2
        && matches!(end, Lookup::Unopened(UnopenedReason::PeriodExpired))
        && reader.is_empty()
        && writer.sealing(at(900_000), &key.node_id()).is_err()
}
