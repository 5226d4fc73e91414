//! The command line, as it is written in the documentation.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// An agent with tools that survives a dropped provider stream.
#[derive(Debug, Parser)]
#[command(name = "turnbuckle", version, about, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it work: one real prompt against a provider that breaks, no key needed
    Demo(DemoArgs),
    /// Run one prompt
    Run(Box<RunArgs>),
    /// Talk with a model, prompt after prompt, in one session
    #[command(
        mut_arg("prompt", |prompt| prompt.help("What to say first").long_help(None)),
        mut_arg("output", |output| output.hide(true))
    )]
    Chat(Box<RunArgs>),
    /// List, show, fork, export and remove what is kept of earlier runs
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// List the kinds of servers that are known, and which keys are present
    Providers(ProvidersArgs),
    /// Say what an error message or a failed response means
    Classify(ClassifyArgs),
    /// A provider that fails on purpose, for testing any client
    Faults {
        #[command(subcommand)]
        command: FaultsCommand,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the throw-away workspace, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Options of `run`. Those that are `None` come from the config file, then from
/// the defaults.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; read from standard input if it is left out or `-`
    ///
    /// With --continue or --session it may be left out on a terminal: the model is
    /// asked to go on.
    pub(crate) prompt: Option<OsString>,
    /// The provider: a name from `turnbuckle providers` [default: openai]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Where the provider is, with scheme and version path [default: its own address]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The model, by the provider's name for it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The environment variable that holds the key; may be left out with --base-url
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) api_key_env: Option<String>,
    /// A header for every request; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(crate) headers: Vec<String>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// The tools: all, none, or a list such as Read,Edit [default: all]
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// Which calls run without a question [default: ask on a terminal, else read-only]
    #[arg(long, value_name = "MODE")]
    pub(crate) permission: Option<String>,
    /// The folder that the tools work in [default: this one]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,
    /// Go on with this session; the beginning of its id will do
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Go on with the session that was last used in this workspace
    #[arg(long = "continue", conflicts_with = "session")]
    pub(crate) go_on: bool,
    /// The most steps of the prompt [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u32>,
    /// The most tokens of one answer [default: the provider's limit]
    #[arg(long, value_name = "N")]
    pub(crate) max_output_tokens: Option<u32>,
    /// The model's context in tokens, so that a long conversation is summarised before
    /// it is refused [default: only after a refusal]
    #[arg(long, value_name = "N")]
    pub(crate) context_window: Option<u32>,
    /// An image to send with the prompt (PNG, JPEG, GIF or WebP); may be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// How freely the model chooses its words [default: the provider's]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) temperature: Option<f32>,
    /// How much the model should think, in the provider's word: low, high … [default: the
    /// provider's]
    #[arg(long, value_name = "WORD")]
    pub(crate) reasoning_effort: Option<String>,
    /// The longest silence within an answer, in milliseconds [default: 300000]
    #[arg(long, value_name = "MS")]
    pub(crate) idle_timeout_ms: Option<u64>,
    /// The longest wait for the first event of an answer, in milliseconds [default: 300000]
    #[arg(long, value_name = "MS")]
    pub(crate) first_byte_timeout_ms: Option<u64>,
    /// What is printed on standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// A TOML file with these options, written with underscores
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The answer
    Text,
    /// One object at the end
    Json,
    /// One event a line
    Ndjson,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the last used first
    List(ListSessionsArgs),
    /// Print what was said and done in a session
    Show {
        /// The session; the beginning of its id will do
        id: String,
    },
    /// Begin a session with the messages of another one, and print its id
    Fork(ForkArgs),
    /// Write a session as a document
    Export(ExportArgs),
    /// Remove sessions for good
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListSessionsArgs {
    /// Only those of this workspace
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session; the beginning of its id will do
    pub(crate) id: String,
    /// The last message to take over, by the number that `show` gives it [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session; the beginning of its id will do
    pub(crate) id: String,
    /// The kind of document
    #[arg(long, value_enum, default_value_t = Document::Markdown)]
    pub(crate) format: Document,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Document {
    /// For people
    Markdown,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The sessions; the beginning of an id will do
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ProvidersArgs {
    /// Print JSON, with all that is known of each
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// What the error says; one a line from standard input if it is left out or `-`
    ///
    /// A line that starts with `{` is an object with any of status, headers, body,
    /// event, message, phase and provider. Each line is answered with one JSON object.
    pub(crate) message: Option<OsString>,
    /// Also tell which facts were weighed, and what each would say
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FaultsCommand {
    /// Serve a script of faults on a loopback port, until Ctrl-C
    Serve(ServeArgs),
    /// List the behaviours and the shipped scripts
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A script: a TOML file, or the name of a shipped one
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "behaviour")]
    pub(crate) script: Option<PathBuf>,
    /// A behaviour for each attempt, instead of a script; the last one repeats
    #[arg(long, value_name = "NAME")]
    pub(crate) behaviour: Vec<String>,
    /// The port; 0 takes any free one
    #[arg(long, default_value_t = 4010)]
    pub(crate) port: u16,
    /// Speak TLS, whatever the script says of its server
    #[arg(long)]
    pub(crate) tls: bool,
    /// Speak HTTP/2, whatever the script says of its server
    ///
    /// Without --tls it is for clients that know so beforehand.
    #[arg(long)]
    pub(crate) http2: bool,
    /// With TLS, write the authority that clients are to trust to this file, in PEM
    ///
    /// Without it, and where the script names no file, it is printed.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Throw these dice for steps with a probability; without it the seed of the
    /// script, else one that is drawn and printed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// At the end, write what was asked to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
