//! The days the demonstration publishes.
//!
//! Decides: how a day travels and what counts as the same day. Leaves to others: where the data is from (`data/README.md`). Believes:
//! no clock. Bounded by: the data set.

use serde_json::{Value, json};

const CSV: &str = include_str!("../../data/seattle-weather.csv");

/// One day of weather.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Day {
    pub(crate) date: &'static str,
    pub(crate) weather: &'static str,
    pub(crate) temp_max: f64,
    temp_min: f64,
    precipitation: f64,
    wind: f64,
}

impl Day {
    fn parse(line: &'static str) -> Option<Self> {
        let mut columns = line.split(',');
        let date = columns.next()?;
        let mut number = || columns.next()?.parse().ok();
        let (precipitation, temp_max, temp_min, wind) =
            (number()?, number()?, number()?, number()?);
        Some(Self {
            date,
            weather: columns.next()?,
            temp_max,
            temp_min,
            precipitation,
            wind,
        })
    }

    /// The payload of the day.
    pub(crate) fn payload(&self) -> Value {
        json!({
            "date": self.date,
            "weather": self.weather,
            "temp_max": self.temp_max,
            "temp_min": self.temp_min,
            "precipitation": self.precipitation,
            "wind": self.wind,
        })
    }
}

/// Every day, in order; lines that are no day are none.
pub(crate) fn days() -> Vec<Day> {
    CSV.lines().skip(1).filter_map(Day::parse).collect()
}

/// Which day a payload is: its place in `days`, or none when it is not exactly one of them.
pub(crate) fn which(days: &[Day], payload: &Value) -> Option<usize> {
    let date = payload.get("date")?.as_str()?;
    let at = days.binary_search_by(|day| day.date.cmp(date)).ok()?;
    (days[at].payload() == *payload).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_there_once_and_knows_itself() {
        let days = days();
        assert_eq!(days.len(), 1461);
        assert_eq!(
            (days[0].date, days[1460].date),
            ("2012-01-01", "2015-12-31")
        );
        for (n, day) in days.iter().enumerate() {
            assert_eq!(which(&days, &day.payload()), Some(n));
        }
    }

    #[test]
    fn a_changed_day_is_no_day() {
        let days = days();
        let mut payload = days[7].payload();
        payload["wind"] = json!(99.0);
        assert_eq!(which(&days, &payload), None);
        assert_eq!(which(&days, &json!("2012-01-01")), None);
    }
}
