use super::*;

fn parse(text: &str) -> Result<Config, Vec<Fault>> {
    Config::parse(Path::new("t.toml"), text)
}

/// What is wrong in a text, a line for each.
fn wrong(text: &str) -> Vec<String> {
    let faults = parse(text).expect_err("something is wrong");
    faults.iter().map(Fault::to_string).collect()
}

#[test]
fn the_example_is_valid_and_says_the_defaults() {
    let said = parse(example::TEXT).expect("valid");
    let plain = Config::default();
    // Every key of it without its default says so.
    assert_eq!(said.station.limits, plain.station.limits);
    assert_eq!(said.station.doors, plain.station.doors);
    assert_eq!(said.node.limits, plain.node.limits);
    let core = |part: &StationPart| format!("{:?}", part.core(StationConfig::new(nobody())));
    assert_eq!(core(&said.station), core(&plain.station));
    let core = |part: &NodePart| format!("{:?}", part.core(ClientConfig::new(nobody())));
    assert_eq!(core(&said.node), core(&plain.node));
    assert_eq!(
        said.station.listen.as_deref(),
        Some(crate::args::DEFAULT_LISTEN)
    );
    assert_eq!(said.node.stations, [crate::args::DEFAULT_LISTEN]);
}

#[test]
fn the_example_names_every_bound_of_the_core() {
    let fields = |debug: String| -> Vec<String> {
        let parts = debug
            .split([' ', '{'])
            .filter_map(|word| word.strip_suffix(':'));
        parts.map(str::to_owned).collect()
    };
    let mut listed: Vec<&str> = STATION_BOUNDS.iter().map(|(name, _)| *name).collect();
    let mut known = fields(format!("{:?}", StationLimits::default()));
    known.sort();
    assert_eq!(listed, known);
    let station = example::TEXT.find("[station.limits]").expect("there");
    let node = example::TEXT.find("[node.limits]").expect("there");
    for name in listed {
        assert!(
            example::TEXT[station..node].contains(&format!("\n{name} = ")),
            "{name}"
        );
    }
    listed = DOOR_BOUNDS.iter().map(|(name, _)| *name).collect();
    listed.push("bound_loopback");
    let mut known = fields(format!("{:?}", DoorLimits::default()));
    known.sort();
    listed.sort_unstable();
    assert_eq!(listed, known);
    for name in listed {
        assert!(
            example::TEXT[station..node].contains(&format!("\n{name} = ")),
            "{name}"
        );
    }
    listed = NODE_BOUNDS.iter().map(|(name, _)| *name).collect();
    listed.extend(SOURCE_BOUNDS.iter().map(|(name, _)| *name));
    listed.push("sources");
    listed.sort_unstable();
    known = fields(format!("{:?}", ClientLimits::default()));
    known.sort();
    assert_eq!(listed, known);
    listed.retain(|name| *name != "sources");
    for name in listed {
        assert!(
            example::TEXT[node..].contains(&format!("\n{name} = ")),
            "{name}"
        );
    }
}

#[test]
fn bounds_are_kept_under_their_own_names() {
    let mut limits = StationLimits::default();
    for (n, (_, kept)) in STATION_BOUNDS.iter().enumerate() {
        *kept(&mut limits) = n;
    }
    let debug = format!("{limits:?}");
    for (n, (name, _)) in STATION_BOUNDS.iter().enumerate() {
        assert!(debug.contains(&format!("{name}: {n}")), "{name}: {debug}");
    }
    let mut limits = ClientLimits::default();
    for (n, (_, kept)) in NODE_BOUNDS.iter().enumerate() {
        *kept(&mut limits) = n;
    }
    let debug = format!("{limits:?}");
    for (n, (name, _)) in NODE_BOUNDS.iter().enumerate() {
        assert!(debug.contains(&format!("{name}: {n}")), "{name}: {debug}");
    }
    for (n, (_, keep)) in SOURCE_BOUNDS.iter().enumerate() {
        keep(&mut limits, n as u64);
    }
    let debug = format!("{:?}", limits.sources);
    for (n, (name, _)) in SOURCE_BOUNDS.iter().enumerate() {
        assert!(debug.contains(&format!("{name}: {n}")), "{name}: {debug}");
    }
}

#[test]
fn everything_wrong_is_told_with_file_line_and_key() {
    let text = "[station]\nlisten = \"tls://nowhere\"\nprobe_evry = \"30s\"\nmax_frame = true\n\
        pin = [\n  \"good\",\n  \"\",\n]\n\n[node]\nstations = \"tcp://127.0.0.1:1\"\norder_timeout = \"soon\"\n[nod]\n";
    let wrong = wrong(text);
    let starts = [
        "t.toml:2: station.listen: ",
        "t.toml:3: station.probe_evry: no such key. did you mean probe_every?",
        "t.toml:4: station.max_frame: a number or a size such as \"64MiB\" is expected, not a boolean",
        "t.toml:7: station.pin[1]: a realm's name has 1 to 255 bytes",
        "t.toml:11: node.stations: a list of texts is expected, not a string",
        "t.toml:12: node.order_timeout: write it as 500ms, 30s, 10m or 1h",
        "t.toml:13: nod: no such key. did you mean node?",
    ];
    assert_eq!(wrong.len(), starts.len(), "{wrong:#?}");
    for (line, start) in wrong.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} is not {start}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_told_at_the_line_of_the_one_that_must_change() {
    let told = wrong("[station]\nprobe_every = \"10ms\"\n");
    assert_eq!(told, ["t.toml:2: station.probe_every: 1 s to 1 h"]);
    let told = wrong("[station.limits]\nring_bytes = 10\nlinks = 5\n");
    assert_eq!(
        told,
        ["t.toml:2: station.limits.ring_bytes: at least `limits.publication_bytes`"]
    );
    // The bound that is too small for what was raised is not in the file: its table is.
    let told = wrong("[node]\n\nmax_frame = 16777215\n[node.limits]\nheld_bytes = \"1MiB\"\n");
    assert_eq!(
        told,
        ["t.toml:5: node.limits.held_bytes: at least four times `max_frame`"]
    );
    let told = wrong("[station.doors]\nhandshakes = 10\nbound_loopback = 1\n");
    let two = [
        "t.toml:1: station.doors.handshakes_per_address: 1 to `doors.handshakes`",
        "t.toml:3: station.doors.bound_loopback: true or false is expected, not an integer",
    ];
    assert_eq!(told, two);
    let told = wrong(
        "[node]\nrealm = \"\"\nstations = [\"tcp://127.0.0.1:1\", \"tcp://127.0.0.1:2\"]\nlimits.links = 1\n",
    );
    let two = [
        "t.toml:2: node.realm: a realm's name has 1 to 255 bytes",
        "t.toml:3: node.stations: at most `limits.links` stations",
    ];
    assert_eq!(told, two);
    let told = wrong("[node.limits.sources]\nwindow_ms = 1000\nheld_per_key = 0\n");
    assert_eq!(
        told,
        ["t.toml:3: node.limits.sources.held_per_key: at least 1"]
    );
    let told = wrong("[station]\nmax_frame = 600\n");
    assert_eq!(
        told,
        ["t.toml:1: station.limits.publication_bytes: at most `max_frame` less 128"]
    );
}

#[test]
fn a_station_is_named_once_and_its_name_may_mean_nothing_yet() {
    let id = "ab".repeat(32);
    let text = format!(
        "[node]\nstations = [\n  \"tls://{id}@nowhere.invalid:1\",\n  \"tcp://127.0.0.1:2\",\n  \"tls://{id}@192.0.2.1:1\",\n  \"tcp://127.0.0.1:2\",\n]\n"
    );
    let told = wrong(&text);
    assert_eq!(told.len(), 2, "{told:#?}");
    let twice = "is the station that tls://";
    assert!(told[0].starts_with("t.toml:5: node.stations[2]: ") && told[0].contains(twice));
    assert!(
        told[1].starts_with("t.toml:6: node.stations[3]: "),
        "{told:#?}"
    );
}

#[test]
fn an_empty_name_of_a_key_file_is_told_as_that() {
    for part in ["station", "node"] {
        let told = wrong(&format!("[{part}]\nkey = \"\"\n"));
        let wanted = format!(
            "t.toml:2: {part}.key: a file's name is expected. leave the key out to go without a file"
        );
        assert_eq!(told, [wanted]);
    }
}

#[test]
fn bounds_beyond_what_a_process_can_hold_are_refused_by_name() {
    let names = |bounds: Vec<&'static str>| bounds.into_iter();
    let station = names(STATION_BOUNDS.iter().map(|(name, _)| *name).collect());
    let node = names(NODE_BOUNDS.iter().map(|(name, _)| *name).collect());
    let both = station.map(|name| ("station", name));
    for (part, name) in both.chain(node.map(|name| ("node", name))) {
        let told = wrong(&format!("[{part}.limits]\n{name} = {}\n", 1u64 << 60));
        let start = format!("t.toml:2: {part}.limits.{name}: ");
        assert!(told.len() == 1 && told[0].starts_with(&start), "{told:?}");
    }
    for (name, _) in SOURCE_BOUNDS {
        let text = format!("[node.limits.sources]\n{name} = {}\n", 1u64 << 60);
        let beyond = parse(&text).err().map(|told| told[0].to_string());
        let start = format!("t.toml:2: node.limits.sources.{name}: ");
        // What counts in 32 bits, and is no table, has no other bound.
        let has_none = ["held_per_key", "lookups_per_window"].contains(name);
        assert_eq!(
            beyond.is_some_and(|told| told.starts_with(&start)),
            !has_none,
            "{name}"
        );
    }
    let told = wrong("[node.limits]\nlinks = 1073741825\n");
    assert_eq!(told, ["t.toml:2: node.limits.links: at most 1073741824"]);
    assert!(parse("[node.limits]\nlinks = 1073741824\nheld_bytes = \"1GiB\"\n").is_ok());
}

#[test]
fn text_that_is_no_toml_is_told_with_its_line() {
    let told = wrong("[station]\nlisten = \n");
    assert!(told[0].starts_with("t.toml:2: "), "{told:?}");
    let told = wrong("[station]\nlinks = 1\nlinks = 2\n");
    assert!(told[0].starts_with("t.toml:3: "), "{told:?}");
}

#[test]
fn numbers_and_sizes_are_read_as_they_are_written() {
    let limits = |text: &str| {
        parse(&format!("[station.limits]\n{text}\n"))
            .expect("valid")
            .station
            .limits
    };
    assert_eq!(limits("links = 1_000").links, 1000);
    assert_eq!(limits("links = 0x10").links, 16);
    assert_eq!(limits("ring_bytes = \"2GiB\"").ring_bytes, 2 << 30);
    for bad in [
        "links = -1",
        "links = \"1KiB\"",
        "links = 1.5",
        "ring_bytes = \"2 GB\"",
        "links = 99999999999999999999",
    ] {
        assert!(
            parse(&format!("[station.limits]\n{bad}\n")).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn a_key_file_is_looked_for_beside_the_configuration() {
    let told = Config::parse(
        Path::new("/no/such/folder/t.toml"),
        "[node]\nkey = \"node.key\"\n",
    );
    let told = told.expect_err("missing");
    assert!(
        told[0].to_string().contains("/no/such/folder/node.key"),
        "{told:?}"
    );
    assert!(
        told[0]
            .to_string()
            .starts_with("/no/such/folder/t.toml:2: node.key: "),
        "{told:?}"
    );
}
