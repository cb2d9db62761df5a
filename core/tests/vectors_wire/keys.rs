//! `keys`: questions about the keys of a group, their answers, when they are asked, and what a keyring does as time goes by.

use serde_json::{Value, json};
use tidings::code::{SealPolicy, UnopenedReason};
use tidings::crypto::SubkeySlot;
use tidings::keyring::{
    HeapKeyring, KeyPeriod, Keyring, Lookup, NoKey, PeriodSlot, PullSlot, Which, backoff,
    check_keys, repull_at, write_question,
};
use tidings::{Instant, KeyPeriods, NodeId, Now, Seed, WallMs};

/// What is accepted, or the reason for which it is refused; apart from that, what is no entry of this family.
pub(crate) fn judge(entry: &Value) -> Result<Result<Value, String>, String> {
    match text(entry, "kind")? {
        "question" => question(entry).map(Ok),
        "answer" => answer(entry),
        "when" => when(entry).map(Ok),
        "backoff" => {
            let rotation = number(entry, "rotation")?;
            let failures = 1..=number(entry, "failures")? as u32;
            let waits = failures.map(|n| backoff(n, rotation).as_millis() as u64);
            Ok(Ok(json!({ "waits": waits.collect::<Vec<u64>>() })))
        }
        "schedule" => schedule(entry).map(Ok),
        other => Err(format!("is of the unknown kind {other}")),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("has no {key}"))
}

fn number(value: &Value, key: &str) -> Result<u64, String> {
    value[key].as_u64().ok_or_else(|| format!("has no {key}"))
}

fn hex(value: &Value, key: &str) -> Result<Vec<u8>, String> {
    let digits = text(value, key)?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes = (0..digits.len()).step_by(2).map(byte);
    bytes
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{key} is not hex"))
}

fn array<const N: usize>(value: &Value, key: &str) -> Result<[u8; N], String> {
    let bytes = hex(value, key)?;
    bytes
        .try_into()
        .map_err(|_| format!("{key} is of another length"))
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn which(value: &Value) -> Result<Which, String> {
    match text(value, "which")? {
        "current" => Ok(Which::Current),
        _ => Ok(Which::One(array(value, "which")?)),
    }
}

fn question(entry: &Value) -> Result<Value, String> {
    let mut cbor = Vec::new();
    write_question(which(entry)?, text(entry, "prefix")?, &mut cbor);
    Ok(json!({ "cbor": shown(&cbor) }))
}

fn answer(entry: &Value) -> Result<Result<Value, String>, String> {
    let (cbor, prefix) = (hex(entry, "cbor")?, text(entry, "prefix")?);
    let now = WallMs::new(number(entry, "now")?);
    let which = which(entry)?;
    let judged = KeyPeriods::read(&cbor, prefix).and_then(|answer| {
        check_keys(which, &answer.periods, now)?;
        Ok(answer)
    });
    Ok(judged
        .map(|answer| {
            let ids = answer.periods.iter().map(|period| shown(period.key().id()));
            json!({ "policy": answer.policy.text(), "ids": ids.collect::<Vec<String>>() })
        })
        .map_err(|fault| fault.text().to_owned()))
}

fn when(entry: &Value) -> Result<Value, String> {
    let (from, until) = (number(entry, "issued_at")?, number(entry, "publish_until")?);
    let period = KeyPeriod::new([0; 8], [0; 32], WallMs::new(from), WallMs::new(until));
    let draw = u64::from_str_radix(text(entry, "draw")?, 16).map_err(|fault| fault.to_string())?;
    Ok(json!({ "at": repull_at(&period, draw).as_millis() }))
}

fn schedule(entry: &Value) -> Result<Value, String> {
    let member = &entry["member"];
    let mut periods = Vec::new();
    periods.resize_with(16, PeriodSlot::default);
    let mut subkeys = Vec::new();
    subkeys.resize_with(16, SubkeySlot::default);
    let pulls = vec![PullSlot::EMPTY; number(member, "pulls")? as usize];
    let rng = Seed::new(array(member, "seed")?).fork(text(member, "label")?);
    let mut keyring: HeapKeyring = Keyring::new(periods, pulls, subkeys, rng);
    let mut out = Vec::new();
    for step in entry["steps"].as_array().ok_or("has no steps")? {
        out.push(take(&mut keyring, step)?);
    }
    Ok(json!({ "out": out }))
}

/// What one step told, and what is known after it.
fn take(keyring: &mut HeapKeyring, step: &Value) -> Result<Value, String> {
    let (at, wall) = (number(step, "at_ms")?, number(step, "wall_ms")?);
    let now = Now::new(Instant::from_millis(at), WallMs::new(wall));
    let by = |given: &Value| Ok::<_, String>(NodeId::new([number(given, "by")? as u8; 32]));
    let told = if let Some(given) = step.get("want") {
        keyring.want(now, &array(given, "id")?, &by(given)?);
        "wanted".to_owned()
    } else if let Some(given) = step.get("open") {
        match keyring.lookup(now, &array(given, "id")?, &by(given)?) {
            Lookup::Held { .. } => "held".to_owned(),
            Lookup::Waiting => "waiting".to_owned(),
            Lookup::Unopened(reason) => reason.text().to_owned(),
            other => return Err(format!("is answered {other:?}")),
        }
    } else if step.get("seal").is_some() {
        match keyring.sealing(now, &NodeId::new([0xee; 32])) {
            Ok((id, _)) => shown(&id),
            Err(NoKey::Pending) => "pending".to_owned(),
            Err(NoKey::Failed(reason)) => reason.text().to_owned(),
            Err(other) => return Err(format!("is answered {other:?}")),
        }
    } else if let Some(given) = step.get("give") {
        let cbor = hex(given, "cbor")?;
        let read = KeyPeriods::read(&cbor, text(given, "prefix")?);
        // What was not well formed has no period to be given.
        let (policy, periods) = match read {
            Ok(answer) => (answer.policy, answer.periods),
            Err(_) => (SealPolicy::Off, Vec::new()),
        };
        match keyring.handle_keys(now, which(given)?, policy, &periods) {
            Ok(()) => "given".to_owned(),
            Err(fault) => fault.text().to_owned(),
        }
    } else if let Some(given) = step.get("refuse") {
        let reason = text(given, "reason")?;
        let reason = UnopenedReason::from_text(reason).ok_or("has an unknown reason")?;
        match keyring.handle_refusal(now, which(given)?, reason) {
            Ok(()) => "refused".to_owned(),
            Err(fault) => fault.text().to_owned(),
        }
    } else if step.get("join").is_some() {
        keyring.join(now);
        "joined".to_owned()
    } else if step.get("renew").is_some() {
        keyring.renew(now);
        "renewed".to_owned()
    } else if step.get("leave").is_some() {
        keyring.leave();
        "left".to_owned()
    } else {
        keyring.handle_timeout(now);
        "passed".to_owned()
    };
    let mut asks = Vec::new();
    while let Some(ask) = keyring.poll_ask() {
        asks.push(match ask.which {
            Which::Current => "current".to_owned(),
            Which::One(id) => shown(&id),
            other => return Err(format!("asks for {other:?}")),
        });
    }
    asks.sort();
    let due = keyring.poll_timeout().map(|due| due.as_micros() / 1000);
    let policy = keyring.policy().map(SealPolicy::text);
    Ok(
        json!({ "told": told, "asks": asks, "due_ms": due, "policy": policy, "held": keyring.len() }),
    )
}
