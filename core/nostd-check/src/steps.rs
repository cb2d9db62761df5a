//! What both images do: a device without an allocator, from its key to a fact in its order. Each step answers whether it came out as it
//! must.

use tidings::crypto::{
    PeriodKey, Profile, SEAL_TAG, Seal, SecretKey, Signer, SubkeyCache, SubkeySlot,
};
use tidings::inbound::dedup::{self, Dedup, Group, NewEntry, groups_for};
use tidings::inbound::lane::{Admit, Lane, LaneConfig, LaneItem, Offer};
use tidings::link::{Binding, Link, LinkSettings, Step};
use tidings::ring::{Resume, Ring};
use tidings::table::Table;
use tidings::wire::cbor::{SliceSink, check};
use tidings::wire::object::{PUBLICATION_LABEL, sign_tbs, write_object};
use tidings::wire::{Body, Draft, Publication, Role, Split, next_frame};
use tidings::{Duration, Instant, NodeId, Now, RealmId, Seed, WallMs, soonest, topic};

pub(crate) const ALL: &[fn() -> bool] = &[
    ids,
    clocks,
    tables,
    handshake,
    publication,
    sealed,
    crate::rights::judged,
    crate::rights::opened_in_order,
    #[cfg(feature = "alloc")]
    crate::large::facts_arrive,
];

pub(crate) const WALL: WallMs = WallMs::new(1_790_000_000_000);

pub(crate) fn at(millis: u64) -> Now {
    Now::new(Instant::from_millis(millis), WALL.saturating_add(millis))
}

fn ids() -> bool {
    let named = RealmId::of_name("x");
    named.as_bytes()[..2] == [0x2d, 0x71]
        && NodeId::of_key("ed25519", &[7; 32]) != NodeId::new([0; 32])
}

fn clocks() -> bool {
    let later = Instant::from_millis(5).saturating_add(Duration::from_millis(1));
    soonest(Some(later), Some(Instant::from_micros(u64::MAX))) == Some(Instant::from_micros(6000))
}

fn tables() -> bool {
    let mut rng = Seed::new([3; 32]).fork("tables");
    let mut table = Table::new([const { None }; 8], 4, &mut rng);
    let known =
        (0..4u64).all(|key| table.insert(key, key * 2).is_ok()) && table.get(&3) == Some(&6);
    let mut ring = Ring::new([const { None }; 4], 1000);
    for number in 0..6u32 {
        ring.push(number, 10);
    }
    known && table.insert(9, 9).is_err() && matches!(ring.resume(0), Resume::Expired { .. })
}

/// A fixed buffer of frames on their way.
struct Wire {
    bytes: [u8; 1024],
    len: usize,
}

impl Wire {
    /// Moves what `from` has to send to `to`; answers what the last frame brought.
    fn carry(from: &mut Link, to: &mut Link, signer: &SecretKey) -> Option<Step> {
        let mut wire = Self {
            bytes: [0; 1024],
            len: 0,
        };
        let mut brought = None;
        loop {
            let mut sink = SliceSink::new(&mut wire.bytes);
            if !from.poll_transmit(&mut sink) {
                return brought;
            }
            wire.len = sink.finish().ok()?;
            let Ok(Split::Frame { body, .. }) = next_frame(&wire.bytes[..wire.len], to.frame_cap())
            else {
                return None;
            };
            brought = Some(to.handle_frame(at(1), body, signer).ok()?);
        }
    }
}

fn handshake() -> bool {
    let (node, station) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
    let settings = |key: &SecretKey, role| LinkSettings {
        allow_local: true,
        ..LinkSettings::new(Profile::ED25519, key.public_key(), role)
    };
    let dialled = Link::dial(
        at(0).mono,
        settings(&node, Role::Node),
        None,
        Binding::Local,
        [5; 32],
    );
    let accepted = Link::accept(
        at(0).mono,
        settings(&station, Role::Station),
        Binding::Local,
        [6; 32],
    );
    let (Ok(mut dialler), Ok(mut answerer)) = (dialled, accepted) else {
        return false;
    };
    let opened = Wire::carry(&mut dialler, &mut answerer, &station) == Some(Step::Continue);
    let challenged = Wire::carry(&mut answerer, &mut dialler, &node) == Some(Step::Continue);
    let connected = Wire::carry(&mut dialler, &mut answerer, &station);
    opened
        && challenged
        && matches!(connected, Some(Step::Verified(peer)) if peer.id == node.node_id())
        && answerer.admit(&station).is_ok()
        && matches!(Wire::carry(&mut answerer, &mut dialler, &node),
            Some(Step::Established(peer)) if peer.id == station.node_id())
        && dialler.is_up()
}

pub(crate) fn draft(key: &SecretKey, seq: u64) -> Draft<'static> {
    Draft {
        realm: RealmId::of_name("weather"),
        topic: "weather/acme/app/days/measured_v1",
        publisher: key.node_id(),
        epoch: Some(WALL.as_millis() * 1000),
        seq,
        published_at: WALL,
        ttl_ms: Some(60_000),
        one: false,
        body: Body::Payload(&[0x01]),
    }
}

/// Writes a signed publication into `out` and answers its length.
fn write(key: &SecretKey, seq: u64, out: &mut [u8]) -> Option<usize> {
    let mut tbs = [0; 512];
    let mut sink = SliceSink::new(&mut tbs);
    draft(key, seq).encode_tbs(Profile::ED25519, &mut sink);
    let tbs_len = sink.finish().ok()?;
    sign(key, &tbs[..tbs_len], out)
}

/// Signs `tbs` and writes the object around it.
pub(crate) fn sign(key: &SecretKey, tbs: &[u8], out: &mut [u8]) -> Option<usize> {
    let public = key.public_key();
    let signature = sign_tbs(key, &public, PUBLICATION_LABEL, tbs).ok()?;
    let mut sink = SliceSink::new(out);
    write_object(&mut sink, &public, tbs, &signature);
    sink.finish().ok()
}

/// Three publications in the wrong order, each twice, through verification, dedup and a lane.
fn publication() -> bool {
    let key = SecretKey::from_seed([9; 32]);
    let mut rng = Seed::new([4; 32]).fork("dedup");
    let slots = [const { dedup::Slot::EMPTY }; 8];
    let groups: [Group; groups_for(8)] = [const { Group::EMPTY }; groups_for(8)];
    let mut dedup = Dedup::new(slots, groups, [0; 2], &mut rng);
    let lane_slots = [const { [const { [const { None }; 4] }; 2] }; 2];
    let mut lane = Lane::new(
        lane_slots,
        LaneConfig {
            accepted_wall: WALL,
            ..Default::default()
        },
    );
    let mut bytes = [0; 1024];
    let mut duplicates = 0;
    for (step, seq) in [1, 3, 3, 2, 1, 2].into_iter().enumerate() {
        let Some(len) = write(&key, seq, &mut bytes) else {
            return false;
        };
        let now = at(step as u64);
        let Ok((publication, _)) = Publication::open(&bytes[..len], Profile::ED25519) else {
            return false;
        };
        let fits = topic::matches("weather/*/app/**", publication.topic)
            && publication.freshness(now.wall).is_ok()
            && check(&bytes[..len], false).is_ok();
        let id = publication.hash();
        if !fits || dedup.check(&id).is_some() {
            duplicates += u32::from(fits);
            continue;
        }
        let signature = dedup.signature_key(publication.key, publication.signature);
        let until = publication.expires_at();
        let entry = NewEntry {
            id: &id,
            signature,
            until,
            tag: 0,
            seq,
        };
        let offer = Offer {
            epoch: publication.epoch.unwrap_or(0),
            seq,
            until,
            replayed: false,
            anycast: false,
            copy_possible: false,
        };
        if dedup.commit(now, entry).is_err()
            || !matches!(lane.offer(now, offer, seq as u8), Admit::Taken)
        {
            return false;
        }
    }
    let mut in_order = true;
    for want in 1..=3 {
        in_order &= matches!(lane.poll(), Some(LaneItem::Fact { seq, item, late: false, .. })
            if seq == want && u64::from(item) == want);
    }
    bytes[100] ^= 1;
    in_order
        && duplicates == 3
        && lane.poll().is_none()
        && lane.poll_timeout().is_none()
        && Publication::open(&bytes, Profile::ED25519).is_err()
}

/// A payload sealed and signed into one buffer, opened in another; a flipped bit is noticed.
fn sealed() -> bool {
    const PAYLOAD: &[u8] = b"\x65hello";
    let key = SecretKey::from_seed([9; 32]);
    let period = PeriodKey::new([1; 8], [2; 32]);
    let slots = [const { SubkeySlot::EMPTY }; 2];
    let mut subkeys = SubkeyCache::new(slots, &mut Seed::new([5; 32]).fork("subkeys"));
    let seal = Seal {
        key_id: *period.id(),
        subkey: subkeys.subkey(&period, &key.node_id()),
        entropy: [6; 32],
    };
    let draft = Draft {
        body: Body::Payload(PAYLOAD),
        ..draft(&key, 1)
    };
    let mut tbs = [0; 512];
    let mut sink = SliceSink::new(&mut tbs);
    let written = draft.encode_sealed_tbs(Profile::ED25519, &seal, &mut sink);
    let (Ok(()), Ok(tbs_len)) = (written, sink.finish()) else {
        return false;
    };
    let mut object = [0; 1024];
    let Some(len) = sign(&key, &tbs[..tbs_len], &mut object) else {
        return false;
    };
    let Ok((publication, _)) = Publication::open(&object[..len], Profile::ED25519) else {
        return false;
    };
    let mut text = [0; PAYLOAD.len() + SEAL_TAG];
    let opened = publication.unseal(seal.subkey, &mut text) == Ok(PAYLOAD);
    let Some((body, place)) = publication.sealed() else {
        return false;
    };
    let mut flipped = [0; PAYLOAD.len() + SEAL_TAG];
    flipped.copy_from_slice(body.ct);
    flipped[3] ^= 1;
    let refused = seal.subkey.open(&place, body.nonce, &mut flipped).is_err();
    opened && refused && subkeys.derivations() == 1 && subkeys.forget(period.id()) == 1
}
