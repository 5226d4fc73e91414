//! A client of one case, as a process of its own: it reads, measures itself, and
//! prints one line of JSON.

use std::{any::Any, cell::Cell, fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    body,
    case::{Case, Reader, Shape},
    ours::{Ours, text_of},
    rounds,
    server::CHUNK,
    yardstick::{self, Drain},
};
use crate::terminal::say;

/// What a client process is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Who reads.
    #[arg(long)]
    reader: Reader,
    /// What is read.
    #[arg(long)]
    case: Case,
    /// Where the server listens.
    #[arg(long, required_unless_present = "recorded")]
    server: Option<String>,
    /// Reads this file in place of a socket, and measures nothing itself.
    #[arg(long, conflicts_with = "server")]
    recorded: Option<PathBuf>,
}

/// What a client process saw of itself, from the first request to the end of the
/// last answer. Setting up the HTTP client is not in it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Took {
    /// User and system time of the process, in nanoseconds.
    pub(super) cpu_ns: u64,
    /// The median from a request to the first text of its answer, in microseconds.
    pub(super) first_us: f64,
    /// How far the memory of the process had grown at most, in KiB; `None` where
    /// the system does not say.
    pub(super) grown_kib: Option<u64>,
    /// The bytes of text and arguments that came.
    pub(super) text_bytes: usize,
}

pub(super) async fn run(args: &Args) -> Result<()> {
    let case = args.case;
    let took = match (&args.recorded, &args.server) {
        (Some(file), _) => {
            let body = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            let text_bytes = recorded(args.reader, case, body.into()).await?;
            Took { cpu_ns: 0, first_us: 0.0, grown_kib: None, text_bytes }
        }
        (None, Some(server)) => measured(args.reader, case, server).await?,
        (None, None) => bail!("neither a server nor a file; pass --server ADDRESS"),
    };
    say(serde_json::to_string(&took)?);
    Ok(())
}

/// The decoding alone: no socket, no HTTP.
async fn recorded(reader: Reader, case: Case, body: Bytes) -> Result<usize> {
    let chunks = (0..body.len()).step_by(CHUNK);
    let chunks = chunks.map(|start| body.slice(start..body.len().min(start + CHUNK)));
    match reader {
        Reader::Ours => {
            let ours = Ours::recorded(case.dialect, chunks)?;
            Ok(text_of(ours.ask(&Ours::question(), || {}).await?).len())
        }
        Reader::L2 => {
            let mut drain = Drain::of(case.dialect);
            for chunk in chunks {
                drain.feed(&chunk)?;
            }
            Ok(drain.text.len())
        }
    }
}

async fn measured(reader: Reader, case: Case, server: &str) -> Result<Took> {
    let base = format!("http://{server}/{case}");
    let client = Client::of(reader, case, &base)?;
    // One short answer first, so that what is set up once is not counted.
    let warm = Case { size: 1, shape: Shape::First, ..case };
    Client::of(reader, warm, &format!("http://{server}/{warm}"))?.ask(|| {}).await?;
    if case.shape == Shape::Rest {
        return at_rest(&client, case).await;
    }
    let idle = memory("VmRSS:");
    let firsts = Firsts::default();
    let cpu = cpu_time();
    let text = match case.shape {
        Shape::First => {
            let mut text = String::new();
            for _ in 0..case.size {
                text.push_str(&client.ask(firsts.start()).await?);
            }
            text
        }
        Shape::Paced => {
            let streams = (0..case.size).map(|_| client.ask(firsts.start()));
            try_join_all(streams).await?.concat()
        }
        Shape::Rounds => client.rounds(case.size).await?,
        _ => client.ask(firsts.start()).await?,
    };
    let cpu_ns = u64::try_from(cpu_time().saturating_sub(cpu).as_nanos())?;
    let peak = memory("VmHWM:");
    ensure!(text == body::expected(case), "{case}: the text is not the one that was sent");
    Ok(Took {
        cpu_ns,
        first_us: firsts.median(),
        grown_kib: peak.zip(idle).map(|(peak, idle)| peak.saturating_sub(idle)),
        text_bytes: text.len(),
    })
}

/// Opens all streams and looks at the memory while they wait.
async fn at_rest(client: &Client, case: Case) -> Result<Took> {
    let idle = memory("VmRSS:");
    let cpu = cpu_time();
    let open = try_join_all((0..case.size).map(|_| client.begin())).await?;
    let cpu_ns = u64::try_from(cpu_time().saturating_sub(cpu).as_nanos())?;
    let held = memory("VmRSS:");
    let text: String = open.iter().map(|(text, _)| text.as_str()).collect();
    ensure!(text == body::expected(case), "{case}: the text is not the one that was sent");
    Ok(Took {
        cpu_ns,
        first_us: 0.0,
        grown_kib: held.zip(idle).map(|(held, idle)| held.saturating_sub(idle)),
        text_bytes: text.len(),
    })
}

/// Either reader behind one face.
enum Client {
    Ours(Ours),
    L2 { client: reqwest::Client, url: String, case: Case },
}

impl Client {
    fn of(reader: Reader, case: Case, base: &str) -> Result<Self> {
        Ok(match reader {
            Reader::Ours => Self::Ours(Ours::at(case.dialect, base)?),
            Reader::L2 => Self::L2 {
                client: yardstick::client()?,
                url: format!("{base}/{}", case.dialect.path()),
                case,
            },
        })
    }

    async fn ask(&self, first: impl FnMut()) -> Result<String> {
        match self {
            Self::Ours(ours) => Ok(text_of(ours.ask(&Ours::question(), first).await?)),
            Self::L2 { client, url, case } => {
                let body = Bytes::from_static(rounds::QUESTION);
                Ok(yardstick::ask(client, url, case.dialect, body, first).await?.text)
            }
        }
    }

    /// The first text of an answer, and what keeps the rest of it open.
    async fn begin(&self) -> Result<(String, Box<dyn Any>)> {
        match self {
            Self::Ours(ours) => {
                let (text, open) = ours.begin(&Ours::question()).await?;
                Ok((text, Box::new(open)))
            }
            Self::L2 { client, url, case } => {
                let body = Bytes::from_static(rounds::QUESTION);
                let (drain, open) = yardstick::begin(client, url, case.dialect, body).await?;
                Ok((drain.text, Box::new(open)))
            }
        }
    }

    async fn rounds(&self, count: usize) -> Result<String> {
        match self {
            Self::Ours(ours) => rounds::ours(ours, count).await,
            Self::L2 { client, url, case } => rounds::l2(client, url, case.dialect, count).await,
        }
    }
}

/// How long the first text of each answer took.
#[derive(Default)]
struct Firsts(Cell<Vec<Duration>>);

impl Firsts {
    /// Begins to count, and gives what ends it.
    fn start(&self) -> impl FnMut() {
        let begun = Instant::now();
        move || {
            let mut all = self.0.take();
            all.push(begun.elapsed());
            self.0.set(all);
        }
    }

    fn median(&self) -> f64 {
        let mut all = self.0.take();
        all.sort_unstable();
        all.get(all.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// User and system time of this process so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    // It never runs backwards, and begins at zero.
    Duration::try_from(time).unwrap_or_default()
}

/// User and system time of this thread so far, in nanoseconds.
pub(super) fn thread_time() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let time = Duration::try_from(time).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A line of what Linux says of this process, in KiB.
pub(super) fn memory(line: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|text| text.strip_prefix(line))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
