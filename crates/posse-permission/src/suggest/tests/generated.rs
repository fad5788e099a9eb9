//! Command lines whose meaning is known because they are made from it, not read.

/// A random sequence that is the same in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    pub(super) fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A command of a line.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// What is set before it.
    pub(super) variable: Option<&'static str>,
    /// What runs it.
    pub(super) wrapper: Option<&'static str>,
    /// Its words as the program gets them.
    pub(super) words: Vec<String>,
    /// A word that is known only at run time, or wildcards.
    pub(super) unknown: Option<&'static str>,
    /// Where its output goes or its input comes from.
    pub(super) redirection: Option<&'static str>,
}

/// A command line: commands, and what stands before each but the first.
#[derive(Clone, Debug)]
pub(super) struct MadeLine {
    pub(super) commands: Vec<Made>,
    pub(super) joints: Vec<&'static str>,
}

const STARTS: &[&str] = &[
    "make",
    "make test",
    "rm a",
    "rm -r out",
    "cargo test",
    "cargo build",
    "cargo clippy",
    "cargo run",
    "cargo publish",
    "git add src",
    "git commit -m",
    "git push",
    "git log",
    "git config a b",
    "npm run build",
    "npm test",
    "npm install",
    "ls",
    "cat a",
    "grep -n x",
    "find . -name",
    "rg x",
    "python3 run.py",
    "python3",
    "bash run.sh",
    "sh",
    "mv a",
    "touch",
    "docker build .",
    "sed -n 1p",
    "posse ps",
    "cd src",
    "chmod +x",
    "echo",
    "head -3",
    "diff a",
    "awk 1",
    "node",
    "tee",
    "du",
];
const ARGUMENTS: &[&str] = &[
    "a",
    "b",
    "src/a.rs",
    "--release",
    "-q",
    "two words",
    "a;b",
    "&&",
    "|",
    ">",
    "$HOME",
    "`x`",
    "it's",
    "*",
    "/etc/passwd",
    "../x",
    "--output=o",
    "-o",
    "--exec",
    "-delete",
    "--fix",
    "--target-dir",
    "--",
    "-x",
    "origin",
    "main",
    "HEAD",
    "{a,b}",
    "~",
    "#",
    "!",
    "\\",
    "A=b",
    "--config",
    "-",
    "",
    "ä",
    "(",
    ".git/x",
];
const VARIABLES: &[&str] = &["FOO=1", "LANG=C", "PATH=.", "GIT_DIR=x"];
const WRAPPERS: &[&str] = &["sudo", "timeout 5", "nohup", "env", "nice", "xargs", "time"];
const UNKNOWN: &[&str] = &[
    "$X",
    "$(touch y)",
    "`touch y`",
    "*.rs",
    "?",
    "{a,b}",
    "$((1))",
    "<(touch y)",
];
const REDIRECTIONS: &[&str] = &[
    "> out",
    ">> out",
    "< in",
    "2>&1",
    "> /dev/null",
    "<<< x",
    "&> out",
    ">| out",
];
const JOINTS: &[&str] = &[" && ", " || ", "; ", " | ", " & ", "\n"];

/// Returns a command.
pub(super) fn command(random: &mut Random) -> Made {
    let start = random.one_of(STARTS);
    let mut words: Vec<String> = start.split(' ').map(str::to_owned).collect();
    while random.chance(45) {
        words.push(random.one_of(ARGUMENTS).to_owned());
    }
    let mut perhaps = |percent: usize, all: &'static [&'static str]| {
        random.chance(percent).then(|| random.one_of(all))
    };
    Made {
        variable: perhaps(4, VARIABLES),
        wrapper: perhaps(6, WRAPPERS),
        words,
        unknown: perhaps(5, UNKNOWN),
        redirection: perhaps(8, REDIRECTIONS),
    }
}

/// Returns a line of one to three commands.
pub(super) fn line(random: &mut Random) -> MadeLine {
    let mut line = MadeLine {
        commands: vec![command(random)],
        joints: Vec::new(),
    };
    while line.commands.len() < 3 && random.chance(25) {
        line.joints.push(random.one_of(JOINTS));
        line.commands.push(command(random));
    }
    line
}

/// Returns a line that differs a little from another.
pub(super) fn neighbour(random: &mut Random, of: &MadeLine) -> MadeLine {
    let mut line = of.clone();
    let at = random.below(line.commands.len());
    let made = &mut line.commands[at];
    match random.below(12) {
        0 | 1 => made.words.push(random.one_of(ARGUMENTS).to_owned()),
        2 => drop(made.words.pop().filter(|_| made.words.len() > 1)),
        3 => {
            let word = random.below(made.words.len());
            made.words[word] = random.one_of(ARGUMENTS).to_owned();
        }
        4 => made.variable = Some(random.one_of(VARIABLES)),
        5 => made.wrapper = Some(random.one_of(WRAPPERS)),
        6 => made.unknown = Some(random.one_of(UNKNOWN)),
        7 => made.redirection = Some(random.one_of(REDIRECTIONS)),
        8 => made.words[0] = format!("/tmp/{}", made.words[0]),
        9 => {
            // The operators as words of one command.
            let all = line.commands.drain(..).flat_map(|made| {
                let joint = std::iter::once("&&".to_owned());
                joint.chain(made.words)
            });
            let words = all.skip(1).collect();
            line.commands = vec![plain(words)];
            line.joints.clear();
        }
        10 => {
            line.joints.insert(0, random.one_of(JOINTS));
            line.commands
                .insert(0, plain(vec!["cd".into(), "src".into()]));
        }
        _ => {
            line.joints.push(random.one_of(JOINTS));
            line.commands.push(command(random));
        }
    }
    line
}

fn plain(words: Vec<String>) -> Made {
    Made {
        variable: None,
        wrapper: None,
        words,
        unknown: None,
        redirection: None,
    }
}

/// Returns the command as text.
pub(super) fn spelled(made: &Made) -> String {
    let quoted = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    let before = made.variable.into_iter().chain(made.wrapper);
    let after = made.unknown.into_iter().chain(made.redirection);
    let parts = before.map(str::to_owned);
    let parts = parts.chain(made.words.iter().map(quoted));
    let parts: Vec<String> = parts.chain(after.map(str::to_owned)).collect();
    parts.join(" ")
}

/// Returns the line as text.
pub(super) fn text(line: &MadeLine) -> String {
    let mut text = String::new();
    let joints = std::iter::once(&"").chain(&line.joints);
    for (joint, made) in joints.zip(&line.commands) {
        text.push_str(joint);
        text.push_str(&spelled(made));
    }
    text
}
