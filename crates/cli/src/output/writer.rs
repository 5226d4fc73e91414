//! Output on a thread of its own, so that a reader who stops cannot stop the run.

use std::{io, thread, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use turnbuckle_runtime::{Event, PromptOutcome};

use super::Output;

/// Events that may wait for a slow reader before the run does.
const ROOM: usize = 64;

/// What a reader still gets after the run was cancelled.
const LAST_CALL: Duration = Duration::from_secs(2);

/// Hands a run to an [`Output`].
///
/// A slow reader slows the run down. After a cancellation nothing waits for him:
/// events are kept, and given to him at the end if he still takes them.
pub(crate) struct Writer<O> {
    lines: mpsc::Sender<Line>,
    kept: Vec<Line>,
    done: oneshot::Receiver<io::Result<O>>,
    cancel: CancellationToken,
}

enum Line {
    Event(Box<Event>),
    End(Box<PromptOutcome>),
}

impl<O: Output + 'static> Writer<O> {
    /// Begins to write; when writing fails, `cancel` is cancelled.
    pub(crate) fn new(output: O, cancel: CancellationToken) -> Self {
        let (lines, inbox) = mpsc::channel(ROOM);
        let (tell, done) = oneshot::channel();
        let stop = cancel.clone();
        thread::spawn(move || {
            let ended = write_all(output, inbox);
            if ended.is_err() {
                stop.cancel();
            }
            let _ = tell.send(ended);
        });
        Self { lines, kept: Vec::new(), done, cancel }
    }

    pub(crate) async fn event(&mut self, event: Event) {
        self.give(Line::Event(Box::new(event))).await;
    }

    /// Gives the end, and the output back once everything is written.
    pub(crate) async fn end(mut self, outcome: &PromptOutcome) -> io::Result<O> {
        self.give(Line::End(Box::new(outcome.clone()))).await;
        let Self { lines, kept, done, cancel } = self;
        let rest = async {
            for line in kept {
                if lines.send(line).await.is_err() {
                    break;
                }
            }
            drop(lines);
            done.await.unwrap_or_else(|_| Err(io::Error::other("the writer broke down")))
        };
        tokio::pin!(rest);
        tokio::select! {
            biased;
            ended = &mut rest => return ended,
            () = cancel.cancelled() => {}
        }
        let late = || io::Error::new(io::ErrorKind::TimedOut, "nobody reads the output");
        timeout(LAST_CALL, rest).await.unwrap_or_else(|_| Err(late()))
    }

    async fn give(&mut self, line: Line) {
        if !self.kept.is_empty() {
            self.kept.push(line);
            return;
        }
        tokio::select! {
            biased;
            // A writer that is gone has failed, which ends the run.
            room = self.lines.reserve() => if let Ok(room) = room { room.send(line) },
            () = self.cancel.cancelled() => self.kept.push(line),
        }
    }
}

fn write_all<O: Output>(mut output: O, mut inbox: mpsc::Receiver<Line>) -> io::Result<O> {
    while let Some(line) = inbox.blocking_recv() {
        match line {
            Line::Event(event) => output.event(&event)?,
            Line::End(outcome) => output.end(&outcome)?,
        }
    }
    Ok(output)
}
