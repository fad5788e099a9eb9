//! A recording: asciicast v2, with a marker, the keys and the screen of each step. Its times are
//! nominal, so that the same story is the same file.

use std::fmt;

use serde_json::{Value, json};

use super::SIZE;

/// Seconds from a step to the next one.
const STEP: f64 = 3.0;
/// Seconds from the keys of a step to its screen.
const DRAWN: f64 = 0.5;

/// A step of a story.
pub(super) struct Step {
    /// What happens.
    pub(super) says: String,
    /// What a terminal sends for the keys.
    pub(super) keys: String,
    /// What clears the screen and draws it.
    pub(super) screen: String,
}

/// A story as it is kept.
pub(super) struct Recording {
    title: String,
    pub(super) steps: Vec<Step>,
}

impl Recording {
    pub(super) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            steps: Vec::new(),
        }
    }

    /// Reads a recording that was written here.
    pub(super) fn read(text: &str) -> Self {
        let mut lines = text.lines().map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            value
        });
        let header = lines.next().unwrap();
        let mut recording = Self::new(header["title"].as_str().unwrap());
        for event in lines {
            let data = event[2].as_str().unwrap().to_owned();
            match event[1].as_str().unwrap() {
                "m" => recording.steps.push(Step {
                    says: data,
                    keys: String::new(),
                    screen: String::new(),
                }),
                "i" => recording.steps.last_mut().unwrap().keys = data,
                _ => recording.steps.last_mut().unwrap().screen = data,
            }
        }
        recording
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = SIZE;
        let header = json!({"version": 2, "width": width, "height": height, "title": self.title});
        writeln!(f, "{header}")?;
        for (number, step) in (0_u32..).zip(&self.steps) {
            let at = f64::from(number) * STEP;
            writeln!(f, "{}", json!([at, "m", step.says]))?;
            if !step.keys.is_empty() {
                writeln!(f, "{}", json!([at, "i", step.keys]))?;
            }
            writeln!(f, "{}", json!([at + DRAWN, "o", step.screen]))?;
        }
        Ok(())
    }
}

/// Returns what a terminal sends for a key, by the name that tmux gives it.
pub(super) fn typed(key: &str) -> String {
    match key {
        "Enter" => "\r".to_owned(),
        "Escape" => "\u{1b}".to_owned(),
        "Tab" => "\t".to_owned(),
        "Down" => "\u{1b}[B".to_owned(),
        _ => match (key.strip_prefix("M-"), key.strip_prefix("C-")) {
            (Some(key), _) => format!("\u{1b}{key}"),
            (_, Some(key)) => key
                .bytes()
                .map(|letter| char::from(letter & 0x1f))
                .collect(),
            _ => key.to_owned(),
        },
    }
}
