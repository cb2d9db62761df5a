//! What the second image does besides: a client, a publisher and a station over real keys, in one hand-moved network.

use tidings::crypto::SecretKey;
use tidings::sim::Net;
use tidings::{ClientConfig, Duration, Item, Publish, RealmId, Sources, StationConfig, Subscribe};

const TOPIC: &str = "weather/acme/app/days/measured_v1";

pub(crate) fn facts_arrive() -> bool {
    let realm = RealmId::of_name("weather");
    let second = Duration::from_secs(1);
    let mut net = Net::new(1);
    let station = net.station(StationConfig::new(SecretKey::from_seed([1; 32])));
    let publisher = net.client(ClientConfig::new(SecretKey::from_seed([2; 32])), &[station]);
    let reader = net.client(ClientConfig::new(SecretKey::from_seed([3; 32])), &[station]);
    net.run_for(second);
    let now = net.now();
    let request = Subscribe::new(realm, TOPIC, Sources::Open);
    let Ok(stream) = net.at(reader).subscribe(now, request) else {
        return false;
    };
    net.run_for(second);
    for number in 1..=10u64 {
        let now = net.now();
        let Ok(request) = Publish::new(realm, TOPIC, &number) else {
            return false;
        };
        if net.at(publisher).publish(now, request).is_err() {
            return false;
        }
    }
    net.run_for(second);
    let items = net.items(reader, stream);
    items.len() == 10
        && items.iter().zip(1..).all(|(item, number)| {
            matches!(item, Item::Fact(delivery) if delivery.decode::<u64>() == Ok(number))
        })
}
