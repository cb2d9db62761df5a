//! The ledger of one node: what is neither delivered nor superseded is told, once, in the window it belongs to.

mod common;

use common::{Fact, Far, Node, TOPIC, asked, at, items, move_to, open, realm, signer, words};
use tidings::code::{CloseReason, SubscribeRefusal};
use tidings::wire::{self, Frame};
use tidings::{
    Action, Answer, Client, ClientConfig, ClientLimits, Intake, Item, LinkEvent, Notice, Now,
    OnFull, Publish, Sources, StationRef, Subscribe, Verification,
};

fn progress(node: &mut Node, now: Now, link: usize, behind_ms: u64) {
    let progress = wire::Progress {
        id: 1,
        offset: 1,
        behind_ms,
    };
    let frame = Frame::Progress(progress);
    let taken = node.links[link].frame(&mut node.client, now, &frame);
    assert_eq!(taken, Ok(Intake::Open));
}

fn down(client: &mut Client, far: &Far, now: Now) {
    let event = LinkEvent::Down {
        link: far.id,
        reason: CloseReason::Io,
    };
    client.handle_link(now, event).expect("it was up");
}

#[test]
fn a_stream_that_disconnects_is_left_at_once_and_counts_what_it_gave_up() {
    let mut node = Node::new(1, open().on_full(OnFull::Disconnect).queue_capacity(2));
    for seq in [1, 3, 4, 5, 2] {
        node.seq(at(1), 0, seq);
    }
    let stations = node.links[0].types(&mut node.client, at(1));
    assert_eq!(stations, ["unsubscribe 1"], "nobody has to read first");
    assert_eq!(node.client.status().lanes, 0);
    assert_eq!(node.words(), ["1", "2", "lagged 3 0", "ended"]);
}

#[test]
fn conflicts_whose_episode_is_open_are_told_when_the_subscription_or_the_client_ends() {
    let other = Fact {
        value: 99,
        ..Fact::numbered(2)
    };
    for closes in [false, true] {
        let mut node = Node::new(1, open());
        for seq in [1, 2] {
            node.seq(at(1), 0, seq);
        }
        node.fact(at(2), 0, other);
        if closes {
            node.client.close(at(3));
        } else {
            let ended = node.client.unsubscribe(at(3), node.stream);
            assert_eq!(ended, Ok(()));
        }
        assert_eq!(node.words(), ["1", "2", "conflict 2..2 1", "ended"]);
    }
}

#[test]
fn a_reader_that_disconnects_takes_nothing_from_another_on_its_topic() {
    let mut node = Node::new(1, open().on_full(OnFull::Disconnect).queue_capacity(1));
    let other = node.client.subscribe(at(1), open()).expect("accepted");
    for seq in 1..=5 {
        node.seq(at(1), 0, seq);
    }
    let other = words(&items(&mut node.client, other));
    assert_eq!(other, ["1", "2", "3", "4", "5"]);
    assert_eq!(node.words(), ["1", "lagged 1 0", "ended"]);
}

#[test]
fn what_came_too_late_is_told_only_where_its_place_was_open() {
    let mut node = Node::new(1, open());
    let old = Fact {
        ttl_ms: Some(0),
        ..Fact::numbered(1)
    };
    node.fact(at(1), 0, old);
    node.seq(at(1), 0, 2);
    assert_eq!(node.words(), ["1", "2"]);
    // It comes after the first one was decided for one subscription, and is new to the other.
    let late = node.client.subscribe(at(2), open()).expect("accepted");
    let twin = Fact { value: 77, ..old };
    node.fact(at(400_000), 0, twin);
    node.time(at(402_000));
    assert_eq!(node.words(), Vec::<String>::new());
    let told = words(&items(&mut node.client, late));
    assert_eq!(told, ["dropped out_of_date 1"]);
}

#[test]
fn what_came_too_late_below_where_a_numbering_was_joined_is_told() {
    let mut node = Node::new(1, open());
    node.seq(at(1), 0, 3);
    node.time(at(2_000));
    assert_eq!(node.words(), ["3"], "joined in the middle");
    let old = Fact {
        ttl_ms: Some(0),
        ..Fact::numbered(2)
    };
    node.fact(at(400_000), 0, old);
    node.fact(at(400_001), 0, old);
    node.time(at(402_000));
    assert_eq!(
        node.words(),
        ["dropped out_of_date 1"],
        "a copy adds nothing"
    );
}

#[test]
fn a_window_never_begins_later_than_it_ends_when_the_wall_steps_back() {
    let mut node = Node::new(1, open());
    progress(&mut node, at(1000), 0, 0);
    let hour = 3_600_000;
    let back = |now: Now| Now::new(now.mono, now.wall.saturating_sub(hour));
    let far = &node.links[0];
    down(&mut node.client, far, back(at(2000)));
    let told = items(&mut node.client, node.stream);
    let [Item::Notice(notice)] = &told[..] else {
        panic!("{told:?}")
    };
    let Notice::Interrupted { from, .. } = **notice else {
        panic!("{notice:?}")
    };
    assert!(from <= back(at(2000)).wall, "{from:?}");
}

#[test]
fn a_wall_that_was_set_back_by_half_an_hour_takes_what_is_new_then() {
    let mut node = Node::new(1, open());
    node.seq(at(1), 0, 1);
    node.time(at(2_000_000));
    assert_eq!(node.words(), ["1"]);
    let back = Now::new(at(2_000_000).mono, at(200_000).wall);
    let fact = Fact {
        published_at: back.wall,
        ..Fact::numbered(2)
    };
    node.fact(back, 0, fact);
    node.time(Now::new(at(2_001_000).mono, at(201_000).wall));
    assert_eq!(node.words(), ["resynced", "2"]);
}

#[test]
fn after_the_wall_stepped_back_progress_counts_by_the_new_wall() {
    let mut node = Node::new(1, open());
    let hour = 3_600_000;
    let back = |now: Now| Now::new(now.mono, now.wall.saturating_sub(hour));
    progress(&mut node, back(at(10_000)), 0, 2000);
    let far = &node.links[0];
    down(&mut node.client, far, back(at(20_000)));
    let told = items(&mut node.client, node.stream);
    let [Item::Notice(notice)] = &told[..] else {
        panic!("{told:?}")
    };
    let Notice::Interrupted { from, .. } = **notice else {
        panic!("{notice:?}")
    };
    assert_eq!(from, back(at(8000)).wall);
}

/// A node that is asked about three facts, and has room for one in its stream and one behind a gap.
fn narrow() -> Node {
    let mut limits = ClientLimits::default();
    limits.order_max_buffer = 1;
    let config = ClientConfig::new(signer(1))
        .verification(Verification::Asked)
        .limits(limits);
    let request = open().on_full(OnFull::Pause).queue_capacity(1);
    let mut node = Node::with(config, 1, request);
    for seq in 1..=3 {
        node.seq(at(1), 0, seq);
    }
    node
}

/// All signatures it was asked about are good.
fn answer_all(node: &mut Node, now: Now) {
    for (ask, job) in asked(&mut node.client) {
        let answer = Answer::Verified(job.run());
        node.client.answer(now, ask, answer).expect("open");
    }
}

#[test]
fn an_anycast_that_finds_no_room_gives_up_no_number_of_the_others() {
    let mut node = narrow();
    let one = Fact {
        one: true,
        ..Fact::numbered(9)
    };
    node.fact(at(1), 0, one);
    // One is read, two wait in the lane, and there is no room for the fourth.
    answer_all(&mut node, at(2));
    let mut got = node.words();
    node.seq(at(3), 0, 4);
    answer_all(&mut node, at(3));
    got.extend(node.words());
    node.time(at(5000));
    got.extend(node.words());
    assert_eq!(got, ["1", "2", "3", "4", "dropped bytes_full 1"]);
}

#[test]
fn a_fact_that_is_dropped_is_told_once_though_its_lane_has_no_room_for_its_place() {
    let mut node = narrow();
    // It is fresh when it comes and over when its signature is known to be good.
    let short = Fact {
        ttl_ms: Some(1),
        ..Fact::numbered(5)
    };
    node.fact(at(1), 0, short);
    let asked = asked(&mut node.client);
    for (now, (ask, job)) in [at(2), at(2), at(2), at(310_000)].into_iter().zip(asked) {
        let answer = Answer::Verified(job.run());
        node.client.answer(now, ask, answer).expect("open");
    }
    let mut got = node.words();
    node.time(at(320_000));
    got.extend(node.words());
    assert_eq!(got, ["1", "2", "3", "skipped 4..5"]);
}

#[test]
fn a_lane_that_waited_for_its_reader_rests_like_any_other() {
    let mut node = Node::new(1, open().on_full(OnFull::Pause).queue_capacity(1));
    // One release brings three facts, for which the stream has one place.
    for seq in [2, 3] {
        node.seq(at(1), 0, seq);
    }
    let first = Fact::numbered(1).sign(&*node.publisher);
    let taken = node.links[0].event(&mut node.client, at(1), 1, 3, &first);
    assert_eq!(taken, Ok(Intake::Paused));
    assert_eq!(node.words(), ["1", "2", "3"]);
    node.time(at(700_000));
    assert_eq!(node.client.status().lanes, 0, "ten minutes of silence");
}

#[test]
fn a_new_subscription_asks_a_station_again_that_refused_the_one_before() {
    let mut node = Node::new(1, open());
    let refused = wire::Refused {
        id: 1,
        reason: SubscribeRefusal::Purged,
        limit: None,
    };
    let far = &mut node.links[0];
    let taken = far.frame(&mut node.client, at(1), &Frame::Refused(refused));
    assert_eq!(taken, Ok(Intake::Open));
    assert_eq!(far.types(&mut node.client, at(1)), Vec::<String>::new());
    let again = node.client.subscribe(at(2), open()).expect("accepted");
    assert_eq!(far.types(&mut node.client, at(2)), ["subscribe 2"]);
    far.accept(&mut node.client, at(2), 2);
    let status = node.client.subscription(again).expect("it lives");
    assert_eq!(status.carriers, 1);
    // One that carries is not asked again.
    node.client.subscribe(at(3), open()).expect("accepted");
    let far = &mut node.links[0];
    assert_eq!(far.types(&mut node.client, at(3)), Vec::<String>::new());
}

#[test]
fn a_slow_reader_pays_for_what_waits_to_be_verified() {
    for held_bytes in (7000..8200).step_by(100) {
        slow_reader_pays(held_bytes);
    }
}

fn slow_reader_pays(held_bytes: usize) {
    let mut limits = ClientLimits::default();
    limits.held_bytes = held_bytes;
    let config = ClientConfig::new(signer(1))
        .max_frame(1024)
        .verification(Verification::Asked)
        .limits(limits);
    let mut node = Node::with(config, 1, open());
    let mut answered = 0;
    for seq in 1..=100 {
        node.seq(at(seq), 0, seq);
        for (ask, job) in asked(&mut node.client) {
            let answer = Answer::Verified(job.run());
            node.client.answer(at(seq), ask, answer).expect("open");
            answered += 1;
        }
    }
    assert_eq!(answered, 100);
    node.time(at(5000));
    let words = node.words();
    assert!(words[0].starts_with("lagged"), "{words:?}");
    assert!(
        !words.iter().any(|word| word.starts_with("dropped")),
        "{words:?}"
    );
}

#[test]
fn a_publication_is_not_handed_to_a_link_that_could_not_read_it() {
    let config = ClientConfig::new(signer(1)).replication_factor(1);
    let mut node = Node::with(config, 1, open());
    let request = Publish::new(realm(), TOPIC, &"x".repeat(5000)).expect("text");
    node.client.publish(at(1), request).expect("room");
    assert_eq!(node.links[0].types(&mut node.client, at(1)), ["publish 2"]);
    down(&mut node.client, &node.links[0], at(2));
    while node.client.poll_action().is_some() {}
    let mut dialled = false;
    for millis in 3..2000 {
        move_to(&mut node.client, at(millis));
        while let Some(action) = node.client.poll_action() {
            dialled |= matches!(action, Action::Dial { .. });
        }
        if dialled {
            break;
        }
    }
    let now = at(2000);
    let narrow = signer(100);
    let mut far = Far::answering_with(&mut node.client, now, narrow, StationRef(0), 1024);
    far.shake_hands(&mut node.client, now);
    let written = far.types(&mut node.client, now);
    assert_eq!(written, ["subscribe 1"], "it would have ended the link");
}

#[test]
fn nothing_is_due_after_close() {
    let mut node = Node::new(1, open());
    for seq in [1, 3] {
        node.seq(at(1), 0, seq);
    }
    node.client.close(at(2));
    assert_eq!(node.client.status().lanes, 0);
    assert_eq!(node.words(), ["1", "ended"]);
    let refused = node.client.subscribe(at(3), open());
    assert!(refused.is_err());
}

#[test]
fn an_anycast_goes_to_one_subscription_of_a_node_in_turn() {
    let mut node = Node::new(1, open());
    let twin = node.client.subscribe(at(0), open()).expect("accepted");
    let filter = Subscribe::new(realm(), "weather/**", Sources::Open);
    let other = node.client.subscribe(at(0), filter).expect("accepted");
    let far = &mut node.links[0];
    assert_eq!(far.types(&mut node.client, at(0)), ["subscribe 2"]);
    far.accept(&mut node.client, at(0), 2);
    for seq in 1..=4 {
        let one = Fact {
            one: true,
            epoch: Some(common::EPOCH + 1),
            ..Fact::numbered(seq)
        };
        node.fact(at(seq), 0, one);
    }
    let twin = words(&items(&mut node.client, twin));
    assert_eq!(node.words(), ["2", "4"]);
    assert_eq!(twin, ["1", "3"]);
    let other = words(&items(&mut node.client, other));
    assert_eq!(
        other,
        Vec::<String>::new(),
        "its reader was not the chosen one"
    );
}

#[test]
fn one_publisher_keeps_at_most_a_quarter_of_the_bytes_waiting_on_all_its_topics_together() {
    let mut limits = ClientLimits::default();
    limits.held_bytes = 4096;
    let config = ClientConfig::new(signer(1)).max_frame(1024).limits(limits);
    let everything = Subscribe::new(realm(), "weather/**", Sources::Open);
    let mut node = Node::with(config, 1, everything);
    for topic in 0..8 {
        // Number 1 is missing on each, so number 2 waits.
        let topic = format!("weather/{topic}");
        let fact = Fact {
            topic: &topic,
            ..Fact::numbered(2)
        };
        node.fact(at(1), 0, fact);
    }
    let held = node
        .client
        .memory()
        .line("held_bytes")
        .expect("a line")
        .used;
    assert!((500..=1024).contains(&held), "{held}");
    node.time(at(20_000));
    let told = node.words().join(" ");
    assert!(told.contains("dropped"), "{told}");
}

#[test]
fn a_sealed_fact_that_nothing_opens_is_told_at_its_place() {
    use tidings::crypto::Signer;
    let mut node = Node::new(1, open());
    node.seq(at(1), 0, 1);
    let publisher = signer(50);
    let body = wire::Sealed {
        ct: &[7; 32],
        nonce: &[1; 12],
        key_id: &[2; 8],
        scheme: 2,
    };
    let draft = wire::Draft {
        realm: realm(),
        topic: TOPIC,
        publisher: common::id_of(&publisher),
        epoch: Some(1),
        seq: 1,
        published_at: at(1).wall,
        ttl_ms: None,
        one: false,
        body: wire::Body::Sealed(body),
    };
    let mut object = Vec::new();
    draft
        .sign(&publisher as &dyn Signer, &mut object)
        .expect("signs");
    node.object(at(2), 0, &object);
    let items = items(&mut node.client, node.stream);
    let unopened = items.iter().any(|item| match item {
        Item::Notice(notice) => matches!(**notice, Notice::Unopened { seq: 1, .. }),
        _ => false,
    });
    assert!(unopened, "{items:?}");
}

#[test]
fn a_lagged_that_swallowed_only_what_has_no_time_is_dated_when_it_is_read() {
    let mut node = Node::new(1, open().queue_capacity(1));
    // Two numberings: `restarted` is a notice without a time; then a fact pushes it out.
    for (epoch, seq) in [(1, 1), (2, 1)] {
        node.fact(
            at(1),
            0,
            Fact {
                epoch: Some(epoch),
                ..Fact::numbered(seq)
            },
        );
    }
    for item in items(&mut node.client, node.stream) {
        if let Item::Notice(notice) = item
            && let Notice::Lagged { from, to, .. } = *notice
        {
            assert!(from <= to, "{from:?} {to:?}");
        }
    }
}

#[test]
fn what_finds_no_room_among_the_questions_is_told() {
    let mut limits = ClientLimits::default();
    limits.pending_verifications = 1;
    let config = ClientConfig::new(signer(1))
        .verification(Verification::Asked)
        .limits(limits);
    let mut node = Node::with(config, 1, open());
    node.seq(at(1), 0, 1);
    node.seq(at(1), 0, 2);
    answer_all(&mut node, at(2));
    // It was not remembered: a later copy gets another chance.
    node.seq(at(3), 0, 2);
    answer_all(&mut node, at(3));
    node.time(at(5000));
    assert_eq!(node.words(), ["1", "2", "dropped verify_full 1"]);
}

#[test]
fn a_lagged_counts_what_the_notices_it_swallowed_had_counted() {
    let mut node = Node::new(1, open().queue_capacity(2));
    node.seq(at(1), 0, 1);
    let other = Fact {
        value: 9,
        ..Fact::numbered(1)
    };
    node.fact(at(1), 0, other);
    // The episode of conflicts is over and told.
    node.time(at(3000));
    for seq in 2..=6 {
        node.seq(at(3000), 0, seq);
    }
    let got = items(&mut node.client, node.stream);
    let Some(Item::Notice(first)) = got.first() else {
        panic!("{got:?}")
    };
    let Notice::Lagged {
        missed, notices, ..
    } = **first
    else {
        panic!("{got:?}")
    };
    // Six facts and the one that conflicted.
    assert_eq!((missed + got.len() as u64 - 1, notices), (7, 1));
}
