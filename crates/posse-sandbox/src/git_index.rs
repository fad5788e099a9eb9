//! Reads which directories an index of git takes for repositories of their own.

/// The type of an entry that is a repository.
const GITLINK: u32 = 0o160_000;
const TYPE: u32 = 0o170_000;
/// Fixed bytes of an entry before its name, without the hash: times, ids, mode, size.
const FIXED: usize = 40;

/// Returns the paths of all entries that are repositories; none if it is not an index.
pub(crate) fn gitlinks(index: &[u8]) -> Option<Vec<Vec<u8>>> {
    // The hash's length is nowhere in the file: the one that all entries agree with is right.
    entries(index, 20).or_else(|| entries(index, 32))
}

fn entries(index: &[u8], hash: usize) -> Option<Vec<Vec<u8>>> {
    let rest = index.strip_prefix(b"DIRC")?;
    let version = number(rest)?;
    let count = number(rest.get(4..)?)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name: Vec<u8> = Vec::new();
    let mut found = Vec::new();
    for _ in 0..count {
        let start = at;
        let mode = number(index.get(start + 24..)?)?;
        let flags = u16::from_be_bytes(
            index
                .get(start + FIXED + hash..)?
                .get(..2)?
                .try_into()
                .ok()?,
        );
        at = start + FIXED + hash + 2;
        if version > 2 && flags & 0x4000 != 0 {
            at += 2;
        }
        if version == 4 {
            let (strip, length) = variable(index.get(at..)?)?;
            at += length;
            name.truncate(name.len().checked_sub(strip)?);
        } else {
            name.clear();
        }
        let text = index.get(at..)?;
        let length = text.iter().position(|byte| *byte == 0)?;
        name.extend(text.get(..length)?);
        at += length + 1;
        if version < 4 {
            // Entries begin at multiples of eight, counted from the first.
            at = start + (at - start).next_multiple_of(8);
        }
        // A name is as long as its entry says, else this is not the hash's length.
        let told = usize::from(flags & 0xfff);
        if told < 0xfff && told != name.len() {
            return None;
        }
        if mode & TYPE == GITLINK {
            found.push(name.clone());
        }
    }
    Some(found)
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// Returns a number of variable length, and its length.
fn variable(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (index, byte) in bytes.iter().take(6).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
        value += 1;
    }
    None
}
