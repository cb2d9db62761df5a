//! Sealed groups and looked-up publishers, with the real command over real sockets.
#![cfg(unix)]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use common::byhand::{Keys, Publisher, wall};
use common::{Running, Station, Subscriber, folder, run, stderr, stdout, tidings};
use serde_json::Value;

const LONG: Duration = Duration::from_secs(60);

/// Keys of `demo/acme` in a file of this folder.
fn keys(folder: &Path, name: &str) -> String {
    let file = folder.join(name).to_str().unwrap().to_owned();
    let made = run(&["group", "keygen", "demo/acme", &file]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    file
}

/// Publishes lines to a topic.
fn publish(station: &Station, topic: &str, more: &[&str], lines: &str) -> (i32, String) {
    let args = ["pub", topic, "--station", &station.address];
    let mut command = tidings(&[&args, more].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Running::start(&mut command);
    let mut stdin = process.0.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).ok();
    drop(stdin);
    let mut said = String::new();
    let mut stderr = process.0.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    (process.wait(LONG), said)
}

/// Subscribes to all of `demo/acme`, into a file.
fn subscribe(station: &Station, folder: &Path, name: &str, more: &[&str]) -> (Subscriber, PathBuf) {
    let out = folder.join(name);
    let args = ["sub", "demo/acme/**", "--station", &station.address];
    let file = std::fs::File::create(&out).unwrap();
    let subscriber = Subscriber::start(&[&args, more].concat(), file.into(), 1);
    (subscriber, out)
}

fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Waits until a file has so many lines.
fn grown(file: &Path, many: usize) -> Vec<String> {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        let lines = lines(file);
        if lines.len() >= many {
            return lines;
        }
        assert!(std::time::Instant::now() < deadline, "{lines:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn keys_are_for_their_owner_alone_and_never_overwritten() {
    let folder = folder("keygen");
    let file = keys(&folder, "acme.keys");
    let mode = std::fs::metadata(&file).unwrap().permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777;
    assert_eq!(mode, 0o600);
    let before = std::fs::read(&file).unwrap();
    let refused = |args: &[&str], part: &str| {
        let output = run(args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(
            (stdout(&output).as_str(), said.lines().count()),
            ("", 1),
            "{said}"
        );
        assert!(said.contains(part), "{said}");
    };
    refused(&["group", "keygen", "demo/acme", &file], "it exists");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let other = folder.join("other.keys");
    let other = other.to_str().unwrap();
    refused(&["group", "keygen", "demo", other], "two segments");
    let short = ["group", "keygen", "demo/acme", other, "--rotation", "10s"];
    refused(&short, "1m to 24h");
    assert!(!Path::new(other).exists());

    // What others may read is not used, nor is what covers nothing.
    let elsewhere = ["pub", "demo/other", "--keys", &file];
    refused(&elsewhere, "keys for what is at or below demo/acme. choose");
    let named = ["pub", "demo/acme/a", "--keys", &file, "--group", "demo/acm"];
    refused(
        &named,
        "no group \"demo/acm\" but demo/acme. leave --group away",
    );
    let realm = ["pub", "demo/acme/a", "--keys", &file, "--realm", "other"];
    refused(&realm, "no group of this realm. name theirs with --realm");
    let cut = folder.join("cut.keys");
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace("secret", "secrets");
    std::fs::write(&cut, text).unwrap();
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&cut, own).unwrap();
    let cut = ["pub", "demo/acme/a", "--keys", cut.to_str().unwrap()];
    refused(&cut, "name the file group keygen wrote");
    refused(
        &["group", "keygen", "demo/acme"],
        "see tidings group keygen --help",
    );
    refused(
        &["pub", "demo/acme/a", "--group", "demo/acme"],
        "--keys FILE",
    );
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file, open).unwrap();
    refused(&["pub", "demo/acme/a", "--keys", &file], "chmod 600");
}

#[test]
fn who_has_the_keys_reads_and_who_has_none_is_told_what_it_cannot_read() {
    let folder = folder("sealed");
    let file = keys(&folder, "acme.keys");
    let station = Station::start(&[]);
    let with_keys = ["--from", "open", "--keys", &file, "--json", "--count", "3"];
    let (member, heard) = subscribe(&station, &folder, "member", &with_keys);
    let (outsider, told) = subscribe(&station, &folder, "outsider", &["--from", "open", "--json"]);
    let (plain, _) = subscribe(&station, &folder, "plain", &["--from", "open"]);
    let (code, said) = publish(
        &station,
        "demo/acme/a",
        &["--keys", &file],
        "one\ntwo\nthree\n",
    );
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("sealed for group demo/acme"), "{said}");
    let (code, said) = member.end(LONG);
    assert_eq!(code, 0, "{said}");
    let facts: Vec<Value> = lines(&heard)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let payloads: Vec<&str> = facts
        .iter()
        .map(|fact| fact["payload"].as_str().unwrap())
        .collect();
    assert_eq!(payloads, ["one", "two", "three"]);
    let id = facts[0]["seal_key_id"].as_str().unwrap();
    assert_eq!((&facts[0]["sealed"], id.len()), (&Value::Bool(true), 16));

    let notices: Vec<Value> = grown(&told, 3)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (n, notice) in notices.iter().enumerate() {
        assert_eq!(notice["notice"], "unopened");
        assert_eq!(notice["reason"], "no_group");
        assert_eq!(notice["seq"], n as u64 + 1, "{notice}");
        assert_eq!(notice["seal_key_id"], id);
    }
    outsider.process.signal("-TERM");
    let (_, said) = outsider.end(LONG);
    assert!(said.contains("silently lost: 0"), "{said}");
    plain.process.signal("-TERM");
    let (_, said) = plain.end(LONG);
    // What to do is said with the first of them.
    assert_eq!(
        said.matches("name its keys with --keys FILE").count(),
        1,
        "{said}"
    );
    assert_eq!(said.matches("(no_group: ").count(), 3, "{said}");
}

#[test]
fn facts_in_the_clear_are_refused_where_seals_are_required_and_other_keys_do_not_open() {
    let folder = folder("clear");
    let (file, other) = (keys(&folder, "acme.keys"), keys(&folder, "other.keys"));
    let station = Station::start(&[]);
    let with_keys = ["--from", "open", "--keys", &file];
    let (member, heard) = subscribe(&station, &folder, "member", &with_keys);
    let (code, said) = publish(&station, "demo/acme/a", &[], "in the clear\n");
    assert_eq!(code, 0, "{said}");
    let (code, said) = publish(&station, "demo/acme/a", &["--keys", &other], "otherwise\n");
    assert_eq!(code, 0, "{said}");
    let (code, said) = publish(&station, "demo/acme/a", &["--keys", &file], "sealed\n");
    assert_eq!(code, 0, "{said}");
    assert_eq!(grown(&heard, 1), ["sealed"]);
    member.process.signal("-TERM");
    let (_, said) = member.end(LONG);
    assert!(said.contains("unknown_period"), "{said}");
    assert!(
        said.contains(" is in the clear. its publisher lacks --keys"),
        "{said}"
    );
    let told = ", refused in the clear 1, missing 0, gaps 0, lagged 0, unopened 1, ";
    assert!(said.contains(told), "{said}");
    assert_eq!(lines(&heard), ["sealed"]);
}

#[test]
fn what_is_refused_in_the_clear_is_no_hole_in_the_ledger() {
    let keys = Keys::make("acme.keys", 900_000);
    let station = Station::start(&[]);
    let args = ["--from", "open", "--keys", &keys.file];
    let (member, heard) = subscribe(&station, &folder("holes"), "member", &args);
    let mut publisher = Publisher::connect(&station);
    let (period, _) = keys.at(wall());
    for (n, sealed) in [false, true, false, false, true, false, true, false]
        .into_iter()
        .enumerate()
    {
        publisher.publish(sealed.then_some(&period), &n.to_string());
    }
    assert_eq!(grown(&heard, 3), ["1", "4", "6"]);
    member.process.signal("-TERM");
    let (code, said) = member.end(LONG);
    assert_eq!(code, 0, "nothing was lost: {said}");
    let told = ", refused in the clear 5, missing 0, gaps 0, lagged 0, silently lost: 0";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_file_with_the_old_secret_behind_the_new_one_opens_both() {
    let folder = folder("two");
    let (old, new) = (keys(&folder, "old.keys"), keys(&folder, "new.keys"));
    let both = folder.join("both.keys");
    let text = std::fs::read_to_string(&new).unwrap() + &std::fs::read_to_string(&old).unwrap();
    std::fs::write(&both, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&both, mode).unwrap();
    let both = both.to_str().unwrap();
    let station = Station::start(&[]);
    let args = ["--from", "open", "--keys", both, "--count", "3"];
    let (reader, heard) = subscribe(&station, &folder, "reader", &args);
    for (file, line) in [(&*old, "old\n"), (&*new, "new\n"), (both, "both\n")] {
        let (code, said) = publish(&station, "demo/acme/a", &["--keys", file], line);
        assert_eq!(code, 0, "{said}");
    }
    let (code, said) = reader.end(LONG);
    assert_eq!(code, 0, "{said}");
    assert_eq!(lines(&heard), ["old", "new", "both"]);
}

#[test]
fn members_and_nodes_of_an_organisation_are_heard_and_nobody_else() {
    let folder = folder("members");
    let ids = ["member", "delegate"].map(|name| {
        let file = folder.join(name).to_str().unwrap().to_owned();
        let made = run(&["keygen", &file]);
        (stdout(&made).trim().to_owned(), file)
    });
    let [(member, member_key), (delegate, delegate_key)] = &ids;
    let sources = folder.join("sources.toml");
    let text = format!(
        "[[realm]]\nname = \"demo\"\nmembers = [\"{member}\"]\n[[realm.org]]\nname = \"acme\"\nnodes = [\"{delegate}\"]\n"
    );
    std::fs::write(&sources, text).unwrap();
    let sources = sources.to_str().unwrap();
    let station = Station::start(&[]);
    let members = ["--from", "members", "--sources", sources];
    let (of_members, members) = subscribe(&station, &folder, "of-members", &members);
    // The configuration may name it as well.
    let config = folder.join("node.toml");
    std::fs::write(&config, "[node]\nsources = \"sources.toml\"\n").unwrap();
    let config = config.to_str().unwrap();
    let acme = ["--from", "org:acme", "--config", config];
    let (of_acme, acme) = subscribe(&station, &folder, "of-acme", &acme);
    let by = |more: &[&str], line: &str| {
        let (code, said) = publish(&station, "demo/acme/a", more, line);
        assert_eq!(code, 0, "{said}");
    };
    by(&[], "an intruder's\n");
    by(&["--key", member_key], "a member's\n");
    by(&["--key", delegate_key], "a delegate's\n");
    by(&[], "an intruder's\n");
    for (subscriber, file, line) in [
        (of_members, members, "a member's"),
        (of_acme, acme, "a delegate's"),
    ] {
        grown(&file, 1);
        subscriber.process.signal("-TERM");
        let (_, said) = subscriber.end(LONG);
        assert!(said.contains("silently lost: 0"), "{said}");
        let told = said.matches("refused: a fact whose publisher").count();
        assert_eq!(told, 1, "what is not heard is said once: {said}");
        assert_eq!(lines(&file), [line]);
    }

    // What nothing could be found out about is told before anything is asked.
    let sources = ["--sources", sources];
    for (filter, more, part) in [
        ("demo/**", &["--from", "members"][..], "--sources FILE"),
        ("demo/**", &["--from", "org:"], "one segment"),
        (
            "demo/**",
            &[&["--from", "org:acm"], &sources[..]].concat(),
            "no organisation \"acm\"",
        ),
        (
            "other/**",
            &[&["--from", "members"], &sources[..]].concat(),
            "nothing of realm \"other\"",
        ),
    ] {
        let none = run(&[&["sub", filter], more].concat());
        let said = stderr(&none);
        assert_eq!(none.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
}
