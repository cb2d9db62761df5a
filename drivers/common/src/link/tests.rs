use super::*;
use crate::wire::tests::{Pipe, ends, sessions};
use crate::{StationParts, StationSettings};
use tidings::crypto::SecretKey;
use tidings::{LinkEvent, WallMs};
use tidings_tls::Session;

fn second(n: u64) -> Now {
    Now::new(Instant::from_millis(n * 1000), WallMs::new(0))
}

/// A station's link over TLS, and the other side of its channel.
fn linked() -> (StationParts, Wire<Pipe>, Link, Session, Pipe) {
    let settings = StationSettings::new(SecretKey::from_seed([1; 32])).listen("tls://127.0.0.1:0");
    let mut parts = settings.unwrap().build().unwrap();
    let ((near, mut far), (mut dialling, answering)) = (ends(), sessions());
    let mut wire = Wire::new(near, Some(answering), None);
    let mut early = BytesMut::new();
    let binding = loop {
        let mut said = Vec::new();
        while dialling.wants_write() {
            dialling.write_to(&mut said).unwrap();
        }
        far.say(&said);
        if let Some(binding) = wire.shake(&mut early).unwrap() {
            break binding;
        }
        let mut heard = BytesMut::new();
        dialling.receive(&far.hear(), &mut heard).unwrap();
    };
    let up = LinkEvent::Up {
        dialled: None,
        binding,
    };
    let link = parts.station.handle_link(second(0), up).unwrap();
    (parts, wire, Link::new(link, early), dialling, far)
}

#[test]
fn a_late_fault_of_tls_is_told_to_the_other_side_and_to_whoever_counts() {
    let (mut parts, mut wire, mut link, mut dialling, mut far) = linked();
    let mut counters = IoCounters::default();
    assert!(!link.look(&mut parts.station, second(1), false));
    // A record that was changed on its way.
    far.say(&[23, 3, 3, 0, 32]);
    far.say(&[7; 32]);
    assert!(link.read(&mut wire, &mut counters));
    link.look(&mut parts.station, second(1), false);
    assert!(!link.is_over(&mut wire, second(1)), "it waits to be heard");
    assert_eq!(link.reason(), CloseReason::ProtocolError);
    assert_eq!(link.fault(), Some(TlsFault::Protocol));
    assert!(link.deadline().is_some_and(|at| at <= second(2).mono));
    let told = dialling.receive(&far.hear(), &mut BytesMut::new());
    assert!(told.is_err(), "an alert, not {told:?}");
    assert!(far.has_ended());
    far.shut().unwrap();
    assert!(link.is_over(&mut wire, second(1)));
}

#[test]
fn whoever_does_not_hear_why_is_left_after_a_second() {
    let (mut parts, mut wire, mut link, _, mut far) = linked();
    far.say(&[23, 3, 3, 0, 32]);
    far.say(&[7; 32]);
    assert!(link.read(&mut wire, &mut IoCounters::default()));
    link.look(&mut parts.station, second(1), false);
    assert!(!link.is_over(&mut wire, second(1)));
    assert!(link.is_over(&mut wire, second(2)));
}

#[test]
fn a_busy_host_is_handed_what_was_read_later_and_no_deadline_stays_behind() {
    let (mut parts, mut wire, mut link, mut dialling, mut far) = linked();
    dialling.seal(&[&[0, 0]]);
    let mut said = Vec::new();
    dialling.write_to(&mut said).unwrap();
    far.say(&said);
    assert!(link.read(&mut wire, &mut IoCounters::default()));
    assert!(!link.look(&mut parts.station, second(1), true));
    assert!(link.is_held() && link.is_paused() && !link.reads());
    assert!(link.look(&mut parts.station, second(1), false));
    assert!(!link.is_held() && link.reads());
    assert_eq!(link.deadline(), None);
}
