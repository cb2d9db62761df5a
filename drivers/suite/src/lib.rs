//! The black-box suite every driver passes.
//!
//! Decides: what an application sees, whatever the driver. Leaves to others: the inside of drivers,
//! which their own tests look at. Believes: the wall clock of the host, through generous timeouts.
//! Bounded by: each case ends by itself within a minute.
//!
//! A driver implements [`Driver`] in a test and writes `tidings_suite::suite!(ItsDriver);`: each
//! case becomes a test of its own.

mod anything;
mod cases;
mod kit;
mod peer;
mod wire;

/// What tests of drivers are made of, their own as well.
pub mod help {
    pub use crate::anything::Anything;
    pub use crate::kit::{PATIENCE, id, key, number, numbered, open, realm, until};
}

use std::fmt::Debug;
use std::time::Duration;

use tidings::crypto::SecretKey;
use tidings::{Group, GroupId, Item, Outcome, Publish, Refusal, StationStatus, Subscribe};
use tidings_common::{Answers, DoorStatus, IoCounters, StationSettings};
use tidings_tls::TlsFaults;

pub use cases::*;

/// What a station's handle tells.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of the machine.
    pub status: StationStatus,
    /// Of its sockets.
    pub io: IoCounters,
    /// Of its doors.
    pub doors: DoorStatus,
    /// Of what came to no secure channel.
    pub tls_faults: TlsFaults,
}

impl Seen {
    /// One of the machine's counters.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        let mut counters = self.status.counters.iter();
        let found = counters.find(|(known, _)| *known == name);
        found.expect("a counter of that name").1
    }
}

/// What a driver shows the suite. Every method blocks, for a bounded time.
///
/// Dropping a subscription must unsubscribe. Dropping a node or a station may close it in the
/// background.
pub trait Driver: Sized + 'static {
    /// A running station.
    type Station;
    /// A running node.
    type Node;
    /// A subscription of a node.
    type Subscription;
    /// Why something did not start. Its text is for people.
    type Error: Debug + ToString;

    /// Whether the links of its stations and nodes are secure.
    const SECURE: bool;

    /// A driver of its own for one case.
    fn new() -> Self;

    /// Starts a station.
    ///
    /// # Errors
    /// When it cannot.
    fn start_station(&self, settings: StationSettings) -> Result<Self::Station, Self::Error>;

    /// What is seen of a station from outside.
    fn seen(&self, station: &Self::Station) -> Seen;

    /// Its address, as `start_node` takes it.
    fn station_address(&self, station: &Self::Station) -> String;

    /// Drops the station's sockets without a goodbye, its listener too, before it returns.
    fn kill_station(&self, station: Self::Station);

    /// Closes a station: goodbyes first.
    fn close_station(&self, station: Self::Station);

    /// Starts a node that dials these stations, with every other setting at its default.
    ///
    /// # Errors
    /// When it cannot.
    fn start_node(&self, key: SecretKey, stations: &[String]) -> Result<Self::Node, Self::Error>;

    /// The same with a node that probes its links so often.
    ///
    /// # Errors
    /// When it cannot.
    fn start_probing_node(
        &self,
        key: SecretKey,
        stations: &[String],
        every: Duration,
    ) -> Result<Self::Node, Self::Error>;

    /// The same with a node whose questions are answered.
    ///
    /// # Errors
    /// When it cannot.
    fn start_answered_node(
        &self,
        key: SecretKey,
        stations: &[String],
        answers: impl Answers + 'static,
    ) -> Result<Self::Node, Self::Error>;

    /// Joins a sealed group.
    ///
    /// # Errors
    /// As the core refuses.
    fn join_group(&self, node: &Self::Node, group: Group) -> Result<GroupId, Refusal>;

    /// Waits until so many links are up. False when they are not in time.
    fn connected(&self, node: &Self::Node, stations: usize, within: Duration) -> bool;

    /// Why the attempt to reach a node's first station came to nothing, the last time.
    fn failure(&self, node: &Self::Node) -> Option<&'static str>;

    /// Closes a node: goodbyes first, streams end.
    fn close_node(&self, node: Self::Node);

    /// Subscribes.
    ///
    /// # Errors
    /// As the core refuses.
    fn subscribe(
        &self,
        node: &Self::Node,
        request: Subscribe,
    ) -> Result<Self::Subscription, Refusal>;

    /// Waits until so many stations accepted it. False when they have not in time.
    fn carried(
        &self,
        subscription: &mut Self::Subscription,
        stations: usize,
        within: Duration,
    ) -> bool;

    /// The next item; `None` when none came in time or the stream has ended.
    fn next(&self, subscription: &mut Self::Subscription, within: Duration) -> Option<Item>;

    /// Publishes and waits for nothing.
    ///
    /// # Errors
    /// As the core refuses.
    fn send(&self, node: &Self::Node, request: Publish) -> Result<(), Refusal>;

    /// Publishes and waits for the outcome, and for room first where there is none.
    ///
    /// # Errors
    /// As the core refuses.
    fn publish(&self, node: &Self::Node, request: Publish) -> Result<Outcome, Refusal>;
}

/// Writes one `#[test]` per case for a [`Driver`].
#[macro_export]
macro_rules! suite {
    ($driver:ty) => {
        $crate::__each_case! { tests $driver }
    };
}

/// The one list of cases. `$then` is another arm of this macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_case {
    ($then:ident $($arguments:tt)*) => {
        $crate::__each_case! { @$then [$($arguments)*]
            a_bad_address_is_refused
            a_blocked_write_does_not_stop_reading
            a_connection_of_garbage_ends_only_its_own_link
            a_fact_of_256_kib_arrives_whole
            a_filter_hears_every_topic_it_matches
            a_frame_too_long_for_a_handshake_is_refused_from_its_length
            a_handshake_passed_on_by_another_station_is_refused
            a_handshake_that_never_ends_is_closed_in_time_and_its_place_is_free
            a_name_that_means_nothing_yet_is_dialled_again
            a_node_of_which_one_half_is_gone_is_left_by_its_station
            a_node_with_the_key_of_its_station_gets_no_link
            a_proof_for_another_station_is_refused
            a_publisher_outside_the_sources_is_refused
            a_reader_that_never_reads_changes_nothing_for_another
            a_sealed_fact_is_opened_by_members_and_told_to_others
            a_second_key_in_the_handshake_is_refused
            a_station_named_twice_is_refused
            a_station_out_of_file_descriptors_goes_on_accepting_later
            a_station_port_in_use_is_said
            a_station_that_stops_answering_is_left_and_dialled_again
            a_taken_down_station_is_a_notice
            a_wrong_pin_ends_the_attempt_and_says_so
            an_address_has_no_more_than_its_share_and_others_get_in
            an_address_with_many_keys_has_no_more_links_than_its_share
            as_arrives_delivers_each_once
            closing_ends_every_stream
            dropping_a_subscription_ends_its_delivery
            facts_come_in_order_and_once_over_two_stations
            handshakes_that_never_end_hold_up_neither_others_nor_the_end
            keys_that_come_late_are_waited_for
            killing_one_of_two_stations_loses_nothing
            latest_only_never_goes_back
            nobody_there_is_said
            one_fact_arrives
            outcomes_tell_routed_from_no_subscriber
            publishing_without_a_station_is_refused
            the_last_station_gone_interrupts_and_its_return_ends_the_interruption
            two_subscriptions_on_one_topic_hear_the_same
            what_speaks_no_tls_is_said_on_both_sides
            who_cannot_be_looked_up_is_not_heard
            whoever_is_slow_to_answer_holds_up_nobody_else
            who_is_looked_up_is_heard_if_its_source_admits_it
            without_keys_nothing_is_published
        }
    };
    (@tests [$driver:ty] $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::$case(&<$driver as $crate::Driver>::new());
            }
        )*
    };
    (@list [$driver:ty] $($case:ident)*) => {
        &[$((stringify!($case), $crate::$case::<$driver> as fn(&$driver))),*]
    };
}

/// A case: its name, and what it does to a driver.
pub type Case<D> = (&'static str, fn(&D));

/// Every case, for drivers that run them in another way than through [`suite!`].
pub fn cases<D: Driver>() -> &'static [Case<D>] {
    __each_case! { list D }
}

/// Runs every case, each with a driver of its own, and names each first.
pub fn run<D: Driver>() {
    for (name, case) in cases::<D>() {
        println!("{name}");
        case(&D::new());
    }
}
