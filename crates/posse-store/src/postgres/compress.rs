//! Bytes packed for the way and for the disk: what is sent is what is kept.

use std::io;

use bytes::Bytes;

/// Shorter ones are not worth it.
const LEAST: usize = 256;
/// Level 1: the fastest that packs text well.
const LEVEL: i32 = 1;

/// Returns the bytes, packed if that makes them shorter, and whether they are.
pub(super) fn pack(bytes: &Bytes) -> (Bytes, bool) {
    if bytes.len() < LEAST {
        return (bytes.clone(), false);
    }
    match zstd::bulk::compress(bytes, LEVEL) {
        Ok(packed) if packed.len() < bytes.len() => (packed.into(), true),
        _ => (bytes.clone(), false),
    }
}

/// Returns the bytes as they were.
pub(super) fn unpack(bytes: &[u8], packed: bool) -> io::Result<Bytes> {
    if packed {
        Ok(zstd::stream::decode_all(bytes)?.into())
    } else {
        Ok(Bytes::copy_from_slice(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for bytes in [
            Bytes::new(),
            "short".into(),
            "long ".repeat(1000).into(),
            (0..=255).collect(),
        ] {
            let (kept, packed) = pack(&bytes);
            assert_eq!(unpack(&kept, packed).unwrap(), bytes);
        }
        assert!(pack(&"long ".repeat(1000).into()).1);
    }
}
