use super::*;

fn limits() -> DoorLimits {
    DoorLimits {
        handshakes: 5,
        handshakes_per_address: 2,
        links_per_address: 3,
        bound_loopback: false,
    }
}

const fn second(n: u64) -> Instant {
    Instant::from_millis(n * 1000)
}

const NOW: Instant = second(0);

fn at(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn linked(doors: &Doors, from: &str) -> Guest {
    let mut guest = doors.enter(at(from), true, NOW).unwrap();
    guest.shaken();
    guest
}

#[test]
fn an_address_has_its_share_and_others_have_theirs() {
    let doors = Doors::new(limits(), 100);
    let mut one = doors.enter(at("192.0.2.1"), true, NOW).unwrap();
    let two = doors.enter(at("192.0.2.1"), true, NOW).unwrap();
    let refused = doors.enter(at("192.0.2.1"), true, NOW).err();
    assert_eq!(refused, Some(Crowd::AddressHandshakes));
    let other = doors.enter(at("192.0.2.2"), true, NOW).unwrap();
    // Who shakes no hands is within the bound of those who do.
    assert!(doors.enter(at("192.0.2.1"), false, NOW).is_ok());
    // A link is no handshake any more, but still its address's.
    one.shaken();
    one.shaken();
    let mut three = doors.enter(at("192.0.2.1"), true, NOW).unwrap();
    three.shaken();
    let refused = doors.enter(at("192.0.2.1"), true, NOW).err();
    assert_eq!(refused, Some(Crowd::AddressLinks));
    drop(two);
    let again = doors.enter(at("192.0.2.1"), true, second(1)).unwrap();
    let status = doors.status();
    assert_eq!(
        (status.open, status.handshakes, status.addresses),
        (4, 2, 2)
    );
    assert_eq!(status.refused(Crowd::AddressHandshakes), 1);
    assert_eq!(status.refused(Crowd::AddressLinks), 1);
    drop((one, three, other, again));
    let status = doors.status();
    assert_eq!(
        (status.open, status.handshakes, status.addresses),
        (0, 0, 0)
    );
}

#[test]
fn all_together_have_a_bound_on_handshakes_and_one_on_connections() {
    let doors = Doors::new(limits(), 7);
    let shaking: Vec<Guest> = (0..5)
        .map(|n| doors.enter(at(&format!("192.0.2.{n}")), true, NOW).unwrap())
        .collect();
    let refused = doors.enter(at("192.0.2.9"), true, NOW).err();
    assert_eq!(refused, Some(Crowd::Handshakes));
    drop(shaking);
    drop(doors.enter(at("192.0.2.9"), false, second(1)));
    let links: Vec<Guest> = (0..7)
        .map(|n| linked(&doors, &format!("192.0.2.{n}")))
        .collect();
    assert_eq!(
        doors.enter(at("192.0.2.9"), true, NOW).err(),
        Some(Crowd::Links)
    );
    drop(links);
    assert!(doors.enter(at("192.0.2.9"), true, NOW).is_ok());
}

#[test]
fn an_ipv6_host_is_its_first_64_bits_and_a_mapped_address_is_ipv4() {
    let doors = Doors::new(limits(), 100);
    let _same = [
        linked(&doors, "2001:db8:0:1::1"),
        linked(&doors, "2001:db8:0:1:ffff::2"),
        linked(&doors, "2001:db8:0:1:0:8::3"),
    ];
    let refused = doors.enter(at("2001:db8:0:1::4"), true, NOW).err();
    assert_eq!(refused, Some(Crowd::AddressLinks));
    assert!(doors.enter(at("2001:db8:0:2::1"), true, NOW).is_ok());
    let _mapped = [
        linked(&doors, "::ffff:192.0.2.1"),
        linked(&doors, "192.0.2.1"),
        linked(&doors, "::ffff:192.0.2.1"),
    ];
    assert_eq!(doors.status().addresses, 2);
    let refused = doors.enter(at("192.0.2.1"), true, NOW).err();
    assert_eq!(refused, Some(Crowd::AddressLinks));
}

#[test]
fn this_host_is_bounded_by_the_totals_unless_it_is_asked_for() {
    for (bound_loopback, crowd) in [(false, Crowd::Links), (true, Crowd::AddressLinks)] {
        let limits = DoorLimits {
            bound_loopback,
            ..limits()
        };
        let doors = Doors::new(limits, 7);
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.9"] {
            let mut inside = Vec::new();
            let refused = loop {
                match doors.enter(at(address), true, NOW) {
                    Ok(mut guest) => {
                        guest.shaken();
                        inside.push(guest);
                    }
                    Err(crowd) => break crowd,
                }
            };
            assert_eq!(refused, crowd);
            assert_eq!(inside.len(), if bound_loopback { 3 } else { 7 });
        }
    }
}

/// What is signed for one address, and what for all, is bounded by the second however fast its handshakes end.
#[test]
fn a_handshake_that_failed_takes_its_place_for_a_second_and_one_that_did_not_takes_none() {
    let doors = Doors::new(limits(), 100);
    let (mut signed, mut others) = ([0; 3], 0);
    for milli in 0..2999 {
        let now = Instant::from_millis(milli);
        // Answered at once, and then it leaves.
        let entered = doors.enter(at("192.0.2.1"), true, now).is_ok();
        signed[milli as usize / 1000] += usize::from(entered);
        let mut link = doors.enter(at("192.0.2.2"), true, now).unwrap();
        link.shaken();
        others += 1;
    }
    assert_eq!((signed, others), ([2, 2, 2], 2999));
    // Nothing of that is open, and nothing is kept of it after a second.
    let status = doors.status();
    assert_eq!(
        (status.open, status.handshakes, status.addresses),
        (0, 0, 0)
    );
    let _last = doors.enter(at("192.0.2.3"), true, second(9)).unwrap();
    assert_eq!(lock(&doors.0).hosts.len(), 1);
    assert!(lock(&doors.0).lingering.is_empty());
    // Many addresses have the total between them.
    let failed = |n| doors.enter(at(&format!("198.51.100.{n}")), true, second(10));
    let kept = (0..99).filter(|n| failed(*n).is_ok()).count();
    assert_eq!(kept, limits().handshakes - 1);
    // One that took longer is gone with its connection; this host is not bounded.
    let doors = Doors::new(limits(), 100);
    let long = doors.enter(at("192.0.2.1"), true, NOW).unwrap();
    drop((long, doors.enter(at("192.0.2.1"), true, NOW).unwrap()));
    assert!(doors.enter(at("192.0.2.1"), true, second(1)).is_ok());
    let here = (0..99).filter(|_| doors.enter(at("127.0.0.1"), true, NOW).is_ok());
    assert_eq!(here.count(), 99);
}

#[test]
fn the_first_turned_away_is_reported_at_once_and_the_others_together() {
    let doors = Doors::new(limits(), 100);
    assert_eq!(doors.report(second(0)), None);
    let _inside = [
        doors.enter(at("192.0.2.1"), true, NOW).unwrap(),
        doors.enter(at("192.0.2.1"), true, NOW).unwrap(),
    ];
    doors.enter(at("192.0.2.1"), true, NOW).unwrap_err();
    let said = doors.report(second(1)).unwrap();
    assert_eq!((said.crowd, said.count), (Crowd::AddressHandshakes, 1));
    for _ in 0..1000 {
        doors.enter(at("::ffff:192.0.2.1"), true, NOW).unwrap_err();
    }
    assert_eq!(doors.report(second(10)), None);
    let said = doors.report(second(11)).unwrap();
    assert_eq!((said.count, said.last), (1000, at("::ffff:192.0.2.1")));
    assert!(said.to_string().contains("1000"), "{said}");
    assert_eq!(doors.report(second(30)), None);
}

#[test]
fn bounds_that_contradict_each_other_are_refused_by_name() {
    assert_eq!(DoorLimits::default().check(), Ok(()));
    let wrong = |change: fn(&mut DoorLimits)| {
        let mut limits = DoorLimits::default();
        change(&mut limits);
        limits.check().unwrap_err().setting
    };
    assert_eq!(wrong(|l| l.handshakes = 0), "doors.handshakes");
    let shares = "doors.handshakes_per_address";
    assert_eq!(wrong(|l| l.handshakes_per_address = 0), shares);
    assert_eq!(wrong(|l| l.handshakes_per_address = 1025), shares);
    assert_eq!(
        wrong(|l| l.links_per_address = 63),
        "doors.links_per_address"
    );
}

#[test]
fn every_bound_has_its_place_and_its_text() {
    for (at, crowd) in Crowd::ALL.iter().enumerate() {
        assert_eq!(*crowd as usize, at);
        assert!(!crowd.text().is_empty() && crowd.to_string().len() > 15);
    }
}
