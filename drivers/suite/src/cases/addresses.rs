//! Addresses that cannot be used, and what is said then.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out. Bounded by: the kit's patience.

use crate::Driver;
use crate::kit::{Kit, host, key};

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
