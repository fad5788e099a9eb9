//! Bytes for what is sent to the launcher: fields with their lengths, in a fixed order.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// A message that could not be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message to the sandbox launcher is not understood")]
pub struct MessageError;

/// Puts fields together.
#[derive(Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn optional(&mut self, number: Option<u64>) {
        self.byte(u8::from(number.is_some()));
        self.number(number.unwrap_or_default());
    }

    pub(crate) fn text(&mut self, text: impl AsRef<OsStr>) {
        let text = text.as_ref().as_bytes();
        self.number(text.len() as u64);
        self.0.extend(text);
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut encode: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            encode(self, item);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes fields apart.
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, MessageError> {
        self.take(1).map(|byte| byte[0])
    }

    pub(crate) fn number(&mut self) -> Result<u64, MessageError> {
        let bytes = self.take(8)?.try_into();
        bytes.map(u64::from_le_bytes).map_err(|_| MessageError)
    }

    pub(crate) fn optional(&mut self) -> Result<Option<u64>, MessageError> {
        let present = self.byte()?;
        let number = self.number()?;
        match present {
            0 => Ok(None),
            1 => Ok(Some(number)),
            _ => Err(MessageError),
        }
    }

    pub(crate) fn text(&mut self) -> Result<OsString, MessageError> {
        let length = usize::try_from(self.number()?).map_err(|_| MessageError)?;
        self.take(length)
            .map(|text| OsString::from_vec(text.to_vec()))
    }

    pub(crate) fn path(&mut self) -> Result<PathBuf, MessageError> {
        self.text().map(PathBuf::from)
    }

    pub(crate) fn list<T>(
        &mut self,
        mut decode: impl FnMut(&mut Self) -> Result<T, MessageError>,
    ) -> Result<Vec<T>, MessageError> {
        let length = self.number()?;
        // Each item takes at least a byte, so that a wrong length is noticed early.
        if length > self.0.len() as u64 {
            return Err(MessageError);
        }
        (0..length).map(|_| decode(self)).collect()
    }

    /// Returns what has not been taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Fails if something is left.
    pub(crate) fn end(self) -> Result<(), MessageError> {
        self.0.is_empty().then_some(()).ok_or(MessageError)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], MessageError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(MessageError)?;
        self.0 = rest;
        Ok(taken)
    }
}
