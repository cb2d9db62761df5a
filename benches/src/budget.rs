//! Which counts may fall short, and by how much: what a change is refused for.
//!
//! Decides: whether a count has become worse than it may be. Leaves to others: times, which say too little on a busy machine. Believes: no
//! clock. Bounded by: the lines of `budget.txt`.

use crate::line::{Line, Verdict};

/// `what`, a tab, the most it may come to. Counts that are not named here must reach their goals.
const KNOWN: &str = include_str!("../budget.txt");

/// What is wrong with these lines: a count beyond its goal that is not known to be, or is more than it was.
pub fn exceeded(lines: &[Line]) -> Vec<String> {
    judged(KNOWN, lines)
}

fn judged(known: &str, lines: &[Line]) -> Vec<String> {
    let known = |what: &str| -> Option<f64> {
        let of_it = |line: &&str| line.split('\t').next() == Some(what);
        let most = known.lines().find(of_it)?.split('\t').nth(1)?;
        most.trim().parse().ok()
    };
    let mut wrong = Vec::new();
    for line in lines {
        let Some(value) = line.gates.filter(|_| line.verdict == Verdict::FallsShort) else {
            continue;
        };
        let (goal, what, figure) = (line.goal, &line.what, &line.figure);
        match known(what) {
            Some(most) if value <= most => {}
            Some(most) => wrong.push(format!("goal {goal}, {what}: {figure}, more than {most}")),
            None => wrong.push(format!(
                "goal {goal}, {what}: {figure}, wanted {}",
                line.wanted
            )),
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_fall_short_only_where_that_is_known_and_no_further() {
        let line = |count| Line::count(10, "bytes", (count, "B"), 80.0);
        let wrong = |known, count| judged(known, &[line(count)]).len();
        assert_eq!(wrong("", 80.0), 0);
        assert_eq!(wrong("", 81.0), 1);
        assert_eq!(wrong("bytes\t90", 90.0), 0);
        assert_eq!(wrong("bytes\t90", 91.0), 1);
        assert_eq!(wrong("other bytes\t90", 81.0), 1);
        let slow = Line::time(4, "a copy", 101.0, 100.0);
        assert!(judged("", &[slow]).is_empty());
    }
}
