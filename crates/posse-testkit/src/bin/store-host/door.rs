//! Holds the writer's lock of the turnstile from the start until it is given a line, as a writer
//! does while it writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::Failed;

pub(crate) fn run(database: &Path) -> Result<(), Failed> {
    let open = |extension| -> io::Result<File> {
        let path = database.with_added_extension(extension);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        file.lock()?;
        Ok(file)
    };
    let (next, writer) = (open("next")?, open("writer")?);
    next.unlock()?;
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    writer.unlock()?;
    println!("out");
    Ok(())
}
