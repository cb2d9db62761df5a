//! Topics, filters and names against their model. Input: a filter, a line end, a topic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::topic::{Name, Tier, check_filter, check_topic, matches};
use tidings_fuzz::topic as model;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = core::str::from_utf8(data) else {
        return;
    };
    let (filter, topic) = text.split_once('\n').unwrap_or((text, text));
    for one in [filter, topic] {
        assert_eq!(
            check_topic(one).err().map(|fault| fault.text()),
            model::fault(one, false)
        );
        assert_eq!(
            check_filter(one).err().map(|fault| fault.text()),
            model::fault(one, true)
        );
        name(one);
    }
    if check_filter(filter).is_ok() && check_topic(topic).is_ok() {
        assert_eq!(
            matches(filter, topic),
            model::matches(filter, topic),
            "{filter} {topic}"
        );
    }
});

fn name(text: &str) {
    let parsed = Name::parse(text);
    let fault = parsed
        .err()
        .map(|fault| (fault.text(), fault.segment().map(|at| at.text())));
    assert_eq!(fault, model::name_fault(text), "{text}");
    let Ok(name) = parsed else {
        return;
    };
    assert_eq!(name.to_string(), text);
    let (realm, domain, last, version) = (name.realm(), name.domain(), name.name(), name.version());
    let (org, app) = (name.org().unwrap_or(""), name.app().unwrap_or(""));
    let (fact, hope) = match name.tier() {
        Tier::Realm => (
            Name::realm_fact(realm, domain, last, version),
            Name::realm_hope(realm, domain, last, version),
        ),
        Tier::Org => (
            Name::org_fact(realm, org, domain, last, version),
            Name::org_hope(realm, org, domain, last, version),
        ),
        Tier::App => (
            Name::app_fact(realm, org, app, domain, last, version),
            Name::app_hope(realm, org, app, domain, last, version),
        ),
        other => panic!("a tier this target does not know: {other:?}"),
    };
    assert_eq!(fact, Ok(name), "building is the inverse of parsing");
    assert_eq!(hope, Ok(name));
    assert!(check_topic(text).is_ok(), "a name is a topic");
}
