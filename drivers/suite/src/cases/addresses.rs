//! Addresses that cannot be used, and what is said then.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out. Bounded by: the kit's patience.

use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, id, key, until};

/// Each bad address is refused with words, before anything runs.
pub fn a_bad_address_is_refused<D: Driver>(driver: &D) {
    let bad = [
        "127.0.0.1:7400",
        "https://127.0.0.1:7400",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:99999",
        "tcp://beef@127.0.0.1:7400",
        "tcp://192.0.2.1:7400",
        "tcp://0.0.0.0:7400",
        "tcp://[2001:db8::1]:7400",
        "tls://127.0.0.1:7400",
        "tls://beef@127.0.0.1:7400",
    ];
    for address in bad {
        match driver.start_node(key(1), &[address.to_owned()]) {
            Ok(_) => panic!("{address} was taken"),
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(address), "{said} does not name {address}");
            }
        }
    }
}

/// One station is one, however often it is named: publications would pass for handed to two.
pub fn a_station_named_twice_is_refused<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let address = driver.station_address(&station);
    let one = [address.clone(), address.clone()];
    match driver.start_node(key(2), &one) {
        Ok(_) => panic!("{address} was taken twice"),
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.contains(&address) && said.contains("one station counts once"),
                "{said}"
            );
        }
    }
}

/// A name is looked up at each dial: one that means nothing yet is told, and does not keep a node from what is there.
pub fn a_name_that_means_nothing_yet_is_dialled_again<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let scheme = if D::SECURE { "tls" } else { "tcp" };
    let nowhere = format!("{scheme}://{}@nowhere.invalid:7400", id(9));
    let node = driver
        .start_node(key(2), &[nowhere])
        .expect("a node starts");
    until("it is told", || {
        driver.failure(&node) == Some("unknown_host")
    });
    // By name, through the same way.
    let address = driver.station_address(&station);
    let port = address.rsplit(':').next().expect("a port");
    let named = format!("{scheme}://{}@localhost:{port}", id(1));
    let node = driver.start_node(key(3), &[named]).expect("a node starts");
    assert!(driver.connected(&node, 1, PATIENCE));
}

/// The second station on a port is refused with the port's address.
pub fn a_station_port_in_use_is_said<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let at = host(&driver.station_address(&station));
    match driver.start_station(kit.settings_at(2, &at)) {
        Ok(_) => panic!("{at} was taken twice"),
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains(&at) && said.contains("in use"), "{said}");
        }
    }
}
