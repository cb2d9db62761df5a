//! What a link is handed in long pieces, written for others before it, is what it would be handed frame by frame.

use tidings::wire::{self, Frame};
use tidings::{Intake, LinkId};

use super::common::{Fact, Far, TOPIC, at, realm, signer};
use super::world::World;

/// What `Rng` is to the library, in three lines.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// One subscription on two links: one that offers no room and so gets one frame at a time, and one that offers some.
struct Pair {
    plain: LinkId,
    roomy: LinkId,
    room: usize,
}

/// What both get. The objects of the narrow ones just fit, or just do not.
struct Wanted {
    id: u64,
    filter: &'static str,
    max_frame: u32,
}

impl Pair {
    fn new(world: &mut World, wanted: &Wanted, room: usize) -> Self {
        let mut link = || {
            let now = at(world.now_ms);
            let mut far = Far::reading(&mut world.station, now, signer(9), wanted.max_frame);
            let subscribe = Frame::Subscribe(wire::Subscribe {
                id: wanted.id,
                realm: realm(),
                filter: wanted.filter,
                resume: None,
            });
            let taken = far.frame(&mut world.station, now, &subscribe);
            assert_eq!(taken, Ok(Intake::Open));
            far.id
        };
        Self {
            plain: link(),
            roomy: link(),
            room,
        }
    }

    /// The one that offers room is polled so often at most, the other until it has as many bytes. Answers how many bytes were lent.
    fn read(&self, world: &mut World, calls: u64) -> usize {
        let (mut roomy, mut plain, mut lent) = (Vec::new(), Vec::new(), 0);
        for _ in 0..calls {
            let Some((bytes, shared)) = poll(world, self.roomy, self.room) else {
                break;
            };
            roomy.extend(bytes);
            lent += shared;
        }
        while plain.len() < roomy.len() {
            let (bytes, _) = poll(world, self.plain, 0).expect("the other had as much");
            let length = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
            assert_eq!(bytes.len(), 4 + length as usize, "one frame at a time");
            plain.extend(bytes);
        }
        assert!(plain == roomy, "other frames, or others first");
        lent
    }
}

/// What a driver with so much room is handed at once, and how much of it is lent.
fn poll(world: &mut World, link: LinkId, room: usize) -> Option<(Vec<u8>, usize)> {
    let mut out = Vec::with_capacity(room);
    let transmit = world.station.poll_transmit(link, &mut out)?;
    assert!(room == 0 || out.capacity() == room || out.len() < 2048);
    assert!(transmit.len() < 20_000);
    let (bytes, lent) = (transmit.len(), transmit.body().len());
    out.extend_from_slice(transmit.body());
    assert_eq!(out.len(), bytes);
    let now = at(world.now_ms);
    world.station.handle_written(now, link, bytes);
    Some((out, lent))
}

fn fact(world: &World, topic: &'static str, value: u64, ttl_ms: u32) -> Fact<'static> {
    Fact {
        topic,
        value,
        ttl_ms: Some(ttl_ms),
        published_at: at(world.now_ms).wall,
        ..Fact::numbered(world.published + 1)
    }
}

const LONG: &str = "weather/acme/app/a_topic_whose_name_is_so_long_that_a_fact_of_it_is_as_long_as_the_shortest_frame_that_a_side_may_announce_says/b_v1";

#[test]
fn a_link_that_offers_room_is_handed_what_one_that_offers_none_is_handed_frame_by_frame() {
    let mut lent = 0;
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let mut world = World::new(100);
        let short = fact(&world, LONG, 0, 60_000).sign(&signer(7)).len() as u32;
        let (wide, narrow) = (wire::DEFAULT_MAX_FRAME, short + 4 + wire::MAX_HEAD as u32);
        assert!(narrow >= wire::MIN_MAX_FRAME, "{narrow}");
        let wanted = |id, filter, max_frame| Wanted {
            id,
            filter,
            max_frame,
        };
        let pairs: Vec<Pair> = [
            wanted(1, TOPIC, wide),
            wanted(1, TOPIC, wide),
            wanted(1, TOPIC, wide),
            wanted(7, TOPIC, wide),
            wanted(30, TOPIC, wide),
            wanted(31, TOPIC, wide),
            wanted(700, TOPIC, wide),
            wanted(1, "weather/**", wide),
            wanted(2, "weather/**", wide),
            wanted(1, LONG, wide),
            wanted(1, LONG, narrow),
            wanted(5, LONG, wide),
        ]
        .iter()
        .map(|wanted| {
            let room = [600, 3000, 20_000, 65_536][dice.below(4) as usize];
            Pair::new(&mut world, wanted, room)
        })
        .collect();
        for _ in 0..40 {
            let topic = [TOPIC, TOPIC, LONG][dice.below(3) as usize];
            for _ in 0..[1, 3, 12, 60][dice.below(4) as usize] {
                let value = [0, 0, 0, 1 << 40][dice.below(4) as usize];
                let ttl_ms = [60_000, 60_000, 60_000, 40][dice.below(4) as usize];
                let next = fact(&world, topic, value, ttl_ms);
                world.publish_fact(&next);
            }
            for pair in &pairs {
                if dice.below(8) == 0 {
                    world.wait(dice.below(40));
                }
                lent += pair.read(&mut world, [0, 1, 9, 1000][dice.below(4) as usize]);
            }
        }
        for pair in &pairs {
            lent += pair.read(&mut world, u64::MAX);
            assert_eq!(poll(&mut world, pair.plain, 0), None);
        }
        assert!(world.counter("skips") > 0);
    }
    assert!(lent > 0, "nothing was shared");
}
