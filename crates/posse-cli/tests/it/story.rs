//! A story: what a person does in a real terminal and sees, step by step, compared with a recording
//! in `docs/stories` that `asciinema play` plays. `POSSE_STORIES=write` records it anew.

mod recording;
mod screen;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::recording::{Recording, Step};
use self::screen::{ShownScreen, plain};
use crate::binary::Project;
use crate::terminal::Terminal;

/// The size of the terminal.
pub(crate) const SIZE: (u16, u16) = (80, 24);
/// How long anything may take.
const LONG: Duration = Duration::from_secs(40);
/// How long a screen must stay the same to be recorded.
const SETTLED: Duration = Duration::from_secs(3);

/// A person's home, removed at the end. Its path is as wide as the one in recordings, so that lines
/// break at the same places.
pub(crate) struct Home {
    /// The directory of all homes.
    homes: PathBuf,
    path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let names = (0..=u16::MAX).map(|number| {
            let number = number.wrapping_add(std::process::id() as u16);
            PathBuf::from(format!("/tmp/{number:04x}"))
        });
        let mut free = names.filter(|path| fs::create_dir(path).is_ok());
        let homes = free.next().unwrap();
        let path = homes.join("ada");
        Self { homes, path }
    }

    /// Returns a project in this home, with these files.
    pub(crate) fn project(&self, name: &str, files: &[(&str, &str)], script: &str) -> Project {
        let project = Project::in_home(&self.path, name, script);
        for (name, text) in files {
            fs::write(project.file(name), text).unwrap();
        }
        project
    }

    /// Allows commands, in the settings of the person.
    pub(crate) fn allow(&self, rules: &str) {
        let posse = self.path.join(".posse");
        fs::create_dir_all(&posse).unwrap();
        let settings = format!(r#"{{"permissions": {{"allow": [{rules}]}}}}"#);
        fs::write(posse.join("settings.json"), settings).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A process that ends may still write into it.
        let _ = fs::remove_dir_all(&self.homes);
    }
}

/// A story that is told.
pub(crate) struct Story<'a> {
    terminal: &'a Terminal<'a>,
    home: &'a Home,
    file: PathBuf,
    /// What it is compared with; none if it is recorded.
    recorded: Option<Recording>,
    told: Recording,
}

impl<'a> Story<'a> {
    /// Begins a story in a terminal with a shell.
    pub(crate) fn begin(
        (name, title): (&str, &str),
        terminal: &'a Terminal<'a>,
        home: &'a Home,
    ) -> Self {
        let stories = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stories");
        let file = stories.join(name).with_extension("cast");
        let writes = std::env::var("POSSE_STORIES").is_ok_and(|what| what == "write");
        let recorded = (!writes).then(|| Recording::read(&fs::read_to_string(&file).unwrap()));
        let told = Recording::new(title);
        terminal.sees("$ ");
        Self {
            terminal,
            home,
            file,
            recorded,
            told,
        }
    }

    /// Types keys, and keeps the screen that follows, which has these words.
    pub(crate) fn step(&mut self, says: &str, keys: &[&str], words: &str) {
        self.terminal.types(keys);
        self.keep(says, keys, words);
    }

    /// Keeps the screen that follows after something else than keys, or after keys that were typed.
    pub(crate) fn keep(&mut self, says: &str, keys: &[&str], words: &str) {
        let number = self.told.steps.len();
        let screen = match &self.recorded {
            Some(recorded) => {
                let expected = recorded.steps.get(number).map(|step| step.screen.as_str());
                self.awaited(says, words, expected.unwrap_or_default())
            }
            None => self.settled(says, words),
        };
        self.told.steps.push(Step {
            says: says.to_owned(),
            keys: keys.iter().map(|key| recording::typed(key)).collect(),
            screen,
        });
    }

    /// Waits for the screen that was recorded.
    fn awaited(&self, says: &str, words: &str, expected: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.now();
            if screen == expected && plain(&screen).contains(words) {
                return screen;
            }
            assert!(
                begun.elapsed() < LONG,
                "{}, “{says}”, with “{words}”: the screen is not as recorded. If it should be so, \
                 POSSE_STORIES=write records it.\n{}",
                self.file.display(),
                screen::difference(expected, &screen)
            );
            std::thread::yield_now();
        }
    }

    /// Waits until the screen has these words and stays the same.
    fn settled(&self, says: &str, words: &str) -> String {
        let begun = Instant::now();
        let (mut last, mut since) = (self.now(), begun);
        loop {
            let screen = self.now();
            if screen != last {
                (last, since) = (screen, Instant::now());
            }
            let has_words = plain(&last).contains(words);
            if has_words && since.elapsed() > SETTLED {
                return last;
            }
            assert!(
                begun.elapsed() < LONG,
                "“{says}”: no “{words}” that stays:\n{}",
                plain(&last)
            );
            std::thread::yield_now();
        }
    }

    /// Returns the screen as it is now, without what differs in each run.
    fn now(&self) -> String {
        let capture = ["capture-pane", "-p", "-e", "-t", "%0", ";"];
        let cursor = [
            "display-message",
            "-p",
            "-t",
            "%0",
            "#{cursor_y} #{cursor_x} #{cursor_flag}",
        ];
        let captured = self.terminal.tmux.run(&[&capture[..], &cursor].concat());
        ShownScreen::of(&captured).normal(self.home.homes.to_str().unwrap())
    }

    /// Ends the story: all of it is as recorded, or recorded now.
    pub(crate) fn end(self) {
        let told = self.told.to_string();
        match self.recorded {
            Some(_) => {
                let recorded = fs::read_to_string(&self.file).unwrap();
                assert!(
                    recorded == told,
                    "{}: keys or words differ. POSSE_STORIES=write records the story.\n{told}",
                    self.file.display()
                );
            }
            None => fs::write(&self.file, told).unwrap(),
        }
    }
}
