//! Lines from the keyboard, with editing and history; or from a pipe.

use std::{
    io::{self, BufRead as _},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

use rustyline::{Config, Editor, error::ReadlineError, history::FileHistory};
use tokio::sync::oneshot;

/// The lines that the history keeps.
const HISTORY: usize = 1000;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    /// A line from a pipe that is no UTF-8.
    NotText,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// A thread that waits for lines, one question at a time. Clones share it.
///
/// A question that nobody waits for any more is still answered by the next line,
/// which goes nowhere: a terminal cannot take a question back.
#[derive(Debug, Clone)]
pub(super) struct Keyboard {
    questions: mpsc::Sender<Question>,
}

#[derive(Debug)]
struct Question {
    prompt: String,
    kind: Kind,
    answer: oneshot::Sender<Typed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A line of the conversation, which the history keeps.
    Line,
    /// The answer to a question: what was typed before it is none.
    Answer,
}

impl Keyboard {
    /// Reads from a terminal if it is `attended`, with the history in that file.
    pub(super) fn new(attended: bool, history: PathBuf) -> Self {
        let (questions, inbox) = mpsc::channel();
        // It waits for the keyboard as long as the process lives; nobody waits for it.
        thread::spawn(move || {
            match attended.then(|| Terminal::open(history)).flatten() {
                Some(mut terminal) => serve(inbox, |question| terminal.ask(question)),
                None => serve(inbox, |_| read_plain()),
            };
        });
        Self { questions }
    }

    /// Reads a line of the conversation.
    pub(super) async fn line(&self, prompt: &str) -> Typed {
        self.ask(prompt.to_owned(), Kind::Line).await
    }

    /// Reads the answer to a question.
    pub(super) async fn answer(&self, prompt: String) -> Typed {
        self.ask(prompt, Kind::Answer).await
    }

    async fn ask(&self, prompt: String, kind: Kind) -> Typed {
        let (answer, typed) = oneshot::channel();
        // A thread that is gone reads nothing any more.
        let _ = self.questions.send(Question { prompt, kind, answer });
        typed.await.unwrap_or(Typed::End)
    }
}

fn serve(questions: mpsc::Receiver<Question>, mut read: impl FnMut(&Question) -> Typed) {
    for question in questions {
        if !question.answer.is_closed() {
            let typed = read(&question);
            let _ = question.answer.send(typed);
        }
    }
}

struct Terminal {
    editor: Editor<(), FileHistory>,
    history: PathBuf,
}

impl Terminal {
    fn open(history: PathBuf) -> Option<Self> {
        let config = Config::builder().max_history_size(HISTORY).ok()?.history_ignore_space(true);
        let mut editor = Editor::with_config(config.build()).ok()?;
        // There is none the first time; a chat without history is a chat still.
        let _ = editor.load_history(&history);
        Some(Self { editor, history })
    }

    fn ask(&mut self, question: &Question) -> Typed {
        if question.kind == Kind::Answer {
            forget_what_was_typed();
        }
        match self.editor.readline(question.prompt.as_str()) {
            Ok(line) => {
                if question.kind == Kind::Line && !line.trim().is_empty() {
                    let _ = self.editor.add_history_entry(&line);
                    keep_history(&mut self.editor, &self.history);
                }
                Typed::Line(line)
            }
            Err(ReadlineError::Interrupted) => Typed::Interrupt,
            Err(_) => Typed::End,
        }
    }
}

/// What was said is content: the file is for its owner alone, as rustyline makes it.
fn keep_history(editor: &mut Editor<(), FileHistory>, path: &Path) {
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    let _ = editor.append_history(path);
}

fn read_plain() -> Typed {
    let mut line = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => Typed::End,
        Ok(_) => match String::from_utf8(line) {
            Ok(line) => Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Typed::NotText,
        },
    }
}

/// Puts the terminal back as it was, when dropped: a line may still be edited
/// when a signal ends the chat.
pub(super) struct Screen {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Screen {
    pub(super) fn remember() -> Self {
        Self {
            #[cfg(unix)]
            before: rustix::termios::tcgetattr(io::stdin()).ok(),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(before) = &self.before {
            use rustix::termios::{OptionalActions, tcsetattr};
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn forget_what_was_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Standard input may be no terminal; then nothing is queued there.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}
