//! The record in memory. A server may run for days, so old bodies make room.

use serde_json::Value;

use super::{Ended, RecordedRequest};

/// Bytes of bodies that are kept, as they were sent.
const ROOM: usize = 256 * 1024 * 1024;

/// Every request so far; of the bodies, the newest that there is room for.
#[derive(Debug)]
pub(crate) struct Kept {
    requests: Vec<RecordedRequest>,
    room: usize,
    bytes: usize,
    /// How many requests have given their body back.
    emptied: usize,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self::with_room(ROOM)
    }

    fn with_room(room: usize) -> Self {
        Self { requests: Vec::new(), room, bytes: 0, emptied: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn all(&self) -> &[RecordedRequest] {
        &self.requests
    }

    pub(crate) fn push(&mut self, request: RecordedRequest) {
        self.bytes += request.body_bytes;
        self.requests.push(request);
        // The newest one stays, however large it is.
        let older = self.requests.len() - 1;
        while self.bytes > self.room && self.emptied < older {
            if let Some(oldest) = self.requests.get_mut(self.emptied) {
                oldest.body = Value::Null;
                self.bytes -= oldest.body_bytes;
            }
            self.emptied += 1;
        }
    }

    pub(crate) fn end(&mut self, index: usize, ended: Ended, now_ms: u64) {
        if let Some(request) = self.requests.get_mut(index) {
            request.ended = ended;
            // A server that fell silent waits for the client to leave.
            request.ended_ms = (ended != Ended::Silence).then_some(now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn sized(bytes: usize) -> RecordedRequest {
        RecordedRequest { body: "x".into(), body_bytes: bytes, ..record() }
    }

    #[test]
    fn the_oldest_bodies_make_room_and_their_sizes_stay() {
        let mut kept = Kept::with_room(100);
        for bytes in [40, 0, 40, 20] {
            kept.push(sized(bytes));
        }
        let with_body = |kept: &Kept| -> Vec<bool> {
            kept.all().iter().map(|request| !request.body.is_null()).collect()
        };
        assert_eq!(with_body(&kept), [true; 4], "all of the room is used");
        kept.push(sized(1));
        assert_eq!(with_body(&kept), [false, true, true, true, true]);
        kept.push(sized(1000));
        assert_eq!(with_body(&kept), [false, false, false, false, false, true]);
        kept.push(sized(60));
        kept.push(sized(40));
        assert_eq!(with_body(&kept)[6..], [true, true]);
        let sizes: Vec<_> = kept.all().iter().map(|request| request.body_bytes).collect();
        assert_eq!(sizes, [40, 0, 40, 20, 1, 1000, 60, 40]);
    }
}
