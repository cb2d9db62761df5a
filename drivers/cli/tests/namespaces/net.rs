//! A network of namespaces: a bridge in one, a party with an address of its own in each of the others.
//!
//! Everything is named after this process and goes with it, also when it panics. What is broken is broken from outside: at the bridge's
//! end of a cable, or in the kernel of a party, never in the programs.

use std::process::{Command, Stdio};

/// The names of all spaces begin with this, and go on with the id of the process that made them.
const PREFIX: &str = "tidings-";
const HUB: &str = "hub";

/// The spaces of this process.
pub(crate) struct Net {
    spaces: Vec<String>,
    netem: bool,
}

/// Runs `ip` or `tc`.
///
/// # Errors
/// What it said.
fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!(
            "{program} {}: {}",
            args.join(" "),
            said(&output.stderr)
        )),
    }
}

fn space(name: &str) -> String {
    format!("{PREFIX}{}-{name}", std::process::id())
}

impl Net {
    /// A bridge, and a party at each of its ports: the n-th has the address 10.77.0.n, counted from 1.
    ///
    /// # Errors
    /// Why there are no namespaces to be had here.
    pub(crate) fn make(parties: &[&str]) -> Result<Self, String> {
        let mut net = Self {
            spaces: Vec::new(),
            netem: false,
        };
        for name in [&[HUB], parties].concat() {
            run("ip", &["netns", "add", &space(name)])?;
            net.spaces.push(space(name));
            net.ip(name, "link set lo up")?;
        }
        net.ip(HUB, "link add name bridge type bridge")?;
        net.ip(HUB, "link set dev bridge up")?;
        for (name, number) in parties.iter().zip(1..) {
            let there = space(name);
            net.ip(
                HUB,
                &format!("link add name {name} type veth peer name eth netns {there}"),
            )?;
            // Segments go over the cables one by one, as they would over a real one.
            for (at, link) in [(HUB, *name), (*name, "eth")] {
                net.ip(at, &format!("link set dev {link} gso_max_segs 1"))?;
            }
            net.ip(HUB, &format!("link set dev {name} master bridge up"))?;
            net.ip(name, "link set eth up")?;
            net.ip(name, &format!("addr add {}/24 dev eth", address(number)))?;
        }
        net.netem = net.tc(HUB, "qdisc add dev lo root netem delay 1ms").is_ok();
        Ok(net)
    }

    /// Runs `ip` in a party's space.
    fn ip(&self, name: &str, command: &str) -> Result<String, String> {
        let at = space(name);
        let words: Vec<&str> = ["-n", &at].into_iter().chain(command.split(' ')).collect();
        run("ip", &words)
    }

    fn tc(&self, name: &str, command: &str) -> Result<String, String> {
        let at = space(name);
        let words: Vec<&str> = ["-n", &at].into_iter().chain(command.split(' ')).collect();
        run("tc", &words)
    }

    /// What has been seen to work before.
    fn must(&self, name: &str, command: &str) {
        self.ip(name, command).unwrap();
    }

    /// A program at a party.
    pub(crate) fn within(&self, name: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &space(name), program]);
        command
    }

    /// Connections a party holds for good, as its kernel sees it: one that was given up and waits for its end is none.
    pub(crate) fn connections(&self, name: &str) -> usize {
        let at = space(name);
        let words = ["netns", "exec", &at, "ss", "-Htn", "state", "established"];
        run("ip", &words).unwrap().lines().count()
    }

    /// Pulls a party's cable out of the bridge, or puts it back.
    pub(crate) fn cable(&self, name: &str, plugged: bool) {
        let state = if plugged { "up" } else { "down" };
        self.must(HUB, &format!("link set dev {name} {state}"));
    }

    /// What a party sends to an address vanishes, with no word to anybody, or does so no longer.
    pub(crate) fn blackhole(&self, name: &str, to: &str, there: bool) {
        let verb = if there { "add" } else { "del" };
        self.must(name, &format!("route {verb} blackhole {to}/32"));
    }

    /// A party loses one address and has another.
    pub(crate) fn readdress(&self, name: &str, from: &str, to: &str) {
        self.must(name, &format!("addr del {from}/24 dev eth"));
        self.must(name, &format!("addr add {to}/24 dev eth"));
    }

    /// Longer packets than this vanish on their way to and from a party. Nobody is told, as behind a filter that drops every ICMP.
    pub(crate) fn narrow(&self, name: &str, mtu: u32) {
        // The bridge drops what is too long for the port; the party's own end still believes in 1500.
        self.must(HUB, &format!("link set dev {name} mtu {mtu}"));
    }

    /// Loses and delays packets on their way to a party, and says how.
    pub(crate) fn worsen(&self, name: &str) -> &'static str {
        let (how, said) = match self.netem {
            true => (
                "netem delay 40ms 20ms loss 5%",
                "netem, 40 ± 20 ms and 5 % lost",
            ),
            false => (
                "tbf rate 500kbit burst 6kb latency 60ms",
                "no netem in this kernel: a token bucket of 500 kbit/s with a queue of 60 ms, which drops the rest",
            ),
        };
        self.tc(HUB, &format!("qdisc add dev {name} root {how}"))
            .unwrap();
        said
    }

    /// Takes that back and says how many packets were lost.
    pub(crate) fn better(&self, name: &str) -> u64 {
        let shown = self
            .tc(HUB, &format!("-s qdisc show dev {name} root"))
            .unwrap();
        self.tc(HUB, &format!("qdisc del dev {name} root")).unwrap();
        let (_, dropped) = shown.split_once("dropped ").expect("it is counted");
        let digits: String = dropped.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }
}

/// The address of a party by its number.
pub(crate) fn address(number: u8) -> String {
    format!("10.77.0.{number}")
}

impl Drop for Net {
    fn drop(&mut self) {
        for space in &self.spaces {
            // What still runs there would keep its end of a cable.
            for id in run("ip", &["netns", "pids", space])
                .unwrap_or_default()
                .split_whitespace()
            {
                run("kill", &["-KILL", id]).ok();
            }
            if let Err(why) = run("ip", &["netns", "del", space]) {
                eprintln!("{space} is left behind: {why}");
            }
        }
    }
}
