//! `turnbuckle chat`: prompt after prompt in one session.
//!
//! [`keyboard`] reads lines, [`command`] tells commands from messages,
//! [`interrupt`] lets Ctrl-C end the prompt and not the program.

mod approval;
mod command;
mod interrupt;
mod keyboard;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
    sync::Arc,
};

use turnbuckle_errors::Failure;
use turnbuckle_providers::UserMessage;
use turnbuckle_runtime::{Outcome, Session};
use turnbuckle_tools::{Approver, DenyAll};

use self::{
    approval::AskInChat,
    command::{Command, HELP},
    interrupt::Interrupts,
    keyboard::{Keyboard, Screen, Typed},
};
use crate::{
    args::{Format, RunArgs},
    output::{Text, printable},
    refusal::{invalid, tell},
    run,
    sessions::{self, Desk},
    settings::Settings,
    signals::ABORTED,
};

pub(crate) async fn chat(args: RunArgs) -> ExitCode {
    match open(args) {
        Ok((mut chat, first)) => chat.talk(first).await,
        Err(failure) => tell(&failure, Format::Text),
    }
}

/// A conversation under way.
struct Chat {
    desk: Desk,
    session: Session,
    keyboard: Keyboard,
    interrupts: Interrupts,
    /// Whether somebody sits at a terminal.
    attended: bool,
    /// Whether a prompt failed.
    failed: bool,
    _screen: Screen,
}

/// What follows a line.
enum Next {
    Go,
    Leave,
}

fn open(args: RunArgs) -> Result<(Chat, Option<UserMessage>), Failure> {
    if args.output != Format::Text {
        return Err(invalid("a chat is text; for programs there is `turnbuckle run --output`"));
    }
    let attended = io::stdin().is_terminal() && io::stdout().is_terminal();
    let (settings, first) = Settings::resolve_for_chat(args)?;
    let screen = Screen::remember();
    let interrupts = Interrupts::watch();
    let keyboard = Keyboard::new(attended, sessions::state_folder()?.join("chat-history"));
    // Off a terminal there is nobody to ask, and what is piped in is no answer.
    let approver: Arc<dyn Approver> = if attended {
        Arc::new(AskInChat::new(keyboard.clone(), interrupts.clone()))
    } else {
        Arc::new(DenyAll)
    };
    let desk = Desk::new(settings, approver)?;
    let session = desk.session()?;
    let chat =
        Chat { desk, session, keyboard, interrupts, attended, failed: false, _screen: screen };
    Ok((chat, first))
}

impl Chat {
    async fn talk(&mut self, first: Option<UserMessage>) -> ExitCode {
        if self.attended {
            anstream::eprintln!(
                "session {} in {}; /help tells more, Ctrl-D leaves",
                self.session.id(),
                printable(&self.desk.workspace.display().to_string())
            );
        }
        let mut next = match first {
            Some(message) => self.say(message).await,
            None => Next::Go,
        };
        // Whether the line before this one was a Ctrl-C.
        let mut warned = false;
        while let Next::Go = next {
            let typed = tokio::select! {
                biased;
                () = self.interrupts.leave() => break,
                typed = self.keyboard.line("> ") => typed,
            };
            next = match typed {
                Typed::End => Next::Leave,
                Typed::Interrupt if warned => Next::Leave,
                Typed::Interrupt => {
                    anstream::eprintln!("(Ctrl-C once more, or Ctrl-D, leaves)");
                    warned = true;
                    continue;
                }
                Typed::NotText => {
                    anstream::eprintln!("error: that line is not valid UTF-8");
                    self.failed = true;
                    Next::Go
                }
                Typed::Line(line) => self.take(line).await,
            };
            warned = false;
        }
        self.exit_code()
    }

    fn exit_code(&self) -> ExitCode {
        if self.interrupts.left() {
            ExitCode::from(ABORTED)
        } else if self.failed && !self.attended {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    async fn take(&mut self, line: String) -> Next {
        let done = match Command::read(&line) {
            Ok(Command::Nothing) => Ok(()),
            Ok(Command::Say(message)) => return self.say(message.into()).await,
            Ok(Command::Quit) => return Next::Leave,
            Ok(Command::Help) => {
                anstream::eprintln!("{HELP}");
                Ok(())
            }
            Ok(Command::Sessions) => self.list(),
            Ok(Command::New) => self.desk.begin().map(|session| self.go_over_to(session)),
            Ok(Command::Resume(id)) => self.resume(&id),
            Ok(Command::Fork(at)) => self.fork(at),
            Err(why) => Err(invalid(&why)),
        };
        if let Err(failure) = done {
            anstream::eprintln!("error: {failure}");
            self.failed = true;
        }
        Next::Go
    }

    /// One prompt, from its message to its end.
    async fn say(&mut self, message: UserMessage) -> Next {
        let cancel = self.interrupts.begin();
        let (outcome, written) = run::show(&mut self.session, message, cancel, Text::new()).await;
        self.interrupts.end();
        self.failed |= outcome.outcome != Outcome::Completed;
        match written {
            Ok(_) => Next::Go,
            // Nobody reads the answers any more.
            Err(error) => {
                if error.kind() != io::ErrorKind::BrokenPipe {
                    anstream::eprintln!("error: the output could not be written: {error}");
                }
                self.failed = true;
                Next::Leave
            }
        }
    }

    fn list(&self) -> Result<(), Failure> {
        let list = sessions::list_here(&self.desk.folder, &self.desk.workspace)?;
        anstream::eprint!("{list}");
        Ok(())
    }

    fn resume(&mut self, given: &str) -> Result<(), Failure> {
        let id = self.desk.folder.find(given).map_err(|error| sessions::unusable(&error))?;
        if id == self.session.id() {
            return Err(invalid("this session is the one that you are in"));
        }
        self.go_over_to(self.desk.resume(&id)?);
        Ok(())
    }

    fn fork(&mut self, at: Option<usize>) -> Result<(), Failure> {
        let forked = sessions::fork_of(&self.desk.folder, self.session.id(), at);
        let id = forked.map_err(|error| sessions::unusable(&error))?;
        self.go_over_to(self.desk.resume(&id)?);
        Ok(())
    }

    fn go_over_to(&mut self, session: Session) {
        anstream::eprintln!("session {}", session.id());
        self.session = session;
    }
}
