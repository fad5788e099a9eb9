//! Compression of large values. They are compressed once, for the network and for the disk.

use std::io;

use bytes::Bytes;

/// Shorter values are not compressed: it saves too little.
const LEAST: usize = 256;
/// Compression level 1: the fastest one that compresses text well.
const LEVEL: i32 = 1;

/// Returns the bytes, compressed if that makes them shorter, and whether they are compressed.
pub(super) fn pack(bytes: &Bytes) -> (Bytes, bool) {
    if bytes.len() < LEAST {
        return (bytes.clone(), false);
    }
    match zstd::bulk::compress(bytes, LEVEL) {
        Ok(packed) if packed.len() < bytes.len() => (packed.into(), true),
        _ => (bytes.clone(), false),
    }
}

/// Returns the original bytes.
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
