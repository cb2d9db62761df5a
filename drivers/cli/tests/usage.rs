//! Wrong command lines, files and addresses: exit 2 and one line that says what to do.

mod common;

use std::process::Stdio;

use common::{Station, Subscriber, folder, numbers, publish_with, run, stderr, stdout};

/// Exit code 2, nothing on standard output, one line on standard error that holds `part`.
fn refused(args: &[&str], part: &str) {
    let output = run(args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert_eq!(stdout(&output), "", "{args:?}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    assert!(said.contains(part), "{args:?}: {said}");
}

#[test]
fn bad_flags_are_one_line() {
    refused(&["sub", "demo/**"], "--from");
    refused(
        &["sub", "demo/**", "--from", "open", "--moed", "ordered"],
        "--mode",
    );
    refused(
        &["sub", "demo/**", "--from", "open", "--mode", "sorted"],
        "as_arrives",
    );
    refused(&["sub", "demo/**", "--from", "node:12"], "64 hex digits");
    refused(
        &[
            "sub",
            "demo/**",
            "--from",
            "open",
            "--from",
            "node:0000000000000000000000000000000000000000000000000000000000000000",
        ],
        "give one of the two",
    );
    refused(
        &["sub", "demo/**", "--from", "open", "--count", "0"],
        "--count",
    );
    refused(
        &["sub", "demo/**", "--from", "open", "--probe", "10ms"],
        "from 1s to 1h",
    );
    refused(&["station", "--probe", "2h"], "from 1s to 1h");
    refused(&["station", "--ring", "0"], "--ring");
    refused(&["pub", "demo/x", "--json", "--raw"], "--raw");
    refused(&["pub", "demo/x", "--rate", "0"], "--rate");
    refused(&["pub", "demo/x", "--ttl", "2h"], "one hour");
    refused(&["pub", "demo/x", "--ttl", "soon"], "500ms");
    refused(&["pub", "demo/x", "/no/such/file"], "no such file");
    refused(&["publish"], "tidings --help");
    refused(&["demo", "--sabotage", "burn"], "drop");
}

#[test]
fn bad_topics_and_filters_are_one_line() {
    refused(&["pub", "demo//x"], "empty_segment");
    refused(&["pub", "demo/*"], "wildcard");
    refused(&["pub", ""], "empty");
    // At once, not when a station has answered.
    refused(&["pub", "_sys/x"], "belong to the system");
    refused(&["sub", "_sys/x", "--from", "open"], "belong to the system");
    refused(&["sub", "demo/**/x", "--from", "open"], "wildcard");
    refused(&["sub", "*/x", "--from", "open"], "--realm");
    refused(
        &["sub", "demo/x", "--from", "open", "--realm", ""],
        "1 to 255",
    );
}

#[test]
fn bad_addresses_are_one_line() {
    let sub = |address: &str, part: &str| {
        refused(
            &["sub", "demo/x", "--from", "open", "--station", address],
            part,
        )
    };
    sub("127.0.0.1:7400", "tcp://");
    sub("tcp://127.0.0.1", "port");
    sub("tcp://127.0.0.1:70000", "65535");
    sub("tcp://abc@127.0.0.1:7400", "64 hex digits");
    sub("tcp://192.0.2.1:7400", "loopback");
    sub("tls://192.0.2.1:7400", "the station prints its own");
    sub("tls://abc@192.0.2.1:7400", "64 hex digits");
    refused(
        &["station", "--listen", "tcp://0.0.0.0:7400"],
        "write tls:// there",
    );
    refused(&["station", "--listen", "127.0.0.1"], "port");
}

#[test]
fn a_port_in_use_is_one_line() {
    let station = Station::start(&[]);
    let (_, listen) = station.address.rsplit_once('@').unwrap();
    let output = run(&[
        "station",
        "--listen",
        listen,
        "--key",
        key("taken").to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert_eq!(
        said,
        format!(
            "cannot listen on {listen}: the port is in use. name another one with --listen; 0 takes any\n"
        )
    );
}

#[test]
fn no_station_is_exit_3() {
    for args in [&["pub", "demo/x"][..], &["sub", "demo/x", "--from", "open"]] {
        let key = key("nobody");
        let rest = [
            "--station",
            "tcp://127.0.0.1:1",
            "--wait",
            "300ms",
            "--key",
            key.to_str().unwrap(),
        ];
        let output = run(&[args, &rest].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(
            said.starts_with("cannot reach tcp://127.0.0.1:1: "),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_name_that_means_nothing_yet_is_dialled_again_and_told() {
    let at = format!("tls://{}@nowhere.invalid:7400", "ab".repeat(32));
    let sub = ["sub", "demo/x", "--from", "open", "--wait", "1s"];
    let output = run(&[&sub[..], &["--station", &at]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("its name does not resolve here"), "{said}");
    // Beside a station that is there, nothing is in its way.
    let station = Station::start(&[]);
    let both = ["--station", &at, "--station", &station.address];
    let (code, said) = publish_with(&both, &numbers(0, 1));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("connected to 1 of 2 stations"), "{said}");
    let twice = ["--station", &station.address, "--station", &station.address];
    let (code, said) = publish_with(&twice, &numbers(0, 1));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("one station counts once"), "{said}");
}

#[test]
fn a_station_that_closes_the_door_is_not_told_as_nobody() {
    let full = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = full.local_addr().unwrap();
    std::thread::spawn(move || full.incoming().for_each(drop));
    let at = format!("tls://{}@{at}", "ab".repeat(32));
    let sub = ["sub", "demo/x", "--from", "open", "--wait", "1s"];
    let output = run(&[&sub[..], &["--station", &at]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    let words = "the station closed the connection before the handshake. it may be full";
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_station_that_is_full_is_told_as_that_over_plain_tcp_too() {
    let limits = folder("full").join("station.toml");
    std::fs::write(&limits, "[station.limits]\nlinks = 1\n").unwrap();
    let station = Station::start(&["--config", limits.to_str().unwrap()]);
    let args = ["sub", "demo/**", "--from", "open"];
    let args = [&args[..], &["--station", &station.address]].concat();
    let _inside = Subscriber::start(&args, Stdio::null(), 1);
    let output = run(&[&args[..], &["--wait", "2s"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.ends_with("full. try another station, or later\n"),
        "{said}"
    );
}

#[test]
fn a_node_with_the_key_of_its_station_is_told_so() {
    let key = key("own");
    let key = key.to_str().unwrap();
    let station = Station::start_at("tls://127.0.0.1:0", &["--key", key]);
    let at = station.address.as_str();
    let sub = ["sub", "demo/x", "--from", "open", "--key", key];
    let output = run(&[&sub[..], &["--station", at, "--wait", "5s"]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("this node's own key"), "{said}");
}

/// A fresh key file.
fn key(name: &str) -> std::path::PathBuf {
    let file = folder(name).join("key");
    assert!(run(&["keygen", file.to_str().unwrap()]).status.success());
    file
}

#[test]
fn keygen_writes_for_its_owner_alone_and_never_twice() {
    let file = folder("keygen").join("key");
    let name = file.to_str().unwrap();
    let output = run(&["keygen", name]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim().len(), 64);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let before = std::fs::read(&file).unwrap();
    refused(&["keygen", name], "never overwritten");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // Beside it stands that it was never used.
    let epochs = std::fs::read_to_string(file.with_extension("epoch")).unwrap();
    assert_eq!(epochs, "0\n");
    // A station with that key has that id.
    let station = Station::start(&["--key", name]);
    assert!(station.address.contains(stdout(&output).trim()));
}

#[cfg(unix)]
#[test]
fn bad_key_files_are_one_line() {
    use std::os::unix::fs::PermissionsExt;
    let station = |file: &std::path::Path, part: &str| {
        refused(
            &[
                "station",
                "--listen",
                "127.0.0.1:0",
                "--key",
                file.to_str().unwrap(),
            ],
            part,
        );
    };
    let open = key("open");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o640)).unwrap();
    station(&open, "chmod 600");
    let write = |name: &str, contents: &[u8]| {
        let file = key(name);
        std::fs::write(&file, contents).unwrap();
        file
    };
    station(&write("large", &[b'x'; 4096]), "4096 bytes");
    station(&write("empty", b""), "not a tidings key");
    station(
        &write("other", b"-----BEGIN KEY-----\n"),
        "not a tidings key",
    );
    station(
        &write("cut", b"tidings-key-v1 ed25519 0011\n"),
        "64 hex digits",
    );
    station(&write("binary", &[0xff; 40]), "not a tidings key");
    station(&folder("folder"), "not a file");
    // Nobody writes into it: whoever opened it would wait for ever.
    let pipe = folder("pipe").join("key");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    station(&pipe, "not a file");
    station(&folder("gone").join("key"), "tidings keygen");
}

#[test]
fn a_key_without_its_epochs_does_not_publish() {
    let key = key("epochs");
    let name = key.to_str().unwrap();
    let epochs = key.with_extension("epoch");
    std::fs::write(&epochs, "soon\n").unwrap();
    refused(&["pub", "demo/x", "--key", name], "restore it");
    std::fs::remove_file(&epochs).unwrap();
    refused(
        &["pub", "demo/x", "--key", name],
        "key.epoch: the epoch file is missing",
    );
}

#[test]
fn help_and_version_are_no_failures() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["sub", "--help"],
        &["demo", "--help"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(
            !output.stdout.is_empty() && output.stderr.is_empty(),
            "{args:?}"
        );
    }
    assert_eq!(run(&[]).status.code(), Some(2));
}

#[test]
fn explain_finds_codes_by_text_and_number() {
    let skipped = run(&["explain", "skipped"]);
    assert!(skipped.status.success());
    assert!(stdout(&skipped).contains("do: "), "{}", stdout(&skipped));
    let expired = stdout(&run(&["explain", "expired"]));
    assert!(expired.matches("means: ").count() >= 4, "{expired}");
    assert!(stdout(&run(&["explain", "103"])).contains("source_refused"));
    for (word, what) in [
        ("unknown_period", "why a sealed fact was not opened"),
        ("required", "what a sealed group asks"),
        ("not_delegated", "why a source does not admit"),
        ("keys_failed", "what a node reports"),
    ] {
        let told = stdout(&run(&["explain", word]));
        assert!(told.contains(what), "{told}");
    }
    let all = stdout(&run(&["explain"]));
    assert!(
        all.contains("notices in a stream") && all.contains("lagged_out"),
        "{all}"
    );
    let own = stdout(&run(&["explain", "own_link"]));
    assert!(
        own.contains("do: check the address, or give each its own key"),
        "{own}"
    );
    assert!(
        all.contains("write_stalled") && all.contains("integer_range"),
        "{all}"
    );
    // A code of the wire and a reason of this side may have one text.
    let both = stdout(&run(&["explain", "unsupported_version"]));
    assert_eq!(both.matches("means: ").count(), 2, "{both}");
    refused(&["explain", "own_lnk"], "did you mean own_link");
    refused(&["explain", "skiped"], "did you mean skipped");
    refused(&["explain", "zzzzzzzz"], "tidings explain");
}
