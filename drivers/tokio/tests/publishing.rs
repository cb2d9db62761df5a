//! Publishers, and epochs that outlive a run.

mod common;

use std::path::PathBuf;

use common::{PATIENCE, fact, node, number, numbered, open, station, subscribe, up};
use tidings::{Delivery, Item, Outcome, Refusal};
use tidings_tokio::{EpochFile, EpochFileError, Node, StartError, Subscription};

fn folder(name: &str) -> PathBuf {
    let name = format!("tidings-publishing-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn read(path: &PathBuf) -> u64 {
    std::fs::read_to_string(path)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_restart_goes_on_above_every_epoch_before_though_the_wall_went_back() {
    let folder = folder("epochs");
    let file = folder.join("key.epoch");
    EpochFile::create(&file).unwrap();
    let station = station().start().await.unwrap();
    let reader = up(node(2, &station)).await;
    let mut facts = subscribe(&reader, open("epochs/**")).await;
    // A run whose clock was an hour ahead, seen from the next one.
    let first = up(node(4, &station)).await;
    first.publish(numbered("elsewhere", 0)).await.unwrap();
    let ahead = first.last_epoch() + 3_600_000_000;
    std::fs::write(&file, format!("{ahead}\n")).unwrap();
    let mut last = ahead;
    for run in 0..3 {
        let writer = up(node(3, &station).epoch_file(&file)).await;
        assert!(writer.last_epoch() >= last, "run {run}");
        writer.publish(numbered("epochs/a", run)).await.unwrap();
        let heard = epoch_of(&mut facts, run).await;
        assert!(heard > last, "run {run}: {heard} is not above {last}");
        assert!(read(&file) >= heard, "it was written before it was used");
        last = heard;
        // Not closed: it just goes.
        drop(writer);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The epoch of the fact that says `wanted`; notices of a restart may come before it.
async fn epoch_of(facts: &mut Subscription, wanted: u64) -> u64 {
    loop {
        let item = tokio::time::timeout(PATIENCE, facts.next()).await.unwrap();
        if let Some(Item::Fact(fact)) = item {
            assert_eq!(number(&fact), wanted);
            return fact.epoch().unwrap();
        }
    }
}

#[tokio::test]
async fn a_missing_or_spoilt_epoch_file_is_said_and_nothing_starts() {
    let folder = folder("spoilt");
    let file = folder.join("key.epoch");
    let station = station().start().await.unwrap();
    let start = || node(3, &station).epoch_file(&file).start().map(|_| ());
    let refused = |error| Err(StartError::EpochFile(error));
    assert_eq!(start(), refused(EpochFileError::Missing));
    std::fs::write(&file, "many").unwrap();
    assert_eq!(start(), refused(EpochFileError::Corrupt));
    std::fs::write(&file, "0\n").unwrap();
    assert_eq!(start(), Ok(()));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn nothing_is_published_under_an_epoch_that_cannot_be_written_down() {
    let folder = folder("unwritable");
    let file = folder.join("key.epoch");
    EpochFile::create(&file).unwrap();
    let station = station().start().await.unwrap();
    let writer = up(node(3, &station).epoch_file(&file)).await;
    std::fs::remove_dir_all(&folder).unwrap();
    let refused = writer.publish(numbered("epochs/a", 0)).await.unwrap_err();
    assert!(matches!(refused.reason, Refusal::EpochNotKept { .. }));
    assert_eq!(writer.last_epoch(), 0);
    // The same publication goes out once it can be.
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&file, "0\n").unwrap();
    writer.publish(refused.request).await.unwrap();
    assert!(read(&file) >= writer.last_epoch());
    std::fs::remove_dir_all(&folder).unwrap();
}

async fn texts(facts: &mut Subscription, count: usize) -> Vec<String> {
    let mut topics = Vec::new();
    for _ in 0..count {
        let fact: Delivery = fact(facts).await;
        topics.push(fact.topic().to_owned());
    }
    topics
}

async fn publishing() -> (tidings_tokio::StationServer, Node, Subscription) {
    let station = station().start().await.unwrap();
    let reader = up(node(2, &station)).await;
    let announced = subscribe(&reader, open("*")).await;
    let writer = up(node(3, &station)).await;
    (station, writer, announced)
}

#[tokio::test]
async fn a_publisher_is_announced_from_its_first_publication_to_its_end() {
    let (_station, writer, mut announced) = publishing().await;
    let publisher = writer.publisher(true).unwrap();
    let outcome = publisher.publish(numbered("publisher/a", 0)).await.unwrap();
    assert_eq!(outcome, Outcome::NoSubscriber);
    drop(publisher);
    assert_eq!(
        texts(&mut announced, 2).await,
        ["pubsub.publish_started_v1", "pubsub.publish_completed_v1"]
    );
    // One that does not announce is not heard.
    let quiet = writer.publisher(false).unwrap();
    quiet.publish(numbered("publisher/a", 1)).await.unwrap();
    drop(quiet);
    writer.publish(numbered("after", 2)).await.unwrap();
    assert_eq!(texts(&mut announced, 1).await, ["after"]);
}

#[tokio::test]
async fn cancelling_a_publisher_settles_what_it_has_under_way() {
    let (_station, writer, _announced) = publishing().await;
    let publisher = writer.publisher(false).unwrap();
    let id = publisher.id();
    let pending: Vec<_> = (0..3)
        .map(|n| publisher.try_publish(numbered("publisher/b", n)).unwrap())
        .collect();
    publisher.cancel();
    for one in pending {
        assert_eq!(one.await, Outcome::Cancelled);
    }
    let late = writer.publish(numbered("publisher/b", 3).by(id)).await;
    assert_eq!(late.unwrap_err().reason, Refusal::PublisherEnded);
}
