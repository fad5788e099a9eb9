//! Words of the port that do not say how to hash: they are hashed by what they print.

use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};

/// A value that is hashed by what it prints.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Said<T>(pub T);

impl<T: Debug> Debug for Said<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Debug> Hash for Said<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The hasher below takes whatever is printed.
        let _ = write!(Printed(state), "{:?}", self.0);
        state.write_u8(0xff);
    }
}

struct Printed<'a, H>(&'a mut H);

impl<H: Hasher> Write for Printed<'_, H> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
