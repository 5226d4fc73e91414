//! The compression of one body.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use crate::behaviour::Gzip;

/// A block whose type no inflater knows. After a flush the next byte begins a
/// block, so this breaks the stream exactly here.
const NO_BLOCK: [u8; 8] = [0x06; 8];

/// The checksum and the length at the end of a gzip stream.
const TRAILER: usize = 8;

/// Turns the bytes of a body into those that are sent.
#[derive(Debug)]
pub(super) enum Coder {
    Plain,
    Gzip { encoder: GzEncoder<Vec<u8>>, flushed: bool, trailer: bool },
}

impl Coder {
    pub(super) fn new(gzip: Option<Gzip>) -> Self {
        let encoder = || GzEncoder::new(Vec::new(), Compression::default());
        match gzip {
            None | Some(Gzip::Lie) => Self::Plain,
            Some(gzip) => Self::Gzip {
                encoder: encoder(),
                flushed: gzip != Gzip::Held,
                trailer: gzip != Gzip::NoTrailer,
            },
        }
    }

    /// The bytes to send for these; none while the compressor holds them back.
    pub(super) fn encode(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Gzip { encoder, flushed, .. } => {
                // Writing to a Vec cannot fail.
                let _ = encoder.write_all(bytes);
                if *flushed {
                    let _ = encoder.flush();
                }
                std::mem::take(encoder.get_mut())
            }
        }
    }

    /// What was held back, then bytes that no inflater accepts.
    pub(super) fn corrupt(&mut self) -> Vec<u8> {
        let Self::Gzip { encoder, .. } = self else { return NO_BLOCK.to_vec() };
        let _ = encoder.flush();
        let mut bytes = std::mem::take(encoder.get_mut());
        bytes.extend_from_slice(&NO_BLOCK);
        bytes
    }

    /// The end of a body that is whole.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let Self::Gzip { encoder, trailer, .. } = self else { return Vec::new() };
        let _ = encoder.try_finish();
        let mut bytes = std::mem::take(encoder.get_mut());
        if !*trailer {
            bytes.truncate(bytes.len().saturating_sub(TRAILER));
        }
        bytes
    }

    /// A whole body at once.
    pub(super) fn all(mut self, bytes: &[u8]) -> Vec<u8> {
        let mut coded = self.encode(bytes);
        coded.append(&mut self.finish());
        coded
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read as _};

    use flate2::read::GzDecoder;

    use super::*;

    fn read(bytes: &[u8]) -> (String, Option<io::ErrorKind>) {
        let mut text = Vec::new();
        let error = GzDecoder::new(bytes).read_to_end(&mut text).err();
        (String::from_utf8(text).unwrap(), error.map(|error| error.kind()))
    }

    #[test]
    fn a_flushed_coder_gives_every_event_out_and_a_held_one_gives_nothing_before_the_end() {
        let mut flushed = Coder::new(Some(Gzip::Flushed));
        let sent = flushed.encode(b"one ");
        assert_eq!(read(&sent), ("one ".to_owned(), Some(io::ErrorKind::UnexpectedEof)));
        let mut held = Coder::new(Some(Gzip::Held));
        let mut sent = held.encode(b"one ");
        assert_eq!(read(&sent).0, "");
        sent.append(&mut held.finish());
        assert_eq!(read(&sent), ("one ".to_owned(), None));
    }

    #[test]
    fn corrupt_bytes_break_right_behind_what_was_said() {
        for gzip in [Gzip::Flushed, Gzip::Held] {
            let mut coder = Coder::new(Some(gzip));
            let mut sent = coder.encode(b"one ");
            sent.append(&mut coder.corrupt());
            assert_eq!(read(&sent).1, Some(io::ErrorKind::InvalidInput), "{gzip:?}");
        }
    }

    #[test]
    fn a_lie_is_plain() {
        assert_eq!(Coder::new(Some(Gzip::Lie)).all(b"one"), b"one");
    }
}
