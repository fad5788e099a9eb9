//! Disk usage of a directory.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::Value;

use crate::Failed;
use crate::soon::spread;

/// Checkpoints the store's log into its file, and returns the size of the log in bytes.
pub(crate) fn checkpoint(home: &Path) -> Result<u64, Failed> {
    let wal = allocated(&home.join("posse.db-wal"))?;
    let connection = Connection::open(home.join("posse.db"))?;
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy == 0 {
        Ok(wal)
    } else {
        Err("somebody holds the store".into())
    }
}

/// Measures the time to make a page durable, appended to a file like the store's log.
pub(crate) fn sync(directory: &Path) -> Result<Value, Failed> {
    let mut file = File::create(directory.join("pages"))?;
    let mut samples = Vec::new();
    for _ in 0..200 {
        file.write_all(&[7; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        samples.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(spread(samples, 0))
}

/// Returns the allocated bytes of a file, or of a directory with everything beneath it.
pub(crate) fn allocated(path: &Path) -> Result<u64, Failed> {
    let about = std::fs::symlink_metadata(path)?;
    let mut total = about.blocks() * 512;
    if about.is_dir() {
        for entry in std::fs::read_dir(path)? {
            total += allocated(&entry?.path())?;
        }
    }
    Ok(total)
}
