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
    /// Go on with this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Not built yet: go on with the newest session
    #[arg(long = "continue", hide = true)]
    pub(crate) go_on: bool,
    /// The most steps of the prompt [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u32>,
    /// The most tokens of one answer [default: the provider's limit]
    #[arg(long, value_name = "N")]
    pub(crate) max_output_tokens: Option<u32>,
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
