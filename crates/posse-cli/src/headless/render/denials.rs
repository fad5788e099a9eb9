//! Denied calls: the first of equal ones is told with its reason, the others are counted.

use posse_protocol::Denial;

use super::shape::value;
use crate::output::one_line;
use crate::output::transcript::shortened;

/// Number of different denials that are remembered.
const MOST: usize = 200;
/// Maximum length of what a call is about, in characters.
const LONGEST: usize = 60;
/// Inputs that say what a call is about.
const TELLING: [&str; 6] = ["command", "file_path", "path", "pattern", "url", "skill"];

/// The denials of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denials(Vec<Repeated>);

/// Equal denials.
#[derive(Clone, Debug)]
struct Repeated {
    /// Who called what.
    call: String,
    why: String,
    times: u64,
    /// How many of them are on the terminal.
    told: u64,
}

impl Denials {
    /// Counts a denial, of the main agent if there is no name. Returns its line, if it is worth one:
    /// the first, the tenth, the hundredth and so on.
    pub(crate) fn add(&mut self, denial: &Denial, whose: Option<&str>) -> Option<String> {
        let whose = whose.map(|name| format!("{name}: ")).unwrap_or_default();
        let call = format!("{whose}{}", called(denial));
        let known = self.0.iter_mut();
        let mut equal = known.filter(|known| known.call == call && known.why == denial.why);
        if let Some(equal) = equal.next() {
            equal.times += 1;
            let is_round = 10_u64.pow(equal.times.ilog10()) == equal.times;
            return is_round.then(|| equal.line());
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        // The reason may begin with the same word.
        let reason = denial.why.strip_prefix("Denied");
        let reason = reason.map_or(format!(": {}", denial.why), str::to_owned);
        let line = one_line(&format!("✗ {call} denied{reason}"));
        let why = denial.why.clone();
        self.0.push(Repeated {
            call,
            why,
            times: 1,
            told: 1,
        });
        Some(line)
    }

    /// Returns the lines of those that were counted only.
    pub(crate) fn untold(&mut self) -> Vec<String> {
        let untold = self.0.iter_mut().filter(|it| it.times > it.told);
        untold.map(Repeated::line).collect()
    }

    /// Returns those that were counted only, in few words.
    pub(crate) fn summary(&self) -> Option<String> {
        let mut untold = self.0.iter().filter(|it| it.times > it.told);
        let first = untold.next()?.words();
        Some(match untold.count() {
            0 => first,
            more => format!("{first} and {more} more"),
        })
    }
}

impl Repeated {
    fn line(&mut self) -> String {
        self.told = self.times;
        self.words()
    }

    fn words(&self) -> String {
        one_line(&format!("✗ {} denied ×{}", self.call, self.times))
    }
}

/// Returns a call as rules are written: `Bash(./test.sh)`.
fn called(denial: &Denial) -> String {
    let input = value(&denial.input);
    let about = TELLING.iter().find_map(|name| input.get(name)?.as_str());
    match about {
        Some(about) => format!("{}({})", denial.tool, shortened(about, LONGEST)),
        None => denial.tool.clone(),
    }
}

#[cfg(test)]
mod tests {
    use posse_protocol::RawJson;

    use super::*;

    fn denial(command: &str) -> Denial {
        Denial {
            tool: "Bash".into(),
            call: "t1".into(),
            input: RawJson::parse(&format!(r#"{{"command":"{command}"}}"#)).unwrap(),
            why: "no rule allows it".into(),
        }
    }

    #[test]
    fn equal_denials_are_counted() {
        let mut denials = Denials::default();
        let test = denial("./test.sh");
        let lines: Vec<String> = (0..12).filter_map(|_| denials.add(&test, None)).collect();
        let (first, tenth) = (
            "✗ Bash(./test.sh) denied: no rule allows it",
            "✗ Bash(./test.sh) denied ×10",
        );
        assert_eq!(lines, [first, tenth]);
        let all = "✗ Bash(./test.sh) denied ×12";
        assert_eq!(denials.summary().as_deref(), Some(all));
        assert_eq!(denials.untold(), [all]);
        assert_eq!((denials.untold(), denials.summary()), (Vec::new(), None));
    }

    #[test]
    fn each_agent_and_each_call_has_a_count_of_its_own() {
        let mut denials = Denials::default();
        for whose in [None, Some("dev-1"), Some("dev-2")] {
            assert!(denials.add(&denial("ls"), whose).is_some());
        }
        assert!(denials.add(&denial("ls -l"), None).is_some());
        for whose in [Some("dev-1"), Some("dev-2")] {
            assert!(denials.add(&denial("ls"), whose).is_none());
        }
        let summary = denials.summary();
        assert_eq!(
            summary.as_deref(),
            Some("✗ dev-1: Bash(ls) denied ×2 and 1 more")
        );
        let lines = ["✗ dev-1: Bash(ls) denied ×2", "✗ dev-2: Bash(ls) denied ×2"];
        assert_eq!(denials.untold(), lines);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut denials = Denials::default();
        for number in 0..=MOST {
            assert!(denials.add(&denial(&number.to_string()), None).is_some());
        }
        assert!(denials.add(&denial("0"), None).is_some());
        assert_eq!(denials.0.len(), MOST);
    }
}
